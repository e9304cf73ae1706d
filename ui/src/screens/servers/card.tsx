import { ChevronDown, Wrench } from 'lucide-react';
import { memo, useId, useState } from 'react';
import type { ServerAction } from '../../api/servers';
import type { ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Light } from '../../parts/light';
import { part } from '../../parts/part';
import { href } from '../../shell/route';
import { useCell, type Cell } from '../../store/cell';
import { unfolded, setUnfolded } from './unfolded';
import { CardActions } from './actions';
import { RetryIn } from './retry-in';
import { target, useAppearance, type Appearance } from './status';

const CardTools = part(
  () => import('./card-tools'),
  () => <div className="h-16 border-t border-line" />,
);

export const ServerCard = memo(function ServerCard({ cell }: { cell: Cell<ServerRecord> }) {
  const t = useText();
  const id = useId();
  const server = useCell(cell);
  const [open, setOpen] = useState(() => unfolded.has(server.name));
  const [pending, setPending] = useState<ServerAction>();
  const now = useAppearance(server);
  const look = pending ? pendingLook(pending, server, now, t.status) : now;
  const toggle = () => {
    setUnfolded(server.name, !open);
    setOpen(!open);
  };
  return (
    <article
      aria-labelledby={`${id}-name`}
      data-server={server.name}
      data-status={server.status}
      className="rounded-xl border border-line bg-panel shadow-card transition-colors hover:border-line-strong"
    >
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 px-3.5 py-3 sm:flex-nowrap">
        <div className="min-w-0 flex-1 basis-60">
          <div className="flex min-w-0 flex-wrap items-center gap-x-2.5 gap-y-1">
            <span className="flex items-center gap-1.5">
              <Light shade={look.shade} beating={look.beating} />
              <a
                id={`${id}-name`}
                href={href('servers', server.name)}
                className="max-w-[15rem] truncate rounded text-base font-semibold hover:underline sm:max-w-xs"
              >
                {server.name}
              </a>
            </span>
            <span className={`text-sm ${WORD[look.shade]}`} data-word>
              {look.word}
            </span>
            {server.retryAt === null || pending ? null : <RetryIn at={server.retryAt} />}
            {server.status !== 'connected' && server.restarts > 0 && server.transport === 'stdio' ? (
              <span className="text-xs text-ink-3">{t.servers.restarts(server.restarts)}</span>
            ) : null}
          </div>
          <p title={target(server)} className="mt-1 truncate pl-5.5 font-mono text-xs text-ink-2">
            {target(server) || server.source}
          </p>
        </div>
        <Facts server={server} />
        <div className="flex items-center gap-0.5 pl-4 sm:pl-0">
          <CardActions server={server} pending={pending} setPending={setPending} />
          <button
            type="button"
            aria-expanded={open}
            aria-controls={`${id}-tools`}
            aria-label={`${open ? t.servers.fold(server.name) : t.servers.unfold(server.name)}: ${server.toolCount}`}
            onClick={toggle}
            className="num ml-1 inline-flex h-8 items-center gap-1.5 rounded-md border border-line px-2 text-sm text-ink-2 hover:bg-hover hover:text-ink"
          >
            <Wrench size={13} aria-hidden />
            {server.toolCount}
            <ChevronDown size={14} aria-hidden className={`transition-transform ${open ? 'rotate-180' : ''}`} />
          </button>
        </div>
      </div>
      {server.error && look.shade !== 'good' ? <Reason server={server} bad={look.shade === 'bad'} /> : null}
      <div id={`${id}-tools`} hidden={!open}>
        {open ? <CardTools server={server} /> : null}
      </div>
    </article>
  );
});

const WORD = { good: 'text-good-ink', warn: 'text-warn-ink', bad: 'text-bad-ink', idle: 'text-ink-3' };

function pendingLook(
  action: ServerAction,
  server: ServerRecord,
  now: Appearance,
  words: { connecting: string; restarting: string },
): Appearance {
  if (action === 'stop' || server.status === 'connecting') {
    return { ...now, beating: true };
  }
  return { shade: 'warn', word: action === 'restart' ? words.restarting : words.connecting, beating: true };
}

function Facts({ server }: { server: ServerRecord }) {
  const t = useText();
  return (
    <div className="flex shrink-0 flex-wrap items-center gap-1.5 pl-5.5 sm:pl-0">
      {server.transport ? <Badge>{server.transport}</Badge> : null}
      {server.era && server.protocolVersion ? (
        <Badge tone={server.era === 'modern' ? 'accent' : 'plain'}>{t.servers.legacy(server.protocolVersion)}</Badge>
      ) : null}
      {server.enabled ? null : <Badge>{t.servers.disabled}</Badge>}
    </div>
  );
}

function Reason({ server, bad }: { server: ServerRecord; bad: boolean }) {
  const t = useText();
  const long = (server.error?.length ?? 0) > 160 || server.error?.includes('\n');
  return (
    <div
      className={`mx-3.5 mb-3 rounded-lg border px-3 py-2 text-sm ${bad ? 'border-bad-line bg-bad-soft text-bad-ink' : 'border-transparent bg-warn-soft text-warn-ink'}`}
    >
      <p className="line-clamp-3 break-words whitespace-pre-line">{server.error}</p>
      {long ? (
        <a href={href('servers', server.name)} className="mt-1 inline-block font-medium underline underline-offset-2">
          {t.servers.readReason}
        </a>
      ) : null}
    </div>
  );
}
