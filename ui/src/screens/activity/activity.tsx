import { Activity as Pulse } from 'lucide-react';
import { useEffect } from 'react';
import { readActivity } from '../../api/servers';
import type { Call } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Empty } from '../../parts/empty';
import { useLoad } from '../../parts/load';
import { Notice } from '../../parts/notice';
import { Search } from '../../parts/search';
import { go } from '../../shell/route';
import { calls, gap, takeActivity } from '../../store/calls';
import { useCell } from '../../store/cell';
import { useKept } from '../../store/kept';
import { useCallers } from './callers';
import { Charts } from './charts';
import { History } from './history';
import { InFlight } from './in-flight';

const LIMIT = 200;
const POLL = 2_000;

/** Calls in flight and recent calls. */
export default function Activity() {
  const t = useText();
  const callerOf = useCallers();
  const missed = useCell(gap);
  const { data, error, missing } = useLoad((signal) => readActivity(LIMIT, signal), [missed], POLL);
  const { inFlight, recent } = useCell(calls);
  const [query, setQuery] = useKept('activity search', () => '');
  useEffect(() => {
    if (data) {
      takeActivity(data);
    }
  }, [data]);
  const fits = (call: Call) =>
    `${call.server}:${call.tool} ${callerOf(call)}`.toLowerCase().includes(query.toLowerCase());
  const quiet = inFlight.length === 0 && recent.length === 0;
  return (
    <>
      <h1 className="mb-5 text-xl font-semibold tracking-tight">{t.activity.title}</h1>
      {missing ? (
        <Notice kind="note" className="mb-4">
          {t.activity.unavailable}
        </Notice>
      ) : error ? (
        <Notice className="mb-4">{error}</Notice>
      ) : null}
      {data && quiet ? (
        <Empty icon={<Pulse size={22} />} title={t.activity.emptyTitle} text={t.activity.emptyText}>
          <Button kind="solid" onClick={() => go('tools')}>
            {t.activity.tryTool}
          </Button>
        </Empty>
      ) : null}
      {data && !quiet ? (
        <div className="space-y-7">
          <Charts seconds={data.perSecond} />
          <InFlight calls={inFlight} callerOf={callerOf} />
          <section aria-label={t.activity.history}>
            <div className="mb-3 flex flex-wrap items-center gap-3">
              <h2 className="flex-1 text-lg font-semibold tracking-tight">{t.activity.history}</h2>
              <div className="flex w-full sm:w-64">
                <Search main label={t.activity.filter} value={query} onChange={setQuery} />
              </div>
            </div>
            <History calls={recent.filter(fits)} callerOf={callerOf} />
          </section>
        </div>
      ) : null}
    </>
  );
}
