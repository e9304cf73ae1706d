import { useMemo, useSyncExternalStore } from 'react';
import type { Status } from '../../api/types';
import { allServers, revision } from '../../store/servers';
import { target } from './status';

export type Filter = 'all' | Status;

/** The names to show; the same array while they do not change. */
function watcher(query: string, filter: Filter): () => readonly string[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  let last: readonly string[] = [];
  let seen = -1;
  return () => {
    if (seen === revision.get()) {
      return last;
    }
    seen = revision.get();
    const next = allServers()
      .filter((server) => filter === 'all' || server.status === filter)
      .filter((server) => {
        const text = `${server.name} ${target(server)} ${server.transport ?? ''}`.toLowerCase();
        return words.every((word) => text.includes(word));
      })
      .map((server) => server.name);
    if (next.length !== last.length || next.some((name, at) => name !== last[at])) {
      last = next;
    }
    return last;
  };
}

export function useVisible(query: string, filter: Filter): readonly string[] {
  const read = useMemo(() => watcher(query, filter), [query, filter]);
  return useSyncExternalStore(revision.subscribe, read);
}
