import type { HistoryItem } from '../../../api/types';
import { useLanguage, useText } from '../../../i18n';
import { moment } from '../../../parts/time';

const DOT: Record<string, string> = {
  connected: 'bg-good',
  running: 'bg-good',
  connecting: 'bg-warn',
  error: 'bg-bad',
  failed: 'bg-bad',
};

/** What happened, newest first. */
export function Timeline({ items }: { items: HistoryItem[] }) {
  const t = useText();
  const language = useLanguage();
  const words: Record<string, string> = { ...t.state, ...t.status };
  const newest = [...items].sort((a, b) => b.at - a.at);
  return (
    <ol className="ml-1.5 border-l border-line">
      {newest.map((item, index) => (
        <li key={`${item.at} ${index}`} className="relative pb-4 pl-5 last:pb-0">
          <span
            aria-hidden
            className={`absolute top-1.5 -left-[5px] size-2.5 rounded-full border-2 border-panel ${DOT[item.state] ?? 'bg-idle'}`}
          />
          <p className="flex flex-wrap items-baseline gap-x-2 text-base">
            <span className="font-medium">{words[item.state] ?? item.state}</span>
            <time dateTime={new Date(item.at).toISOString()} className="num text-xs text-ink-3">
              {moment(item.at, language)}
            </time>
          </p>
          {item.reason ? (
            <p className="mt-0.5 line-clamp-4 font-mono text-xs break-words whitespace-pre-wrap text-ink-2">
              {item.reason}
            </p>
          ) : null}
        </li>
      ))}
    </ol>
  );
}
