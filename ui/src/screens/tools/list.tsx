import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { useText } from '../../i18n';
import { href } from '../../shell/route';
import type { CatalogTool } from '../../store/tools';

const ROW = 58;

/** Thousands of rows, of which only those in view exist. */
export function ToolList({ tools, chosen }: { tools: CatalogTool[]; chosen: CatalogTool | undefined }) {
  const t = useText();
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: tools.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  return (
    <div
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={t.tools.list}
      className="h-[calc(100dvh-15.5rem)] min-h-72 overflow-y-auto rounded-xl border border-line bg-panel shadow-card"
    >
      <ul className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const tool = tools[row.index];
          return tool ? (
            <li
              key={row.key}
              aria-setsize={tools.length}
              aria-posinset={row.index + 1}
              className="absolute inset-x-0 top-0 border-b border-line"
              style={{ height: ROW, transform: `translateY(${row.start}px)` }}
            >
              <a
                href={href('tools', tool.server, tool.name)}
                aria-current={tool === chosen ? 'true' : undefined}
                className="flex h-full flex-col justify-center gap-0.5 px-3.5 hover:bg-hover focus-visible:outline-offset-[-2px] aria-[current]:bg-accent-soft"
              >
                <span className="flex items-baseline gap-2">
                  <span className="min-w-0 flex-1 truncate font-mono text-sm font-medium">{tool.name}</span>
                  <span className="max-w-28 shrink-0 truncate text-xs text-ink-3">{tool.server}</span>
                </span>
                <span className="truncate text-xs text-ink-2">{tool.description ?? tool.title ?? ''}</span>
              </a>
            </li>
          ) : null;
        })}
      </ul>
    </div>
  );
}
