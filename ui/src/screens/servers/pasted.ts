// Pasted definitions: a server, several servers, or a whole file of any client, with comments and trailing
// commas.

import type { ServerConfig } from '../../api/types';
import { draftOf, type Draft } from './draft';
import { words } from './words';

export interface Pasted {
  /** Every server that the text defines. */
  drafts: Draft[];
  /** Fields that hold what they cannot hold, such as `files.args`. */
  bad: string[];
}

type Fields = Record<string, unknown>;

const MOST_DEPTH = 4;

export function pasted(text: string): Pasted {
  const plain = withoutComments(text).trim();
  // A member alone, as it stands in a file.
  const whole = plain.startsWith('"') ? `{${plain.replace(/,$/, '')}}` : plain;
  const bad: string[] = [];
  try {
    return { drafts: found('', JSON.parse(whole), 0, bad), bad };
  } catch {
    return { drafts: [], bad };
  }
}

/** JSONC as JSON: comments are blanked, and commas before a closing bracket. */
function withoutComments(text: string): string {
  const tokens = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  const bare = text.replace(/^\uFEFF/, '').replaceAll(tokens, (token) => (token.startsWith('"') ? token : ' '));
  return bare.replaceAll(/"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g, (token) => (token === ',' ? ' ' : token));
}

function found(name: string, value: unknown, depth: number, bad: string[]): Draft[] {
  if (typeof value !== 'object' || value === null || depth > MOST_DEPTH) {
    return [];
  }
  if (Array.isArray(value)) {
    return value.flatMap((inner) => found('', inner, depth + 1, bad));
  }
  if ('command' in value || 'url' in value || 'httpUrl' in value || 'serverUrl' in value) {
    return [translated(name, value, bad)];
  }
  return Object.entries(value).flatMap(([key, inner]) => found(key, inner, depth + 1, bad));
}

function translated(key: string, given: Fields, bad: string[]): Draft {
  const name = key || (typeof given['name'] === 'string' ? given['name'] : '');
  /** Takes a field by its first name that is there; what `read` makes nothing of is bad. */
  const take = <T>(read: (value: unknown) => T | undefined, ...fields: string[]): T | undefined => {
    const field = fields.find((one) => given[one] !== undefined && given[one] !== null);
    const value = field === undefined ? undefined : read(given[field]);
    if (field !== undefined && value === undefined) {
      bad.push(name ? `${name}.${field}` : field);
    }
    return value;
  };
  const [command, ...first] = take((value) => (Array.isArray(value) ? texts(value) : one(value)), 'command') ?? [];
  const url = take(text, 'url', 'httpUrl', 'serverUrl');
  const kind = take(text, 'transport', 'type');
  const cwd = take(text, 'cwd');
  const timeout = take((value) => (Number.isFinite(Number(value)) ? Number(value) : undefined), 'timeout');
  const era = take(text, 'era');
  const isolation = take(text, 'isolation');
  const disabled = take(truth, 'disabled') ?? false;
  const { containment, privileges } = given as ServerConfig;
  return draftOf(name, {
    transport: url === undefined ? 'stdio' : kind === 'sse' ? 'sse' : 'http',
    // All arguments in one text: as a shell would take them apart.
    args: [...first, ...(take((value) => (typeof value === 'string' ? words(value) : texts(value)), 'args') ?? [])],
    env: take(map, 'env', 'environment') ?? {},
    headers: take(map, 'headers') ?? {},
    enabled: take(truth, 'enabled') ?? !disabled,
    ...(command === undefined ? {} : { command }),
    ...(url === undefined ? {} : { url }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(timeout === undefined ? {} : { timeout }),
    ...(era === undefined ? {} : { era }),
    ...(isolation === undefined ? {} : { isolation }),
    ...(containment === undefined ? {} : { containment }),
    ...(privileges === undefined ? {} : { privileges }),
  });
}

const truth = (value: unknown) => (typeof value === 'boolean' ? value : undefined);

/** Numbers, such as ports, are often written without quotes. */
function text(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

function one(value: unknown): string[] | undefined {
  const found = text(value);
  return found === undefined ? undefined : [found];
}

function texts(value: unknown): string[] | undefined {
  const found = Array.isArray(value) ? value.map(text) : [undefined];
  return found.every((word) => word !== undefined) ? found : undefined;
}

function map(value: unknown): Record<string, string> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return undefined;
  }
  const values = texts(Object.values(value));
  return values && Object.fromEntries(Object.keys(value).map((key, at) => [key, values[at] ?? '']));
}
