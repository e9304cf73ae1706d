import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { isAbort } from '../../../api/http';
import { readLog } from '../../../api/servers';
import type { LogLine } from '../../../api/types';
import { explained, useLanguage, useText } from '../../../i18n';
import { Notice } from '../../../parts/notice';
import { Search } from '../../../parts/search';
import { clock } from '../../../parts/time';

const POLL = 1_000;
const KEEP = 1_000;

function useLog(server: string): { lines: LogLine[]; error: string | undefined } {
  const [state, setState] = useState<{ lines: LogLine[]; error: string | undefined }>({ lines: [], error: undefined });
  useEffect(() => {
    const stop = new AbortController();
    let next = 0;
    let timer: number | undefined;
    const look = async () => {
      try {
        const more = await readLog(server, next, stop.signal);
        next = (more.at(-1)?.seq ?? next - 1) + 1;
        if (more.length > 0) {
          setState((before) => ({ lines: [...before.lines, ...more].slice(-KEEP), error: undefined }));
        }
      } catch (error) {
        if (isAbort(error)) {
          return;
        }
        setState((before) => ({ ...before, error: explained(error) }));
      }
      timer = window.setTimeout(look, POLL);
    };
    void look();
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [server]);
  return state;
}

/** What the server wrote, as it writes it. */
export function LogView({ server }: { server: string }) {
  const t = useText();
  const language = useLanguage();
  const { lines, error } = useLog(server);
  const [query, setQuery] = useState('');
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const shown = query ? lines.filter((line) => line.text.toLowerCase().includes(query.toLowerCase())) : lines;
  useLayoutEffect(() => {
    if (follow && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
    }
  }, [shown.length, follow]);
  return (
    <div className="flex h-full min-h-80 flex-col">
      <div className="flex items-center gap-3 border-b border-line px-5 py-2.5">
        <Search label={t.detail.logFilter} value={query} onChange={setQuery} />
        <span className="num hidden text-xs whitespace-nowrap text-ink-3 sm:block">{t.detail.lines(shown.length)}</span>
        <label className="flex items-center gap-2 text-sm whitespace-nowrap">
          <input
            type="checkbox"
            checked={follow}
            onChange={(event) => setFollow(event.target.checked)}
            className="size-4 accent-accent"
          />
          {t.detail.follow}
        </label>
      </div>
      {error ? <Notice className="m-5 mb-0">{error}</Notice> : null}
      <div
        ref={box}
        role="log"
        tabIndex={0}
        aria-label={t.detail.log}
        onWheel={(event) => event.deltaY < 0 && setFollow(false)}
        className="min-h-0 flex-1 overflow-auto bg-sunken py-3 font-mono text-xs leading-5"
      >
        {shown.length === 0 ? <p className="px-5 font-sans text-base text-ink-3">{t.detail.noLog}</p> : null}
        {shown.map((line) => (
          <p key={line.seq} className="flex gap-3 px-5 hover:bg-hover">
            <time className="num shrink-0 text-ink-3">{clock(line.at, language)}</time>
            <span
              className={`min-w-0 break-words whitespace-pre-wrap ${line.stream === 'stderr' ? '' : 'text-accent'}`}
            >
              {line.text}
            </span>
          </p>
        ))}
      </div>
    </div>
  );
}
