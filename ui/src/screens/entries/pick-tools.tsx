import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { useText } from '../../i18n';
import { Search } from '../../parts/search';
import type { CatalogTool } from '../../store/tools';

interface Props {
  tools: CatalogTool[];
  complete: boolean;
  picked: ReadonlySet<string>;
  onChange: (picked: ReadonlySet<string>) => void;
}

type Row = { kind: 'server'; server: string; tools: CatalogTool[] } | { kind: 'tool'; tool: CatalogTool };

const keyOf = (tool: CatalogTool) => `${tool.server}:${tool.name}`;
const ROW = 36;

function rowsOf(tools: CatalogTool[], query: string): Row[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = Map.groupBy(
    tools.filter((tool) => words.every((word) => tool.haystack.includes(word))),
    (tool) => tool.server,
  );
  return [...groups].flatMap(([server, inside]): Row[] => [
    { kind: 'server', server, tools: inside },
    ...inside.map((tool): Row => ({ kind: 'tool', tool })),
  ]);
}

/** The catalog with boxes to tick, by server. */
export function PickTools({ tools, complete, picked, onChange }: Props) {
  const t = useText();
  const [query, setQuery] = useState('');
  const box = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(tools, query), [tools, query]);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  const set = (some: CatalogTool[], on: boolean) => {
    const next = new Set(picked);
    some.forEach((tool) => (on ? next.add(keyOf(tool)) : next.delete(keyOf(tool))));
    onChange(next);
  };
  if (complete && tools.length === 0) {
    return <p className="rounded-lg border border-line bg-sunken p-4 text-base text-ink-2">{t.entries.noTools}</p>;
  }
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{t.entries.pickTools}</legend>
      <div className="mb-2 flex">
        <Search label={t.entries.searchTools} value={query} onChange={setQuery} />
      </div>
      <div ref={box} className="h-72 overflow-y-auto rounded-lg border border-line-strong bg-panel">
        <div className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return row ? (
              <label
                key={item.key}
                className={`absolute inset-x-0 top-0 flex cursor-pointer items-center gap-2.5 border-b border-line px-3 text-sm hover:bg-hover ${row.kind === 'server' ? 'bg-sunken font-semibold' : 'pl-6'}`}
                style={{ height: ROW, transform: `translateY(${item.start}px)` }}
              >
                {row.kind === 'server' ? (
                  <ServerBox row={row} picked={picked} set={set} />
                ) : (
                  <>
                    <input
                      type="checkbox"
                      className="size-4 accent-accent"
                      checked={picked.has(keyOf(row.tool))}
                      onChange={(event) => set([row.tool], event.target.checked)}
                    />
                    <span className="shrink-0 font-mono">{row.tool.name}</span>
                    <span className="truncate text-xs text-ink-3">{row.tool.description}</span>
                  </>
                )}
              </label>
            ) : null;
          })}
        </div>
      </div>
    </fieldset>
  );
}

interface ServerBoxProps {
  row: Extract<Row, { kind: 'server' }>;
  picked: ReadonlySet<string>;
  set: (tools: CatalogTool[], on: boolean) => void;
}

function ServerBox({ row, picked, set }: ServerBoxProps) {
  const some = row.tools.filter((tool) => picked.has(keyOf(tool))).length;
  return (
    <>
      <input
        type="checkbox"
        className="size-4 accent-accent"
        checked={some === row.tools.length}
        ref={(node) => {
          if (node) {
            node.indeterminate = some > 0 && some < row.tools.length;
          }
        }}
        onChange={(event) => set(row.tools, event.target.checked)}
      />
      <span className="flex-1 truncate">{row.server}</span>
      <span className="num text-xs font-normal text-ink-3">
        {some} / {row.tools.length}
      </span>
    </>
  );
}
