import { Activity, KeyRound, Play, Plus, RotateCw, Server, Settings, Square, Wrench } from 'lucide-react';
import type { ReactNode } from 'react';
import { runAction, type ServerAction } from '../api/servers';
import type { Dictionary } from '../i18n/en';
import { toast } from '../parts/toast';
import { allServers, asking } from '../store/servers';
import { overlay } from '../store/shell';
import { setTheme } from '../store/theme';
import type { CatalogTool } from '../store/tools';
import { explained } from '../i18n';
import { go, SECTIONS, type Section } from './route';

export interface Command {
  id: string;
  title: string;
  group: string;
  icon: ReactNode;
  haystack: string;
  /** Only shown when searched for. */
  deep?: boolean;
  run: () => void;
}

const ICONS: Record<Section, ReactNode> = {
  servers: <Server size={15} />,
  tools: <Wrench size={15} />,
  entries: <KeyRound size={15} />,
  activity: <Activity size={15} />,
  settings: <Settings size={15} />,
};

export function commands(t: Dictionary, tools: CatalogTool[]): Command[] {
  const list: Omit<Command, 'haystack'>[] = SECTIONS.map((section) => ({
    id: `go ${section}`,
    title: t.nav[section],
    group: t.palette.go,
    icon: ICONS[section],
    run: () => go(section),
  }));
  list.push(
    {
      id: 'add',
      title: t.servers.add,
      group: t.palette.actions,
      icon: <Plus size={15} />,
      run: () => overlay.set({ kind: 'add' }),
    },
    {
      id: 'entry',
      title: t.entries.add,
      group: t.palette.actions,
      icon: <Plus size={15} />,
      run: () => go('entries', 'new'),
    },
    ...(['light', 'dark'] as const).map((theme) => ({
      id: theme,
      title: `${t.settings.theme}: ${t.settings[theme]}`,
      group: t.palette.actions,
      icon: ICONS.settings,
      run: () => setTheme(theme),
    })),
  );
  for (const server of allServers()) {
    list.push({
      id: `server ${server.name}`,
      title: server.name,
      group: t.palette.servers,
      icon: ICONS.servers,
      run: () => go('servers', server.name),
    });
    const wishes: [ServerAction, string, ReactNode][] =
      server.status === 'disconnected' || server.status === 'error'
        ? [['start', t.servers.startNamed(server.name), <Play key="i" size={15} />]]
        : [
            ['stop', t.servers.stopNamed(server.name), <Square key="i" size={15} />],
            ['restart', t.servers.restartNamed(server.name), <RotateCw key="i" size={15} />],
          ];
    for (const [what, title, icon] of wishes) {
      list.push({
        id: `${what} ${server.name}`,
        title,
        group: t.palette.actions,
        icon,
        deep: true,
        run: () => void act(server.name, what, t),
      });
    }
  }
  for (const tool of tools) {
    list.push({
      id: `tool ${tool.server} ${tool.name}`,
      title: `${tool.server}:${tool.name}`,
      group: t.palette.tools,
      icon: ICONS.tools,
      deep: true,
      run: () => go('tools', tool.server, tool.name),
    });
  }
  return list.map((command) => ({
    ...command,
    haystack: `${command.title} ${command.group} ${command.id}`.toLowerCase(),
  }));
}

async function act(server: string, what: ServerAction, t: Dictionary): Promise<void> {
  try {
    const { one } = asking();
    one(await runAction(server, what));
  } catch (error) {
    toast('bad', t.servers.failed(server), explained(error));
  }
}
