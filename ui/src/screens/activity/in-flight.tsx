import { memo } from 'react';
import type { Call } from '../../api/types';
import { useText } from '../../i18n';
import { Light } from '../../parts/light';
import { useNow } from '../../parts/time';

const MOST = 50;

export const InFlight = memo(function InFlight({
  calls,
  callerOf,
}: {
  calls: readonly Call[];
  callerOf: (call: Call) => string;
}) {
  const t = useText();
  const now = useNow(500, calls.length === 0);
  return (
    <section aria-label={t.activity.inFlight}>
      <h2 className="mb-3 text-lg font-semibold tracking-tight">
        {t.activity.inFlight} <span className="num text-ink-3">{calls.length}</span>
      </h2>
      {calls.length === 0 ? (
        <p className="rounded-xl border border-line bg-panel px-4 py-3.5 text-base text-ink-3">{t.activity.none}</p>
      ) : (
        <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-panel shadow-card">
          {calls.slice(0, MOST).map((call) => (
            <li key={call.id} className="flex items-center gap-2.5 px-4 py-2.5 text-sm">
              <Light shade="warn" beating />
              <span className="min-w-0 flex-1 truncate font-mono">
                <span className="text-ink-3">{call.server}:</span>
                {call.tool}
              </span>
              <span className="hidden text-ink-2 sm:block">{callerOf(call)}</span>
              <span className="num w-16 text-right text-ink-2">{t.tryIt.took(Math.max(0, now - call.at))}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
});
