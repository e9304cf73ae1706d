import { useCallback, useEffect, useState } from 'react';
import { explained } from '../i18n';
import { ApiFailure, isAbort } from '../api/http';

export interface Loaded<T> {
  data: T | undefined;
  error: string | undefined;
  /** This Portway has no such path. */
  missing: boolean;
  reload: () => void;
}

/** Reads something when shown, again every `every` milliseconds, and when a dependency changes. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, deps: unknown[], every?: number): Loaded<T> {
  const [state, setState] = useState<{ data: T | undefined; error: string | undefined; missing: boolean }>({
    data: undefined,
    error: undefined,
    missing: false,
  });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer: number | undefined;
    const go = async () => {
      try {
        const data = await read(stop.signal);
        if (!stop.signal.aborted) {
          setState({ data, error: undefined, missing: false });
        }
      } catch (error) {
        if (isAbort(error) || stop.signal.aborted) {
          return;
        }
        const missing = error instanceof ApiFailure && error.status === 404;
        setState((before) => ({ data: before.data, error: explained(error), missing }));
      }
      if (every !== undefined && !stop.signal.aborted) {
        timer = window.setTimeout(go, every);
      }
    };
    void go();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
    // The caller names what `read` depends on.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [...deps, round, every]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  return { ...state, reload };
}
