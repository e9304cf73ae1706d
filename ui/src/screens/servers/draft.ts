// A server as the form holds it: all text, turned into a definition at the end.

import type { FieldProblem } from '../../api/http';
import type { NewServer } from '../../api/servers';
import type { ServerConfig, ServerRecord, Transport } from '../../api/types';
import type { Dictionary } from '../../i18n/en';
import { commandLine } from './words';

export interface Pair {
  id: number;
  name: string;
  value: string;
}

/** One argument; it may be empty, or have many lines. */
export interface Argument {
  id: number;
  value: string;
  /** Added and not touched yet: it is not sent. */
  fresh: boolean;
}

export interface Draft {
  name: string;
  transport: Transport;
  command: string;
  args: Argument[];
  url: string;
  env: Pair[];
  headers: Pair[];
  cwd: string;
  timeout: string;
  era: string;
  isolation: string;
  enabled: boolean;
  startNow: boolean;
  /** What the form does not show: an edit leaves it as it is. */
  rest: ServerConfig;
}

/** Fields of a definition that the form has; `type` says what `transport` does. */
const SHOWN = new Set([
  'type',
  'transport',
  'command',
  'args',
  'url',
  'env',
  'headers',
  'cwd',
  'timeout',
  'era',
  'isolation',
  'enabled',
]);

/** Rows that a reload brings back have numbers already. */
let lastRow = Date.now();
function rowId(): number {
  lastRow += 1;
  return lastRow;
}

export const pair = (name = '', value = ''): Pair => ({ id: rowId(), name, value });
export const argument = (value = '', fresh = false): Argument => ({ id: rowId(), value, fresh });

const pairs = (map: Record<string, string> | undefined) =>
  Object.entries(map ?? {}).map(([name, value]) => pair(name, value));
const record = (list: Pair[]) =>
  Object.fromEntries(list.filter((one) => one.name.trim()).map((one) => [one.name.trim(), one.value]));

export function draftOf(name: string, config: ServerConfig): Draft {
  return {
    name,
    transport: config.transport ?? (config.url ? 'http' : 'stdio'),
    command: config.command ?? '',
    args: (config.args ?? []).map((value) => argument(value)),
    url: config.url ?? '',
    env: pairs(config.env),
    headers: pairs(config.headers),
    cwd: config.cwd ?? '',
    timeout: String(config.timeout ?? 30_000),
    era: config.era ?? 'auto',
    isolation: config.isolation ?? 'auto',
    enabled: config.enabled ?? true,
    startNow: true,
    rest: Object.fromEntries(Object.entries(config).filter(([field]) => !SHOWN.has(field))),
  };
}

export const emptyDraft = () => draftOf('', { transport: 'stdio' });
export const draftOfServer = (server: ServerRecord) => draftOf(server.name, server.config ?? {});

export function definition(draft: Draft): ServerConfig {
  const common = {
    ...draft.rest,
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
    args: draft.args.filter(({ value, fresh }) => value !== '' || !fresh).map(({ value }) => value),
    env: record(draft.env),
    ...(draft.cwd.trim() ? { cwd: draft.cwd.trim() } : {}),
  };
}

export function registration(draft: Draft): NewServer {
  return { name: draft.name.trim(), ...definition(draft), autoStart: draft.startNow };
}

/** A whole line in the command field becomes command, arguments and variables. */
export function spread(draft: Draft): Draft {
  const line = commandLine(draft.command);
  if (!line || (line.args.length === 0 && line.env.length === 0)) {
    return draft;
  }
  return {
    ...draft,
    command: line.command,
    args: [...line.args.map((value) => argument(value)), ...draft.args],
    env: [...draft.env, ...line.env.map(([name, value]) => pair(name, value))],
  };
}

/** Required fields that are empty, and rows without a name or with one that is given twice. */
export function missingFields(draft: Draft, t: Dictionary): FieldProblem[] {
  const stdio = draft.transport === 'stdio';
  return [
    ...(draft.name.trim() ? [] : [{ field: 'name', message: t.form.needName }]),
    ...(stdio && !draft.command.trim() ? [{ field: 'command', message: t.form.needCommand }] : []),
    ...(!stdio && !draft.url.trim() ? [{ field: 'url', message: t.form.needUrl }] : []),
    ...(stdio ? wrongPairs('env', draft.env, t) : wrongPairs('headers', draft.headers, t)),
  ];
}

/** Rows that would be left out without a word: a value without a name, a name given twice. */
function wrongPairs(field: string, pairs: Pair[], t: Dictionary): FieldProblem[] {
  const names = pairs.map(({ name }) => name.trim());
  return pairs.flatMap(({ value }, at) => {
    const name = names[at] ?? '';
    const message =
      name === '' && value !== ''
        ? t.form.needPairName(at + 1)
        : name !== '' && names.indexOf(name) < at
          ? t.form.twice(name)
          : undefined;
    return message === undefined ? [] : [{ field, message }];
  });
}
