import type { Call, Outcome, ServerRecord } from './types';

export interface Ended {
  id: Call['id'];
  outcome: Outcome;
  durationMs: number;
  error?: string;
}

export interface EventHandlers {
  snapshot: (data: { servers: ServerRecord[] }) => void;
  server: (data: ServerRecord) => void;
  server_removed: (data: { name: string }) => void;
  catalog: (data: { server: string; toolCount: number }) => void;
  call_started: (data: Call) => void;
  call_ended: (data: Ended) => void;
  entries: (data: object) => void;
  resync: (data: object) => void;
  opened: () => void;
  lost: () => void;
}

const NAMES = [
  'snapshot',
  'server',
  'server_removed',
  'catalog',
  'call_started',
  'call_ended',
  'entries',
  'resync',
] as const;

/** The stream beats every 15 seconds. One that is silent for longer is dead, whatever the socket says. */
const SILENCE = 20_000;
const RETRY_FIRST = 1_000;
const RETRY_MOST = 15_000;

/**
 * Follows the stream until it is closed. The browser resumes a broken one by
 * itself, with Last-Event-ID; one that was refused it gives up, so we try
 * again.
 */
export function follow(handlers: EventHandlers): () => void {
  let source: EventSource | undefined;
  let timer: number | undefined;
  let silence: number | undefined;
  let wait = RETRY_FIRST;
  let closed = false;

  const heard = () => {
    window.clearTimeout(silence);
    silence = window.setTimeout(again, SILENCE);
  };

  function again() {
    source?.close();
    handlers.lost();
    window.clearTimeout(timer);
    if (!closed) {
      timer = window.setTimeout(open, wait);
      wait = Math.min(wait * 2, RETRY_MOST);
    }
  }

  function open() {
    source = new EventSource('/api/mcp/events');
    heard();
    source.onopen = () => {
      wait = RETRY_FIRST;
      heard();
      handlers.opened();
    };
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) {
        window.clearTimeout(silence);
        again();
      } else {
        handlers.lost();
      }
    };
    source.addEventListener('heartbeat', heard);
    for (const name of NAMES) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        heard();
        const data: unknown = event.data ? JSON.parse(event.data) : {};
        (handlers[name] as (data: unknown) => void)(data);
      });
    }
  }

  open();
  return () => {
    closed = true;
    window.clearTimeout(timer);
    window.clearTimeout(silence);
    source?.close();
  };
}
