// What keeps the store true: the event stream, and polling where there is none.

import { follow } from '../api/events';
import { isAbort } from '../api/http';
import { listServers } from '../api/servers';
import * as calls from './calls';
import { Cell } from './cell';
import * as servers from './servers';

export type Link = 'starting' | 'live' | 'polling' | 'down';

export const link = new Cell<Link>('starting');
/** False until the servers have been seen once. */
export const loaded = new Cell(false);
/** Goes up when entries, tool records or bindings changed somewhere. */
export const entriesRevision = new Cell(0);

export const touchEntries = () => entriesRevision.set(entriesRevision.get() + 1);

const POLL = 5_000;
/** A gateway that is frozen answers nothing, and refuses nothing either. */
const LOOK_LIMIT = 10_000;

export async function refresh(): Promise<void> {
  const { all } = servers.asking();
  all(await listServers(AbortSignal.timeout(LOOK_LIMIT)));
  loaded.set(true);
}

/** Runs until the function it returns is called. */
export function goLive(): () => void {
  let live = false;
  let poll: number | undefined;

  const look = async () => {
    window.clearTimeout(poll);
    try {
      await refresh();
      if (!live) {
        link.set('polling');
      }
    } catch (error) {
      if (!live && !isAbort(error)) {
        link.set('down');
      }
    }
    if (!live) {
      window.clearTimeout(poll);
      poll = window.setTimeout(look, POLL);
    }
  };

  const stop = follow({
    opened: () => {
      live = true;
      link.set('live');
      window.clearTimeout(poll);
    },
    lost: () => {
      if (live) {
        live = false;
        link.set('starting');
        void look();
      }
    },
    snapshot: (data) => {
      servers.takeAll(data.servers);
      loaded.set(true);
    },
    server: servers.take,
    server_removed: (data) => servers.drop(data.name),
    catalog: (data) => {
      const cell = servers.cellOf(data.server);
      if (cell) {
        servers.take({ ...cell.get(), toolCount: data.toolCount });
      }
      servers.touchCatalogs();
    },
    call_started: calls.started,
    call_ended: calls.ended,
    entries: touchEntries,
    resync: () => {
      touchEntries();
      calls.resync();
      void look();
    },
  });
  void look();
  return () => {
    live = true;
    window.clearTimeout(poll);
    stop();
  };
}
