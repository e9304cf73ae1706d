// The tools of the servers, read when a screen shows them and kept until the server's catalog changes.

import { useEffect, useState } from 'react';
import { listTools } from '../api/servers';
import type { Tool } from '../api/types';
import { useCell } from './cell';
import { explained } from '../i18n';
import { allServers, catalogs, cellOf } from './servers';

export interface CatalogTool extends Tool {
  server: string;
  /** What the search looks into, in small letters. */
  haystack: string;
}

const kept = new Map<string, { stamp: string; tools: CatalogTool[] }>();
/** Browsers open six connections to one host; leave some for other things. */
const AT_ONCE = 4;

function stampOf(server: string): string {
  const record = cellOf(server)?.get();
  return record ? `${record.id} ${record.since} ${record.toolCount} ${record.status}` : '';
}

export async function toolsOf(server: string, fresh = false): Promise<CatalogTool[]> {
  const stamp = stampOf(server);
  const known = kept.get(server);
  if (known && known.stamp === stamp && !fresh) {
    return known.tools;
  }
  const tools = (await listTools(server)).map((tool) => ({
    ...tool,
    server,
    haystack: `${server} ${tool.name} ${tool.title ?? ''} ${tool.description ?? ''}`.toLowerCase(),
  }));
  kept.set(server, { stamp, tools });
  return tools;
}

export interface Loading<T> {
  data: T | undefined;
  error: string | undefined;
}

export function useTools(server: string): Loading<CatalogTool[]> {
  const [state, setState] = useState<Loading<CatalogTool[]>>({ data: undefined, error: undefined });
  const revision = useCell(catalogs);
  useEffect(() => {
    let wanted = true;
    toolsOf(server).then(
      (data) => wanted && setState({ data, error: undefined }),
      (error: unknown) => wanted && setState({ data: undefined, error: explained(error) }),
    );
    return () => {
      wanted = false;
    };
  }, [server, revision]);
  return state;
}

/** Every tool of every connected server. A server that fails is left out. */
export function useCatalog(): { tools: CatalogTool[]; complete: boolean } {
  const [state, setState] = useState<{ tools: CatalogTool[]; complete: boolean }>({ tools: [], complete: false });
  const revision = useCell(catalogs);
  useEffect(() => {
    let wanted = true;
    const queue = allServers()
      .filter((server) => server.toolCount > 0)
      .map((server) => server.name);
    const order = [...queue];
    const found = new Map<string, CatalogTool[]>();
    const work = async () => {
      for (let name = queue.shift(); name !== undefined && wanted; name = queue.shift()) {
        try {
          found.set(name, await toolsOf(name));
        } catch {
          // The server was removed meanwhile; the next revision shows that.
        }
      }
    };
    void Promise.all(Array.from({ length: AT_ONCE }, work)).then(() => {
      if (wanted) {
        setState({ tools: order.flatMap((name) => found.get(name) ?? []), complete: true });
      }
    });
    return () => {
      wanted = false;
    };
  }, [revision]);
  return state;
}
