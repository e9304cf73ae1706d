// What people paste: a server, some servers, or a whole file of any client,
// with comments and trailing commas.

import type { ServerConfig } from '../../api/types';
import { draftOf, type Draft } from './draft';

interface Foreign extends Omit<ServerConfig, 'command'> {
  command?: string | string[];
  environment?: Record<string, string>;
  httpUrl?: string;
  serverUrl?: string;
  disabled?: boolean;
}

const MOST_DEPTH = 4;

/** Every server that the text defines. */
export function pasted(text: string): Draft[] {
  const plain = withoutComments(text).trim();
  // A member alone, as it stands in a file.
  const whole = plain.startsWith('"') ? `{${plain.replace(/,$/, '')}}` : plain;
  try {
    return found('', JSON.parse(whole), 0);
  } catch {
    return [];
  }
}

/** JSONC as JSON: comments are blanked, and commas before a closing bracket. */
function withoutComments(text: string): string {
  const tokens = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  const bare = text.replace(/^\uFEFF/, '').replaceAll(tokens, (token) => (token.startsWith('"') ? token : ' '));
  return bare.replaceAll(/"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])/g, (token) => (token === ',' ? ' ' : token));
}

function found(name: string, value: unknown, depth: number): Draft[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth > MOST_DEPTH) {
    return [];
  }
  if ('command' in value || 'url' in value || 'httpUrl' in value || 'serverUrl' in value) {
    return [translated(name, value as Foreign)];
  }
  return Object.entries(value).flatMap(([key, inner]) => found(key, inner, depth + 1));
}

function translated(name: string, given: Foreign): Draft {
  const [command, ...first] = Array.isArray(given.command) ? given.command : [given.command];
  const url = given.url ?? given.httpUrl ?? given.serverUrl;
  const kind = given.transport ?? given.type;
  const { cwd, timeout, era, isolation, containment, privileges } = given;
  return draftOf(name, {
    transport: url === undefined ? 'stdio' : kind === 'sse' ? 'sse' : 'http',
    args: [...first.filter((word) => word !== undefined), ...(given.args ?? [])],
    env: given.env ?? given.environment ?? {},
    headers: given.headers ?? {},
    enabled: given.enabled ?? !given.disabled,
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
