import { useEffect, useState, type ComponentType } from 'react';
import { Cell, useCell } from '../store/cell';

/** Whether a part of the console could not be loaded. */
export const missing = new Cell(false);
/** Increased to load missing parts again. */
const round = new Cell(0);

export function tryAgain(): void {
  missing.set(false);
  round.set(round.get() + 1);
}

// Vite says so of every import that fails: the parts below, and the languages.
window.addEventListener('vite:preloadError', () => missing.set(true));

/**
 * A component that is loaded when it is first shown. One that cannot be had,
 * from a gateway that is away or has been upgraded, shows nothing and sets
 * `missing`; React's own `lazy` would fail for good.
 */
export function part<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
  waiting?: ComponentType,
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Part(props: P) {
    const [Inside, setInside] = useState(() => loaded);
    const attempt = useCell(round);
    useEffect(() => {
      if (Inside) {
        return undefined;
      }
      let wanted = true;
      load().then(
        (found) => {
          loaded = found.default;
          if (wanted) {
            setInside(() => found.default);
          }
        },
        () => missing.set(true),
      );
      return () => {
        wanted = false;
      };
    }, [attempt, Inside]);
    if (Inside) {
      return <Inside {...props} />;
    }
    const Waiting = waiting;
    return Waiting ? <Waiting /> : null;
  };
}
