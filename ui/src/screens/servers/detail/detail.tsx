import * as Tabs from '@radix-ui/react-tabs';
import { X } from 'lucide-react';
import { useState } from 'react';
import type { ServerAction } from '../../../api/servers';
import type { ServerRecord } from '../../../api/types';
import { useText } from '../../../i18n';
import { Drawer } from '../../../parts/drawer';
import { IconButton } from '../../../parts/icon-button';
import { Light } from '../../../parts/light';
import { useCell, type Cell } from '../../../store/cell';
import { loaded } from '../../../store/live';
import { cellOf, names } from '../../../store/servers';
import { CardActions } from '../actions';
import CardTools from '../card-tools';
import { RetryIn } from '../retry-in';
import { target, useAppearance } from '../status';
import { ConfigView } from './config';
import { LogView } from './log';
import { Prompts, Resources } from './offers';
import { Overview } from './overview';

interface Props {
  name: string;
  tab: string;
  onTab: (tab: string) => void;
  onClose: () => void;
}

export default function Detail({ name, tab, onTab, onClose }: Props) {
  const ready = useCell(loaded);
  useCell(names);
  const cell = cellOf(name);
  if (!ready || !cell) {
    return null;
  }
  return (
    <Drawer onClose={onClose} title={name}>
      <Inside key={name} cell={cell} tab={tab} onTab={onTab} onClose={onClose} />
    </Drawer>
  );
}

const TABS = ['overview', 'tools', 'resources', 'prompts', 'log', 'config'] as const;

interface InsideProps extends Omit<Props, 'name'> {
  cell: Cell<ServerRecord>;
}

function Inside({ cell, tab, onTab, onClose }: InsideProps) {
  const t = useText();
  const server = useCell(cell);
  const [pending, setPending] = useState<ServerAction>();
  const look = useAppearance(server);
  const known = TABS.find((one) => one === tab) ?? 'overview';
  return (
    <Tabs.Root value={known} onValueChange={onTab} className="flex min-h-0 flex-1 flex-col">
      <header className="border-b border-line px-5 pt-4">
        <div className="flex items-start gap-3">
          <div className="min-w-0 flex-1">
            <p className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
              <Light shade={look.shade} beating={look.beating || pending !== undefined} />
              <span aria-hidden className="truncate text-lg font-semibold tracking-tight">
                {server.name}
              </span>
              <span className="text-sm text-ink-2">{look.word}</span>
              {server.retryAt === null || pending ? null : <RetryIn at={server.retryAt} />}
            </p>
            <p className="mt-1 truncate font-mono text-xs text-ink-2" title={target(server)}>
              {target(server)}
            </p>
          </div>
          <IconButton label={t.common.close} onClick={onClose} className="-mt-1 -mr-2">
            <X size={16} aria-hidden />
          </IconButton>
        </div>
        <div className="mt-2 -ml-2 flex">
          <CardActions server={server} pending={pending} setPending={setPending} />
        </div>
        <Tabs.List aria-label={t.detail.sections} className="-mx-2 mt-1 flex overflow-x-auto [scrollbar-width:none]">
          {TABS.map((one) => (
            <Tabs.Trigger
              key={one}
              value={one}
              className="relative h-9 px-2 text-sm whitespace-nowrap text-ink-2 hover:text-ink focus-visible:outline-offset-[-3px] data-[state=active]:font-medium data-[state=active]:text-ink data-[state=active]:after:absolute data-[state=active]:after:inset-x-2 data-[state=active]:after:bottom-0 data-[state=active]:after:h-0.5 data-[state=active]:after:rounded-full data-[state=active]:after:bg-ink"
            >
              {t.detail[one]}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <Tabs.Content value="overview" className="p-5 outline-none">
          <Overview server={server} />
        </Tabs.Content>
        <Tabs.Content value="tools" className="-mt-px outline-none">
          <CardTools server={server} />
        </Tabs.Content>
        <Tabs.Content value="resources" className="p-5 outline-none">
          <Resources server={server} />
        </Tabs.Content>
        <Tabs.Content value="prompts" className="p-5 outline-none">
          <Prompts server={server} />
        </Tabs.Content>
        <Tabs.Content value="log" className="h-full outline-none">
          <LogView server={server.name} />
        </Tabs.Content>
        <Tabs.Content value="config" className="p-5 outline-none">
          <ConfigView server={server} />
        </Tabs.Content>
      </div>
    </Tabs.Root>
  );
}
