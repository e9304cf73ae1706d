// All requests to the REST API. They go to the page's own origin with the cookie of the session; a request that
// changes something carries the header `x-portway-console`.

export interface FieldProblem {
  field: string;
  message: string;
}

export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly fields: FieldProblem[];
  readonly details: unknown;

  constructor(status: number, code: string, message: string, details?: unknown) {
    super(message);
    this.status = status;
    this.code = code;
    this.fields = fieldsOf(details);
    this.details = details;
  }
}

/** Status 0: nothing answered. */
export const UNREACHABLE = 'UNREACHABLE';
const TIME_LIMIT = 60_000;

let refused: () => void = () => undefined;

/** Called when Portway answers 401: there is no session, or it has ended. */
export function onRefused(listener: () => void): void {
  refused = listener;
}

export function changeHeaders(): Record<string, string> {
  return { 'content-type': 'application/json', 'x-portway-console': '1' };
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return send<T>('GET', path, undefined, signal);
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return send<T>('POST', path, body);
}

/** `tag`: the version that the edit is based on. Nothing is written if there is a newer one. */
export async function put<T>(path: string, body: unknown, tag: string | undefined): Promise<T> {
  return value<T>(await answer('PUT', path, body, undefined, tag ? { 'if-match': tag } : {}));
}

/** A value and the tag of its version. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as with the others
export async function getTagged<T>(path: string): Promise<{ value: T; tag: string | undefined }> {
  const response = await answer('GET', path);
  return { value: await value<T>(response), tag: response.headers.get('etag') ?? undefined };
}

export async function patch<T>(path: string, body: unknown): Promise<T> {
  return send<T>('PATCH', path, body);
}

export async function remove(path: string): Promise<void> {
  await send<null>('DELETE', path);
}

async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return value<T>(await answer(method, path, body, signal));
}

// The types are what the API promises; nothing checks them here.
async function value<T>(response: Response): Promise<T> {
  return (response.status === 204 ? null : await response.json()) as T;
}

async function answer(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  extra: Record<string, string> = {},
): Promise<Response> {
  const limit = AbortSignal.timeout(TIME_LIMIT);
  const init: RequestInit = { method, signal: signal ? AbortSignal.any([signal, limit]) : limit };
  if (method !== 'GET') {
    init.headers = { ...changeHeaders(), ...extra };
  }
  if (body !== undefined) {
    init.body = JSON.stringify(body);
  }
  const response = await reach(path, init);
  if (!response.ok) {
    throw await failure(response);
  }
  return response;
}

export async function reach(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (
      init.signal?.aborted &&
      init.signal.reason instanceof DOMException &&
      init.signal.reason.name === 'AbortError'
    ) {
      throw error;
    }
    throw new ApiFailure(0, UNREACHABLE, 'Portway does not answer');
  }
  if (response.status === 401) {
    refused();
  }
  return response;
}

interface Envelope {
  error?: { code?: string; message?: string; details?: unknown };
}

export async function failure(response: Response): Promise<ApiFailure> {
  let body: Envelope = {};
  try {
    body = (await response.json()) as Envelope;
  } catch {
    // Not ours: a proxy in between, perhaps. The status says enough.
  }
  const error = body.error ?? {};
  const message = error.message ?? `${response.status} ${response.statusText}`;
  return new ApiFailure(response.status, error.code ?? `HTTP_${response.status}`, message, error.details);
}

function fieldsOf(details: unknown): FieldProblem[] {
  if (!Array.isArray(details)) {
    return [];
  }
  return details.filter(
    (item): item is FieldProblem =>
      typeof item === 'object' && item !== null && typeof (item as FieldProblem).field === 'string',
  );
}

/** Trades the admin token for the cookie. The token stays out of the history. */
export async function signIn(token: string): Promise<void> {
  const response = await fetch(`/?token=${encodeURIComponent(token)}`);
  if (!response.ok) {
    throw await failure(response);
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
