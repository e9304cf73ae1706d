// Calls as the event stream tells of them. Under load there may be thousands a
// second: they are gathered and shown at most ten times a second.

import type { Ended } from '../api/events';
import type { Activity, Call } from '../api/types';
import { Cell } from './cell';

const KEEP = 200;
const PACE = 100;

export interface Calls {
  inFlight: readonly Call[];
  recent: readonly Call[];
}

export const calls = new Cell<Calls>({ inFlight: [], recent: [] });
/** Goes up when what we have may have gaps. */
export const gap = new Cell(0);

let inFlight = new Map<Call['id'], Call>();
let recent: Call[] = [];
let timer: number | undefined;

function show(): void {
  timer ??= window.setTimeout(() => {
    timer = undefined;
    calls.set({ inFlight: [...inFlight.values()], recent });
  }, PACE);
}

export function started(call: Call): void {
  inFlight.set(call.id, call);
  show();
}

export function ended(end: Ended): void {
  const call = inFlight.get(end.id);
  if (call) {
    inFlight.delete(end.id);
    recent = [{ ...call, ...end }, ...recent].slice(0, KEEP);
    show();
  }
}

export function takeActivity(activity: Activity): void {
  inFlight = new Map(activity.inFlight.map((call) => [call.id, call]));
  recent = activity.recent.slice(0, KEEP);
  show();
}

export function resync(): void {
  gap.set(gap.get() + 1);
}
