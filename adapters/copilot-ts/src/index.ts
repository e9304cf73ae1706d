/** All tools of a running Portway as tools of a GitHub Copilot SDK session. */

import { PortwayError, reason } from './error.js';
import { Portway } from './portway.js';
import { type AnyTool, mergeTools, type Permission, toolsOf } from './tool.js';

export { NameClash, PortwayError, type PortwayErrorCode } from './error.js';
export { type AnyTool, mergeTools, type Permission } from './tool.js';

export interface PortwayOptions {
  /** Where Portway runs, such as `http://127.0.0.1:7420`. */
  url: string;
  /** The admin token, for all tools; or the key of an entry, for those of the entry. */
  key: string;
  /** A filter of `.portway.json`; only tools that it allows are added. */
  filter?: string;
  /** Time limit of a call, and of reading the list of tools. Default: 30 seconds. */
  timeoutMs?: number;
  /** Your own tools; they come first in `tools`. */
  own?: readonly AnyTool[];
  /** Default: `ask`. */
  permission?: Permission;
  /** Called with all tools whenever Portway's have changed. */
  onChange?: (tools: AnyTool[]) => void;
  /** Interval at which the list is polled. Default: 2 seconds; at least 100 milliseconds. */
  pollMs?: number;
}

export interface PortwayTools {
  /** Your own tools and Portway's, as of the last poll. */
  readonly tools: AnyTool[];
  /** Polls now. True if the tools have changed. */
  refresh(): Promise<boolean>;
  /** Stops polling. Tools of a session can still be called. */
  close(): void;
}

/** The longest interval between polls while Portway cannot be reached. */
const SELDOM = 30_000;

/**
 * Lists the tools. Rejects with a `PortwayError` where there is no list, or a `NameClash`; calls of
 * the tools never throw.
 */
export async function portwayTools(options: PortwayOptions): Promise<PortwayTools> {
  const { timeoutMs = 30_000, pollMs = 2000 } = options;
  for (const [name, value, least] of [
    ['timeoutMs', timeoutMs, 1],
    ['pollMs', pollMs, 100],
  ] as const) {
    if (!(value >= least && value <= 0x7fffffff)) {
      throw new PortwayError('bad_options', `${name}: must be at least ${least}`);
    }
  }
  const following = new Following(options, timeoutMs, pollMs);
  await following.start();
  return following;
}

class Following implements PortwayTools {
  tools: AnyTool[] = [];
  readonly #options: PortwayOptions;
  readonly #portway: Portway;
  readonly #timeoutMs: number;
  readonly #pollMs: number;
  readonly #closed = new AbortController();
  #etag: string | null = null;
  #looking: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PortwayOptions, timeoutMs: number, pollMs: number) {
    this.#options = options;
    this.#portway = new Portway(options.url, options.key, options.filter);
    this.#timeoutMs = timeoutMs;
    this.#pollMs = pollMs;
  }

  async start(): Promise<void> {
    const mcp = await this.#list();
    this.tools = mergeTools(this.#options.own ?? [], mcp ?? []);
    if (this.#options.onChange) this.#later(this.#pollMs);
  }

  /** Polls at the same time share one request. */
  refresh(): Promise<boolean> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  async #look(): Promise<boolean> {
    const mcp = await this.#list();
    if (!mcp) return false;
    const own = this.#options.own ?? [];
    const taken = new Set(own.map((tool) => tool.name));
    // A clash must not end a running session: the program's own tool wins.
    const free = mcp.filter(
      (tool) => !taken.has(tool.name) || warn(`"${tool.name}" skipped: a local tool already has this name`),
    );
    this.tools = mergeTools(own, free);
    return true;
  }

  /** Undefined if the tools have not changed. */
  async #list(): Promise<AnyTool[] | undefined> {
    const question = { path: ['tools'], etag: this.#etag, timeoutMs: this.#timeoutMs, signal: this.#closed.signal };
    const answer = await this.#portway.ask(question);
    if (answer.status === 304) return undefined;
    const calling = {
      portway: this.#portway,
      timeoutMs: this.#timeoutMs,
      permission: this.#options.permission ?? 'ask',
    };
    const left = (name: string) => void warn(`"${name}" skipped: not a valid name of a Copilot tool`);
    const tools = toolsOf(answer.body, calling, left);
    this.#etag = answer.etag;
    return tools;
  }

  #later(wait: number): void {
    if (this.#closed.signal.aborted) return;
    this.#timer = setTimeout(() => {
      void this.#poll(wait);
    }, wait);
    // The timer does not keep the program running.
    this.#timer.unref();
  }

  async #poll(waited: number): Promise<void> {
    let wait = this.#pollMs;
    try {
      const changed = await this.refresh();
      if (changed && !this.#closed.signal.aborted) this.#tell();
    } catch {
      wait = Math.max(this.#pollMs, Math.min(waited * 2, SELDOM));
    }
    this.#later(wait);
  }

  #tell(): void {
    try {
      this.#options.onChange?.(this.tools);
    } catch (error) {
      warn(`onChange: ${reason(error)}`);
    }
  }
}

function warn(text: string): false {
  process.emitWarning(text, 'PortwayWarning');
  return false;
}
