// Calls from the event stream. Under load there may be thousands a second: they are collected and shown once a
// second, because each new row moves all others. A single call is shown at once.

import type { Ended } from '../api/events';
import type { Activity, Call } from '../api/types';
import { Cell } from './cell';

const KEEP = 200;
const SOON = 250;
const PACE = 1_000;

export interface Calls {
  inFlight: readonly Call[];
  recent: readonly Call[];
}

const NONE: readonly Call[] = [];

export const calls = new Cell<Calls>({ inFlight: NONE, recent: NONE });
/** Increased when calls may be missing. */
export const gap = new Cell(0);

let inFlight = new Map<Call['id'], Call>();
let recent: Call[] = [];
/** Calls that have just begun: most end before a row for them would be seen. */
let fresh = new Set<Call['id']>();
let timer: number | undefined;
let shown = 0;

function show(): void {
  timer ??= window.setTimeout(
    () => {
      timer = undefined;
      shown = performance.now();
      const before = calls.get();
      const running = [...inFlight.values()].filter(({ id }) => !fresh.has(id));
      const waits = fresh.size > 0;
      fresh = new Set();
      if (running.length > 0 || before.inFlight.length > 0 || before.recent !== recent) {
        calls.set({ inFlight: running.length > 0 ? running : NONE, recent });
      }
      if (waits) {
        show();
      }
    },
    Math.max(SOON, shown + PACE - performance.now()),
  );
}

export function started(call: Call): void {
  inFlight.set(call.id, call);
  fresh.add(call.id);
  show();
}

export function ended(end: Ended): void {
  const call = inFlight.get(end.id);
  if (call) {
    inFlight.delete(end.id);
    fresh.delete(end.id);
    recent = [{ ...call, ...end }, ...recent].slice(0, KEEP);
    show();
  }
}

/** A known call stays the same object, so that its row is not drawn again. */
export function takeActivity(activity: Activity): void {
  const known = new Map(recent.map((call) => [call.id, call]));
  const going = inFlight;
  inFlight = new Map(activity.inFlight.map((call) => [call.id, going.get(call.id) ?? call]));
  recent = activity.recent.slice(0, KEEP).map((call) => known.get(call.id) ?? call);
  show();
}

export function resync(): void {
  gap.set(gap.get() + 1);
}
