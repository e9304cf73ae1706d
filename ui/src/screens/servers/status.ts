import type { ServerRecord } from '../../api/types';
import type { Dictionary } from '../../i18n/en';
import type { Shade } from '../../parts/light';

export interface Appearance {
  shade: Shade;
  word: string;
  beating: boolean;
}

const SHADE: Record<ServerRecord['status'], Shade> = {
  connected: 'good', connecting: 'warn', error: 'bad', disconnected: 'idle',
};

/** The light and the word of a server; the word comes from here, never from the API's text. */
export function appearance(server: ServerRecord, t: Dictionary): Appearance {
  const restarting = server.restarts > 0 && (server.status === 'connecting' || server.status === 'disconnected') && server.state !== 'stopped';
  if (restarting) {
    return { shade: 'warn', word: t.status.restarting, beating: true };
  }
  return { shade: SHADE[server.status], word: t.status[server.status], beating: server.status === 'connecting' };
}

/** What is run or reached, in one line. */
export function target(server: ServerRecord): string {
  const config = server.config;
  if (!config) {
    return '';
  }
  return config.url ?? [config.command, ...(config.args ?? [])].map((word) => quote(word ?? '')).join(' ');
}

function quote(word: string): string {
  return /^[^\s"'\\]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

export function fileName(source: string): string {
  return source.split('/').slice(-1)[0] ?? source;
}
