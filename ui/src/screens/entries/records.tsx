import { Ellipsis, Pencil, Plus, Trash2, X } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { addBinding, deleteBinding, deleteToolRecord } from '../../api/entries';
import type { Entry, ToolRecord } from '../../api/types';
import { explained, useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Button } from '../../parts/button';
import Confirm from '../../parts/confirm';
import { Menu, MenuItem, MenuLine } from '../../parts/menu';
import { Search } from '../../parts/search';
import { toast } from '../../parts/toast';
import { overlay } from '../../store/shell';
import type { EntryData } from './data';

const STEP = 20;

interface Use {
  entry: Entry;
  on: boolean;
}

function usesOf(data: EntryData): Map<number, Use[]> {
  const uses = new Map<number, Use[]>();
  for (const entry of data.entries) {
    for (const { tool_id: tool, status } of data.bindings.get(entry.id) ?? []) {
      uses.set(tool, [...(uses.get(tool) ?? []), { entry, on: status }]);
    }
  }
  return uses;
}

/** The tool records, each with the entries that bind it. */
export function Records({ data, onChange }: { data: EntryData; onChange: () => void }) {
  const t = useText();
  const [query, setQuery] = useState('');
  const [shown, setShown] = useState(STEP);
  const uses = useMemo(() => usesOf(data), [data]);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = data.records.filter(({ name, server, tool }) =>
    words.every((word) => `${name} ${server}:${tool}`.toLowerCase().includes(word)),
  );
  return (
    <section aria-label={t.records.title} className="mt-8">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <div className="min-w-0 flex-1 basis-56">
          <h2 className="text-lg font-semibold tracking-tight">{t.records.title}</h2>
          <p className="mt-0.5 text-base text-ink-2">{t.records.intro}</p>
        </div>
        {data.records.length > 0 ? (
          <div className="flex w-full sm:w-64">
            <Search label={t.records.search} value={query} onChange={setQuery} />
          </div>
        ) : null}
        <Button onClick={() => overlay.set({ kind: 'record' })}>
          <Plus size={15} aria-hidden />
          {t.records.add}
        </Button>
      </div>
      {found.length === 0 ? (
        <p className="rounded-xl border border-line bg-panel p-6 text-center text-base text-ink-2">
          {data.records.length === 0 ? t.records.empty : t.records.nothing}
        </p>
      ) : (
        <ul className="divide-y divide-line rounded-xl border border-line bg-panel shadow-card">
          {found.slice(0, shown).map((record) => (
            <RecordRow
              key={record.id}
              record={record}
              uses={uses.get(record.id) ?? []}
              entries={data.entries}
              onChange={onChange}
            />
          ))}
        </ul>
      )}
      {found.length > shown ? (
        <div className="p-2 text-center">
          <Button small kind="ghost" onClick={() => setShown(shown + STEP)}>
            {t.servers.moreTools(Math.min(found.length - shown, STEP))}
          </Button>
        </div>
      ) : null}
    </section>
  );
}

interface RowProps {
  record: ToolRecord;
  uses: Use[];
  entries: Entry[];
  onChange: () => void;
}

function RecordRow({ record, uses, entries, onChange }: RowProps) {
  const t = useText();
  const [asking, setAsking] = useState(false);
  const actions = useRef<HTMLButtonElement>(null);
  const others = entries.filter((entry) => uses.every((use) => use.entry.id !== entry.id));
  const act = async (work: Promise<unknown>, done?: string) => {
    try {
      await work;
      if (done !== undefined) {
        toast('good', done);
      }
    } catch (error) {
      toast('bad', t.servers.failed(record.name), explained(error));
    }
    onChange();
  };
  const unbind = (entry: Entry) => {
    // The button goes away with the binding: the focus stays in the row.
    actions.current?.focus();
    void act(deleteBinding(entry.id, record.id), t.records.unbound(record.name, entry.name));
  };
  return (
    <li data-record={record.name} className="flex items-start gap-3 px-4 py-3">
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <h3 className="font-mono text-sm font-medium break-all">{record.name}</h3>
          <span className="font-mono text-xs break-all text-ink-3">
            {record.server}:{record.tool}
          </span>
          {record.missing ? <Badge tone="warn">{t.entries.stale}</Badge> : null}
        </div>
        {record.description ? <p className="mt-0.5 line-clamp-2 text-sm text-ink-2">{record.description}</p> : null}
        <ul aria-label={t.records.inEntries} className="mt-1.5 flex flex-wrap items-center gap-1.5">
          {uses.map(({ entry, on }) => (
            <li
              key={entry.id}
              className="inline-flex max-w-full items-center rounded border border-line bg-sunken pl-1.5 text-xs text-ink-2"
            >
              <span className={`truncate ${on ? '' : 'line-through'}`}>{entry.name}</span>
              <button
                type="button"
                aria-label={t.records.unbind(record.name, entry.name)}
                onClick={() => unbind(entry)}
                className="grid size-6 shrink-0 place-items-center rounded hover:bg-hover hover:text-ink"
              >
                <X size={12} aria-hidden />
              </button>
            </li>
          ))}
          {uses.length === 0 ? <li className="text-xs text-ink-3">{t.records.inNone}</li> : null}
          {others.length > 0 ? (
            <li>
              <Menu
                trigger={
                  <button
                    type="button"
                    aria-label={t.records.addNamed(record.name)}
                    className="inline-flex h-6 items-center gap-1 rounded px-1.5 text-xs text-ink-2 hover:bg-hover hover:text-ink"
                  >
                    <Plus size={12} aria-hidden />
                    {t.records.addTo}
                  </button>
                }
              >
                {others.map((entry) => (
                  <MenuItem key={entry.id} onSelect={() => void act(addBinding(entry.id, record.id))}>
                    <span className="truncate">{entry.name}</span>
                  </MenuItem>
                ))}
              </Menu>
            </li>
          ) : null}
        </ul>
      </div>
      <Menu
        trigger={
          <button
            ref={actions}
            type="button"
            aria-label={t.entries.moreNamed(record.name)}
            className="grid size-7 shrink-0 place-items-center rounded-md text-ink-2 hover:bg-hover hover:text-ink"
          >
            <Ellipsis size={16} aria-hidden />
          </button>
        }
      >
        <MenuItem icon={<Pencil size={14} />} onSelect={() => overlay.set({ kind: 'record', record })}>
          {t.common.edit}
        </MenuItem>
        <MenuLine />
        <MenuItem icon={<Trash2 size={14} />} danger onSelect={() => setAsking(true)}>
          {t.common.delete}
        </MenuItem>
      </Menu>
      {asking ? (
        <Confirm
          title={t.records.deleteTitle(record.name)}
          text={t.records.deleteText(uses.map(({ entry }) => entry.name).join(', '))}
          action={t.common.delete}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await deleteToolRecord(record.id);
            toast('good', t.entries.deleted(record.name));
            onChange();
          }}
        />
      ) : null}
    </li>
  );
}
