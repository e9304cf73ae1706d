import type { ServerConfig, ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import type { Dictionary } from '../../i18n/en';
import type { Shade } from '../../parts/light';
import { useCell } from '../../store/cell';
import { link } from '../../store/live';
import { quoted } from './words';

export interface Appearance {
  shade: Shade;
  word: string;
  beating: boolean;
}

const SHADE: Record<ServerRecord['status'], Shade> = {
  connected: 'good',
  connecting: 'warn',
  error: 'bad',
  disconnected: 'idle',
};

/** The light and the word of a server; the word comes from here, never from the API's text. */
function appearance(server: ServerRecord, t: Dictionary): Appearance {
  const { status, restarts, retryAt, transport } = server;
  const tries = retryAt !== null;
  // A process is restarted a few times only; a remote server may be away for long.
  const restarting =
    (status === 'connecting' && restarts > 0) || (tries && (status === 'disconnected' || transport === 'stdio'));
  if (restarting) {
    return { shade: 'warn', word: t.status.restarting, beating: true };
  }
  return { shade: SHADE[status], word: t.status[status], beating: status === 'connecting' };
}

/** While Portway does not answer, the state of its servers is unknown. */
export function useAppearance(server: ServerRecord): Appearance {
  const t = useText();
  const known = appearance(server, t);
  return useCell(link) === 'down' ? { shade: 'idle', word: t.status.unknown, beating: false } : known;
}

/** The command line or the URL of a server. */
export function target(server: ServerRecord): string {
  return server.config ? targetOf(server.config) : '';
}

export function targetOf(config: ServerConfig): string {
  return config.url ?? [config.command ?? '', ...(config.args ?? [])].map(quoted).join(' ');
}

export function fileName(source: string): string {
  return source.split('/').slice(-1)[0] ?? source;
}
