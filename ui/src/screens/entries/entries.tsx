import { KeyRound, Plus } from 'lucide-react';
import { listBindings, listEntries, listToolRecords } from '../../api/entries';
import type { Entry, NewEntry } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Empty } from '../../parts/empty';
import { useLoad } from '../../parts/load';
import { Notice } from '../../parts/notice';
import { go, useRoute } from '../../shell/route';
import { useCell } from '../../store/cell';
import { entriesRevision } from '../../store/live';
import { overlay } from '../../store/shell';
import { EntryCard } from './card';
import { CreateEntry } from './create';
import { Matrix } from './matrix';
import { Records } from './records';
import type { EntryData } from './data';

/** With more entries, reading the bindings of each would take too long. */
const MOST = 100;

async function read(signal: AbortSignal): Promise<EntryData> {
  const [entries, records] = await Promise.all([listEntries(signal), listToolRecords(signal)]);
  const bound = await Promise.all(entries.slice(0, MOST).map((entry) => listBindings(entry.id, signal)));
  return { entries, records, bindings: new Map(entries.map((entry, at) => [entry.id, bound[at] ?? []])) };
}

/** Above the page, so that no other address takes a new key away. */
const connect = (entry: Entry | NewEntry) => overlay.set({ kind: 'connect', entry });

export default function Entries() {
  const t = useText();
  const { rest } = useRoute();
  const revision = useCell(entriesRevision);
  const { data, error, missing, reload } = useLoad(read, [revision]);
  const creating = rest[0] === 'new';
  const create = (
    <Button kind="solid" onClick={() => go('entries', 'new')}>
      <Plus size={15} aria-hidden />
      {t.entries.add}
    </Button>
  );
  return (
    <>
      <div className="mb-5 flex flex-wrap items-center gap-3">
        <div className="min-w-0 flex-1 basis-56">
          <h1 className="text-xl font-semibold tracking-tight">{t.entries.title}</h1>
          <p className="mt-0.5 text-base text-ink-2">{t.entries.intro}</p>
        </div>
        {data?.entries.length ? create : null}
      </div>
      {missing ? (
        <Notice kind="note">{t.entries.unavailable}</Notice>
      ) : error ? (
        <Notice className="mb-4">{error}</Notice>
      ) : null}
      {data?.entries.length === 0 ? (
        <Empty icon={<KeyRound size={22} />} title={t.entries.emptyTitle} text={t.entries.emptyText}>
          {create}
        </Empty>
      ) : null}
      {data && data.entries.length > 0 ? (
        <>
          <ul aria-label={t.entries.list} className="mb-8 grid grid-cols-1 gap-3 md:grid-cols-2">
            {data.entries.map((entry) => (
              <li key={entry.id}>
                <EntryCard
                  entry={entry}
                  bindings={data.bindings.get(entry.id) ?? []}
                  onConnect={connect}
                  onChange={reload}
                />
              </li>
            ))}
          </ul>
          <Matrix data={data} onChange={reload} />
        </>
      ) : null}
      {data ? <Records data={data} onChange={reload} /> : null}
      {creating ? (
        <CreateEntry
          records={data?.records ?? []}
          onClose={() => go('entries')}
          onCreated={(entry) => {
            go('entries');
            reload();
            connect(entry);
          }}
        />
      ) : null}
    </>
  );
}
