/** The kind of an error, to branch on. */
export type PortwayErrorCode =
  'bad_options' | 'unreachable' | 'timeout' | 'cancelled' | 'denied' | 'not_found' | 'refused' | 'unexpected';

/** Why there is no list of tools. Calls never throw it: they return its text. */
export class PortwayError extends Error {
  override readonly name = 'PortwayError';

  constructor(
    readonly code: PortwayErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** Two tools have the same name, which a session rejects. */
export class NameClash extends Error {
  override readonly name = 'NameClash';

  constructor(readonly toolName: string) {
    super(`two tools are called "${toolName}": rename your own`);
  }
}

/** The system's own message: fetch wraps it. */
export function reason(error: unknown): string {
  let inner = error;
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause;
  if (!(inner instanceof Error)) return String(inner);
  const code = 'code' in inner && typeof inner.code === 'string' ? inner.code : inner.name;
  return inner.message === '' ? code : inner.message;
}
