// A server as the form holds it: all text, turned into a definition at the end.

import type { NewServer } from '../../api/servers';
import type { ServerConfig, ServerRecord, Transport } from '../../api/types';

export interface Pair {
  id: number;
  name: string;
  value: string;
}

export interface Draft {
  name: string;
  transport: Transport;
  command: string;
  args: string;
  url: string;
  env: Pair[];
  headers: Pair[];
  cwd: string;
  timeout: string;
  era: string;
  isolation: string;
  enabled: boolean;
  startNow: boolean;
  containment: string | undefined;
  privileges: string | undefined;
}

let lastPair = 0;
export function pair(name = '', value = ''): Pair {
  lastPair += 1;
  return { id: lastPair, name, value };
}

const pairs = (map: Record<string, string> | undefined) => Object.entries(map ?? {}).map(([name, value]) => pair(name, value));
const record = (list: Pair[]) => Object.fromEntries(list.filter((one) => one.name.trim()).map((one) => [one.name.trim(), one.value]));

export function draftOf(name: string, config: ServerConfig): Draft {
  return {
    name,
    transport: config.transport ?? (config.url ? 'http' : 'stdio'),
    command: config.command ?? '',
    args: (config.args ?? []).join('\n'),
    url: config.url ?? '',
    env: pairs(config.env),
    headers: pairs(config.headers),
    cwd: config.cwd ?? '',
    timeout: String(config.timeout ?? 30_000),
    era: config.era ?? 'auto',
    isolation: config.isolation ?? 'shared',
    enabled: config.enabled ?? true,
    startNow: true,
    containment: config.containment,
    privileges: config.privileges,
  };
}

export const emptyDraft = () => draftOf('', { transport: 'stdio' });
export const draftOfServer = (server: ServerRecord) => draftOf(server.name, server.config ?? {});

export function definition(draft: Draft): ServerConfig {
  const common = {
    transport: draft.transport,
    enabled: draft.enabled,
    ...(draft.timeout.trim() ? { timeout: Number(draft.timeout) } : {}),
    era: draft.era,
    isolation: draft.isolation,
  };
  if (draft.transport !== 'stdio') {
    return { ...common, url: draft.url.trim(), headers: record(draft.headers) };
  }
  return {
    ...common,
    command: draft.command.trim(),
    args: draft.args.split('\n').filter((line) => line !== ''),
    env: record(draft.env),
    ...(draft.cwd.trim() ? { cwd: draft.cwd.trim() } : {}),
    ...(draft.containment ? { containment: draft.containment } : {}),
    ...(draft.privileges ? { privileges: draft.privileges } : {}),
  };
}

export function registration(draft: Draft): NewServer {
  return { name: draft.name.trim(), ...definition(draft), autoStart: draft.startNow };
}

/** Splits a line as a shell would, without running one. */
export function words(line: string): string[] {
  const found: string[] = [];
  for (const [, double, single, plain] of line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)) {
    found.push(double?.replaceAll(/\\(.)/g, '$1') ?? single ?? plain ?? '');
  }
  return found;
}

interface Foreign extends Omit<ServerConfig, 'command'> {
  command?: string | string[];
  environment?: Record<string, string>;
  httpUrl?: string;
}

/** Reads what people paste: a server, a map of servers, or a whole file. */
export function pasted(text: string): Draft | undefined {
  let value: unknown;
  try {
    value = JSON.parse(/^\s*"/.test(text) ? `{${text.replace(/,\s*$/, '')}}` : text);
  } catch {
    return undefined;
  }
  const [name, found] = dig('', value, 0) ?? [];
  if (found === undefined) {
    return undefined;
  }
  const [command, ...rest] = Array.isArray(found.command) ? found.command : [found.command];
  const url = found.url ?? found.httpUrl;
  const said = found.transport ?? found.type;
  return draftOf(name ?? '', {
    transport: url === undefined ? 'stdio' : said === 'sse' ? 'sse' : 'http',
    ...(command === undefined ? {} : { command }),
    args: [...rest, ...(found.args ?? [])].filter((word) => word !== undefined),
    env: found.env ?? found.environment ?? {},
    ...(url === undefined ? {} : { url }),
    headers: found.headers ?? {},
    ...(found.cwd === undefined ? {} : { cwd: found.cwd }),
    ...(found.timeout === undefined ? {} : { timeout: found.timeout }),
  });
}

function dig(name: string, value: unknown, depth: number): [string, Foreign] | undefined {
  if (typeof value !== 'object' || value === null || depth > 3) {
    return undefined;
  }
  if ('command' in value || 'url' in value || 'httpUrl' in value) {
    return [name, value as Foreign];
  }
  for (const [key, inner] of Object.entries(value)) {
    const found = dig(key, inner, depth + 1);
    if (found) {
      return found;
    }
  }
  return undefined;
}
