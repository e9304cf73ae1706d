// Trying a tool, a resource or a prompt: the form, and the call it made. Both
// belong to the subject and not to the panel that shows them, so that leaving
// the panel ends neither.

import { isAbort } from '../api/http';
import {
  call,
  RpcFailure,
  type CallResult,
  type InputRequest,
  type InputResponse,
  type McpRequest,
  type Progress,
} from '../api/mcp';
import { Cell } from '../store/cell';
import { explained } from '../i18n';
import { keyOf, type Subject } from './subject';

export type CallState =
  | { kind: 'idle' }
  | { kind: 'running'; progress?: Progress | undefined }
  | { kind: 'asking'; requests: Record<string, InputRequest>; state: string | undefined }
  | { kind: 'done'; result: CallResult; took: number }
  | { kind: 'failed'; message: string; data: unknown; took: number }
  | { kind: 'cancelled' }
  | { kind: 'exhausted' };

/** As the official clients: a server that asks more often is given up. */
const MOST_ROUNDS = 10;
const PACE = 250;
const MOST_LINES = 200;
/** Results may be large: those of more subjects are forgotten, the oldest first. */
const MOST_TRIALS = 30;

export class Trial {
  readonly server: string;
  readonly state = new Cell<CallState>({ kind: 'idle' });
  readonly logs = new Cell<readonly string[]>([]);
  #going: AbortController | undefined;
  #request: McpRequest | undefined;
  #rounds = 0;
  #began = 0;

  constructor(server: string) {
    this.server = server;
  }

  get busy(): boolean {
    const { kind } = this.state.get();
    return kind === 'running' || kind === 'asking';
  }

  run(request: McpRequest): void {
    this.#request = request;
    this.#rounds = 0;
    this.#began = performance.now();
    this.logs.set([]);
    void this.#send(request);
  }

  answer(answers: Record<string, InputResponse>): void {
    const now = this.state.get();
    if (now.kind === 'asking' && this.#request) {
      void this.#send(this.#request, answers, now.state);
    }
  }

  cancel(): void {
    this.#going?.abort();
    this.state.set({ kind: 'cancelled' });
  }

  async #send(request: McpRequest, answers?: Record<string, InputResponse>, requestState?: string): Promise<void> {
    this.#going?.abort();
    const stop = new AbortController();
    this.#going = stop;
    this.state.set({ kind: 'running' });
    try {
      const result = await call({
        server: this.server,
        request,
        answers,
        requestState,
        signal: stop.signal,
        onProgress: (progress) => this.state.set({ kind: 'running', progress }),
        onLog: (line) => this.logs.set([...this.logs.get(), line].slice(-MOST_LINES)),
      });
      if (this.#going === stop && !stop.signal.aborted) {
        await this.#take(request, result);
      }
    } catch (error) {
      if (this.#going === stop) {
        this.#failed(error, stop.signal.aborted);
      }
    }
  }

  async #take(request: McpRequest, result: CallResult): Promise<void> {
    if (result.resultType !== 'input_required') {
      this.state.set({ kind: 'done', result, took: this.#took() });
      return;
    }
    this.#rounds += 1;
    if (this.#rounds > MOST_ROUNDS) {
      this.state.set({ kind: 'exhausted' });
    } else if (Object.keys(result.inputRequests ?? {}).length === 0) {
      // The server has no question: it only wants the request to be sent again.
      await new Promise((resolve) => window.setTimeout(resolve, PACE));
      await this.#send(request, undefined, result.requestState);
    } else {
      this.state.set({ kind: 'asking', requests: result.inputRequests ?? {}, state: result.requestState });
    }
  }

  #failed(error: unknown, aborted: boolean): void {
    if (aborted || isAbort(error)) {
      this.state.set({ kind: 'cancelled' });
      return;
    }
    const data = error instanceof RpcFailure ? error.data : undefined;
    this.state.set({ kind: 'failed', message: explained(error), data, took: this.#took() });
  }

  #took(): number {
    return performance.now() - this.#began;
  }
}

const trials = new Map<string, Trial>();

export function trialOf(subject: Subject): Trial {
  const key = keyOf(subject);
  const trial = trials.get(key) ?? new Trial(subject.server);
  // The one that was looked at last stands last.
  trials.delete(key);
  trials.set(key, trial);
  for (const [other, { busy }] of trials) {
    if (trials.size > MOST_TRIALS && !busy && other !== key) {
      trials.delete(other);
    }
  }
  return trial;
}
