import { useEffect, useRef, useState } from 'react';

interface Shown {
  text: string;
  left: number;
  top: number;
  below: boolean;
}

const DELAY = 350;
const GAP = 6;

/**
 * The hints of everything that has `data-tip`, shown by one element: a card has
 * five buttons and there may be hundreds of cards.
 */
export function Tips() {
  const [shown, setShown] = useState<Shown>();
  const timer = useRef<number>(undefined);
  useEffect(() => {
    const show = (event: Event) => {
      const target = event.target instanceof Element ? event.target.closest<HTMLElement>('[data-tip]') : null;
      window.clearTimeout(timer.current);
      if (!target || (event.type === 'focusin' && !target.matches(':focus-visible'))) {
        setShown(undefined);
        return;
      }
      timer.current = window.setTimeout(() => {
        const box = target.getBoundingClientRect();
        const below = box.top < 48;
        const left = Math.min(Math.max(box.left + box.width / 2, 90), window.innerWidth - 90);
        setShown({ text: target.dataset['tip'] ?? '', left, top: below ? box.bottom + GAP : box.top - GAP, below });
      }, DELAY);
    };
    const hide = () => {
      window.clearTimeout(timer.current);
      setShown(undefined);
    };
    document.addEventListener('pointerover', show);
    document.addEventListener('focusin', show);
    const away = ['pointerdown', 'keydown', 'scroll', 'focusout'];
    away.forEach((name) => document.addEventListener(name, hide, true));
    return () => {
      hide();
      document.removeEventListener('pointerover', show);
      document.removeEventListener('focusin', show);
      away.forEach((name) => document.removeEventListener(name, hide, true));
    };
  }, []);
  return shown ? (
    // Its text is the label of what it belongs to: nothing to read out twice.
    <div
      aria-hidden
      className={`pointer-events-none fixed z-70 max-w-72 -translate-x-1/2 animate-fade rounded-md bg-solid px-2 py-1 text-xs text-on-ink shadow-pop ${shown.below ? '' : '-translate-y-full'}`}
      style={{ left: shown.left, top: shown.top }}
    >
      {shown.text}
    </div>
  ) : null;
}
