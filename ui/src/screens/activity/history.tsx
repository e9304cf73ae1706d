import { memo, useState } from 'react';
import type { Call, Outcome } from '../../api/types';
import { useLanguage, useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Button } from '../../parts/button';
import { clock } from '../../parts/time';
import { href } from '../../shell/route';

const TONE: Record<Outcome, 'good' | 'warn' | 'bad' | 'plain'> = {
  ok: 'good',
  tool_error: 'warn',
  error: 'bad',
  cancelled: 'plain',
};
const STEP = 50;

export function History({ calls, callerOf }: { calls: readonly Call[]; callerOf: (call: Call) => string }) {
  const t = useText();
  const [shown, setShown] = useState(STEP);
  return (
    <div className="overflow-hidden rounded-xl border border-line bg-panel shadow-card">
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t.activity.history}>
        {/* Columns of a fixed width: a new row moves the others and measures none. */}
        <table className="w-full min-w-120 table-fixed text-left text-sm">
          <thead className="border-b border-line bg-sunken text-xs text-ink-2">
            <tr>
              <th className="w-24 px-4 py-2 font-medium">{t.activity.at}</th>
              <th className="px-2 py-2 font-medium">{t.activity.tool}</th>
              <th className="hidden w-40 px-2 py-2 font-medium sm:table-cell">{t.activity.entry}</th>
              <th className="w-28 px-2 py-2 font-medium">{t.activity.outcome}</th>
              <th className="w-24 px-4 py-2 text-right font-medium">{t.activity.took}</th>
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {calls.slice(0, shown).map((call) => (
              <Row key={call.id} call={call} caller={callerOf(call)} />
            ))}
          </tbody>
        </table>
      </div>
      {calls.length > shown ? (
        <div className="border-t border-line p-2 text-center">
          <Button small kind="ghost" onClick={() => setShown(shown + STEP)}>
            {t.servers.moreTools(Math.min(STEP, calls.length - shown))}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

const Row = memo(function Row({ call, caller }: { call: Call; caller: string }) {
  const t = useText();
  const language = useLanguage();
  return (
    <tr data-call={`${call.server}:${call.tool}`}>
      <td className="num px-4 py-2 whitespace-nowrap text-ink-2">{clock(call.at, language)}</td>
      <td className="px-2 py-2">
        <a href={href('tools', call.server, call.tool)} className="block truncate font-mono text-xs hover:underline">
          <span className="text-ink-3">{call.server}:</span>
          {call.tool}
        </a>
        {call.error ? <p className="mt-0.5 line-clamp-2 text-xs break-words text-bad-ink">{call.error}</p> : null}
      </td>
      <td className="hidden truncate px-2 py-2 text-ink-2 sm:table-cell">{caller}</td>
      <td className="px-2 py-2">
        {call.outcome ? <Badge tone={TONE[call.outcome]}>{t.activity[call.outcome]}</Badge> : null}
      </td>
      <td className="num px-4 py-2 text-right whitespace-nowrap text-ink-2">{t.tryIt.took(call.durationMs ?? 0)}</td>
    </tr>
  );
});
