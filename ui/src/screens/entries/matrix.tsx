import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { addBinding, changeBinding } from '../../api/entries';
import { ApiFailure } from '../../api/http';
import type { Entry } from '../../api/types';
import { explained, useText } from '../../i18n';
import { Search } from '../../parts/search';
import { toast } from '../../parts/toast';
import { useCatalog, type CatalogTool } from '../../store/tools';
import { recordsFor, type EntryData } from './data';

interface Row {
  key: string;
  server: string;
  tool: string;
  offered: CatalogTool | undefined;
  /** Tool records by entry, with whether they are switched on. */
  cells: Map<number, { tool: number; on: boolean }>;
}

const ROW = 38;

function rowsOf(data: EntryData, tools: CatalogTool[]): Row[] {
  const rows = new Map<string, Row>();
  for (const tool of tools) {
    const key = `${tool.server}:${tool.name}`;
    rows.set(key, { key, server: tool.server, tool: tool.name, offered: tool, cells: new Map() });
  }
  const records = new Map(data.records.map((record) => [record.id, record]));
  for (const [entry, bindings] of data.bindings) {
    for (const binding of bindings) {
      const record = records.get(binding.tool_id);
      if (record) {
        const key = `${record.server}:${record.tool}`;
        const row = rows.get(key) ?? {
          key,
          server: record.server,
          tool: record.tool,
          offered: undefined,
          cells: new Map(),
        };
        row.cells.set(entry, { tool: record.id, on: binding.status });
        rows.set(key, row);
      }
    }
  }
  return [...rows.values()].sort((a, b) => a.key.localeCompare(b.key));
}

/** Where the entry has another tool of that name, this one gets its server's in front. */
async function bind(entry: Entry, tool: CatalogTool, data: EntryData): Promise<void> {
  for (const inFull of [false, true]) {
    const [record] = await recordsFor([tool], data.records, inFull);
    try {
      await addBinding(entry.id, record?.id ?? 0);
      return;
    } catch (error) {
      const clash = error instanceof ApiFailure && error.status === 422;
      if (!clash || inFull) {
        throw error;
      }
    }
  }
}

/** Bindings: entries as columns, tools as rows. */
export function Matrix({ data, onChange }: { data: EntryData; onChange: () => void }) {
  const t = useText();
  const { tools } = useCatalog();
  const [query, setQuery] = useState('');
  const [onlyBound, setOnlyBound] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const all = useMemo(() => rowsOf(data, tools), [data, tools]);
  const rows = all.filter(
    (row) => (!onlyBound || row.cells.size > 0) && row.key.toLowerCase().includes(query.toLowerCase()),
  );
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
  });

  const toggle = async (row: Row, entry: Entry) => {
    try {
      const cell = row.cells.get(entry.id);
      if (cell) {
        await changeBinding(entry.id, cell.tool, !cell.on);
      } else if (row.offered) {
        await bind(entry, row.offered, data);
      }
    } catch (error) {
      toast('bad', t.servers.failed(entry.name), explained(error));
    }
    onChange();
  };

  return (
    <section aria-label={t.entries.matrix}>
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <h2 className="flex-1 text-lg font-semibold tracking-tight">{t.entries.matrix}</h2>
        <label className="flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={onlyBound}
            onChange={(event) => setOnlyBound(event.target.checked)}
          />
          {t.entries.onlyBound}
        </label>
        <div className="flex w-full sm:w-64">
          <Search label={t.entries.searchTools} value={query} onChange={setQuery} />
        </div>
      </div>
      {rows.length === 0 ? (
        <p className="rounded-xl border border-line bg-panel p-6 text-center text-base text-ink-2">
          {t.entries.matrixEmpty}
        </p>
      ) : (
        <div
          ref={box}
          tabIndex={0}
          role="region"
          aria-label={t.entries.matrix}
          className="max-h-[60dvh] overflow-auto rounded-xl border border-line bg-panel shadow-card"
        >
          <div role="table" aria-label={t.entries.matrix} aria-rowcount={rows.length + 1} className="w-max min-w-full">
            <div
              role="row"
              className="sticky top-0 z-10 flex border-b border-line bg-sunken text-xs font-medium text-ink-2"
            >
              <div role="columnheader" className="sticky left-0 w-44 shrink-0 bg-sunken px-3 py-2 sm:w-80">
                {t.entries.tool}
              </div>
              {data.entries.map((entry) => (
                <div
                  key={entry.id}
                  role="columnheader"
                  title={entry.name}
                  className={`w-28 flex-1 truncate px-2 py-2 text-center ${entry.status ? '' : 'line-through'}`}
                >
                  {entry.name}
                </div>
              ))}
            </div>
            <div role="rowgroup" className="relative" style={{ height: list.getTotalSize() }}>
              {list.getVirtualItems().map((item) => {
                const row = rows[item.index];
                return row ? (
                  <div
                    key={row.key}
                    role="row"
                    aria-rowindex={item.index + 2}
                    className="absolute inset-x-0 top-0 flex items-center border-b border-line hover:bg-hover"
                    style={{ height: ROW, transform: `translateY(${item.start}px)` }}
                  >
                    <div
                      role="rowheader"
                      className="sticky left-0 flex w-44 shrink-0 items-baseline gap-1.5 truncate bg-panel px-3 text-sm sm:w-80"
                    >
                      <span className="truncate font-mono text-xs">
                        <span className="text-ink-3">{row.server}:</span>
                        {row.tool}
                      </span>
                      {row.offered ? null : <span className="shrink-0 text-2xs text-warn-ink">{t.entries.stale}</span>}
                    </div>
                    {data.entries.map((entry) => (
                      <div key={entry.id} role="cell" className="grid w-28 flex-1 place-items-center">
                        <input
                          type="checkbox"
                          aria-label={t.entries.bind(row.key, entry.name)}
                          className="size-4 accent-accent"
                          checked={row.cells.get(entry.id)?.on ?? false}
                          onChange={() => void toggle(row, entry)}
                        />
                      </div>
                    ))}
                  </div>
                ) : null;
              })}
            </div>
          </div>
        </div>
      )}
    </section>
  );
}
