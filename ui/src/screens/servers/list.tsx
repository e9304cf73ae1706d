import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState } from 'react';
import { useText } from '../../i18n';
import { cellOf } from '../../store/servers';
import { ServerCard } from './card';

const CARD = 84;

/** Only the cards near the window exist; each is as tall as it wants. */
export function ServerList({ names }: { names: readonly string[] }) {
  const t = useText();
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    setTop(list.current?.offsetTop ?? 0);
  }, []);
  const rows = useWindowVirtualizer({
    count: names.length,
    estimateSize: () => CARD,
    overscan: 6,
    scrollMargin: top,
    getItemKey: (index) => names[index] ?? index,
  });
  return (
    <ul ref={list} aria-label={t.servers.title} className="relative" style={{ height: rows.getTotalSize() }}>
      {rows.getVirtualItems().map((row) => {
        const cell = cellOf(names[row.index] ?? '');
        return (
          <li
            key={row.key}
            data-index={row.index}
            ref={rows.measureElement}
            aria-setsize={names.length}
            aria-posinset={row.index + 1}
            className="absolute inset-x-0 top-0 pb-2"
            style={{ transform: `translateY(${row.start - top}px)` }}
          >
            {cell ? <ServerCard cell={cell} /> : null}
          </li>
        );
      })}
    </ul>
  );
}
