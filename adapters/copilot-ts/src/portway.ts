/** Requests to the REST API of a running Portway. */

import { PortwayError, reason } from './error.js';

/** The largest response that is accepted. */
const LARGEST = 64 * 1024 * 1024;

export interface Answer {
  status: number;
  etag: string | null;
  body: unknown;
}

export interface Question {
  path: string[];
  body?: unknown;
  etag?: string | null;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

export class Portway {
  readonly #base: URL;
  readonly #key: string;
  readonly #filter: string | undefined;

  constructor(url: string, key: string, filter?: string) {
    this.#base = base(url);
    // Checked here: the error of fetch about an invalid header would contain the key.
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new PortwayError('bad_options', 'key: must be the admin token or the key of an entry');
    }
    this.#key = key;
    this.#filter = filter;
  }

  /** One request and its JSON response. */
  async ask(question: Question): Promise<Answer> {
    const limit = AbortSignal.timeout(question.timeoutMs);
    const signal = question.signal ? AbortSignal.any([question.signal, limit]) : limit;
    try {
      const response = await fetch(this.#address(question.path), this.#request(question, signal));
      const text = await read(response);
      return this.#answer(response, text);
    } catch (error) {
      if (error instanceof PortwayError) throw error;
      if (question.signal?.aborted) throw new PortwayError('cancelled', 'the call was cancelled');
      if (limit.aborted) {
        throw new PortwayError('timeout', `no answer within ${question.timeoutMs / 1000} s`);
      }
      throw new PortwayError('unreachable', `no Portway answers at ${this.#base.origin}: ${reason(error)}`);
    }
  }

  #request(question: Question, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#key}` };
    if (question.etag) headers['if-none-match'] = question.etag;
    const init: RequestInit = { headers, signal, redirect: 'manual' };
    if (question.body === undefined) return init;
    headers['content-type'] = 'application/json';
    return { ...init, method: 'POST', body: JSON.stringify(question.body) };
  }

  #answer(response: Response, text: string): Answer {
    const { status } = response;
    const etag = response.headers.get('etag');
    if (status === 304) return { status, etag, body: null };
    if (status === 401 || status === 403) {
      throw new PortwayError('denied', `the Portway at ${this.#base.origin} does not take this key`);
    }
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      throw new PortwayError('unexpected', `what answers at ${this.#base.origin} (${status}) is no Portway`);
    }
    if (status === 200) return { status, etag, body };
    const why = refusal(body) ?? 'no reason given';
    if (status === 404) throw new PortwayError('not_found', why);
    throw new PortwayError('refused', `Portway refused it (${status}): ${why}`);
  }

  #address(path: string[]): URL {
    const url = new URL(this.#base);
    const parts = ['api', 'mcp', ...path].map(encodeURIComponent);
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${parts.join('/')}`;
    url.searchParams.set('format', 'copilot');
    if (this.#filter !== undefined) url.searchParams.set('filter', this.#filter);
    return url;
  }
}

function base(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const plain =
    url && /^https?:$/.test(url.protocol) && url.search === '' && url.username === '' && url.password === '';
  if (!plain) {
    throw new PortwayError('bad_options', 'url: must be the http or https address of a Portway, without a user');
  }
  return url;
}

/** The text of an answer, within bounds. */
async function read(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    const bytes = chunk as Uint8Array;
    size += bytes.length;
    if (size > LARGEST) throw new PortwayError('unexpected', `the answer is longer than ${LARGEST} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function refusal(body: unknown): string | undefined {
  if (!isObject(body) || !isObject(body['error'])) return undefined;
  const { message } = body['error'];
  return typeof message === 'string' ? message : undefined;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
