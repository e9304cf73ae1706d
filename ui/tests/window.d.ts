// The counters and marks that the tests keep on the page's window.
import type { run } from 'axe-core';

declare global {
  interface Window {
    axe: { run: typeof run };
    /** When the event stream first named a state, and when the page first showed it. */
    eventTimes: Record<string, number>;
    shownTimes: Record<string, number>;
    /** Date formatters that were made, and how often one was used. */
    formatters: { made: number; used: number };
    callEvents: number;
    rowChanges: number;
    mostRows: number;
    rowObserver: MutationObserver;
    changedCards: Set<string | undefined>;
  }
}
