// The servers, each in a cell of its own, so that news of one re-renders one
// card. What depends on all of them (order, counts) is recomputed at most once
// a frame and announced only if it came out different.

import type { ServerRecord, Status } from '../api/types';
import { Cell } from './cell';

const records = new Map<string, Cell<ServerRecord>>();

export type Counts = Record<Status, number> & { all: number; tools: number };
const NONE: Counts = { all: 0, tools: 0, connected: 0, connecting: 0, error: 0, disconnected: 0 };

/** Names, sorted. */
export const names = new Cell<readonly string[]>([]);
export const counts = new Cell<Counts>(NONE);
/** Goes up with any change of any server; for lists that filter by what changes. */
export const revision = new Cell(0);
/** Goes up with any change of a catalog. */
export const catalogs = new Cell(0);

/** Increased with every event; `heard` has its value at the last event of each server. */
let clock = 0;
const heard = new Map<string, number>();

let due = false;

function settle(): void {
  if (!due) {
    due = true;
    // Not a frame: a hidden tab has none, and its title shall be right too.
    queueMicrotask(() => {
      due = false;
      recount();
    });
  }
}

function recount(): void {
  const next: Counts = { ...NONE };
  for (const cell of records.values()) {
    const server = cell.get();
    next.all += 1;
    next.tools += server.toolCount;
    next[server.status] += 1;
  }
  const before = counts.get();
  if ((Object.keys(next) as (keyof Counts)[]).some((key) => next[key] !== before[key])) {
    counts.set(next);
  }
  const sorted = [...records.keys()].sort((a, b) => a.localeCompare(b));
  const known = names.get();
  if (sorted.length !== known.length || sorted.some((name, at) => name !== known[at])) {
    names.set(sorted);
  }
  revision.set(revision.get() + 1);
}

export function cellOf(name: string): Cell<ServerRecord> | undefined {
  return records.get(name);
}

export function allServers(): ServerRecord[] {
  return names.get().flatMap((name) => records.get(name)?.get() ?? []);
}

/**
 * Call it before a request, and pass the answer to the returned functions. They ignore an answer that is older
 * than the events received meanwhile.
 */
export function asking(): { one: (server: ServerRecord) => void; all: (servers: ServerRecord[]) => void } {
  const since = clock;
  return {
    one: (server) => {
      if ((heard.get(server.name) ?? 0) <= since) {
        take(server);
      }
    },
    all: (servers) => {
      if (clock === since) {
        takeAll(servers);
      }
    },
  };
}

export function take(server: ServerRecord): void {
  const cell = records.get(server.name);
  heard.set(server.name, ++clock);
  if (!cell) {
    records.set(server.name, new Cell(server));
    settle();
    return;
  }
  const before = cell.get();
  if (!same(before, server)) {
    cell.set(server);
    settle();
    if (before.toolCount !== server.toolCount || before.status !== server.status) {
      touchCatalogs();
    }
  }
}

/** A complete list: servers that are not in it are removed. */
export function takeAll(servers: ServerRecord[]): void {
  const there = new Set(servers.map((server) => server.name));
  for (const name of [...records.keys()]) {
    if (!there.has(name)) {
      records.delete(name);
    }
  }
  servers.forEach(take);
  clock += 1;
  settle();
  touchCatalogs();
}

export function drop(name: string): void {
  heard.set(name, ++clock);
  if (records.delete(name)) {
    settle();
    touchCatalogs();
  }
}

export function touchCatalogs(): void {
  catalogs.set(catalogs.get() + 1);
}

function same(a: ServerRecord, b: ServerRecord): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
