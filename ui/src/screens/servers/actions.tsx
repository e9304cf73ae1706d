import { LoaderCircle, Pencil, Play, RotateCw, Square, Trash2 } from 'lucide-react';
import { runAction, type ServerAction } from '../../api/servers';
import type { ServerRecord } from '../../api/types';
import { explained, useText } from '../../i18n';
import { IconButton } from '../../parts/icon-button';
import { toast } from '../../parts/toast';
import { asking } from '../../store/servers';
import { overlay } from '../../store/shell';

interface Props {
  server: ServerRecord;
  pending: ServerAction | undefined;
  setPending: (action: ServerAction | undefined) => void;
}

export function CardActions({ server, pending, setPending }: Props) {
  const t = useText();
  const act = async (what: ServerAction) => {
    if (pending !== undefined) {
      return;
    }
    setPending(what);
    try {
      const { one } = asking();
      one(await runAction(server.name, what));
    } catch (error) {
      toast('bad', t.servers.failed(server.name), explained(error));
    } finally {
      setPending(undefined);
    }
  };
  // One that will be tried again can be stopped too.
  const runs = server.status === 'connected' || server.status === 'connecting' || server.retryAt !== null;
  const spin = <LoaderCircle size={15} aria-hidden className="animate-spin" />;
  return (
    <>
      {/* One button, so that the keyboard stays on it; a disabled one would lose it. */}
      <IconButton
        label={runs ? t.servers.stopNamed(server.name) : t.servers.startNamed(server.name)}
        hint={runs ? t.servers.stop : t.servers.start}
        disabled={!server.config}
        aria-disabled={pending !== undefined}
        onClick={() => act(runs ? 'stop' : 'start')}
      >
        {pending === 'stop' || pending === 'start' ? (
          spin
        ) : runs ? (
          <Square size={14} aria-hidden />
        ) : (
          <Play size={15} aria-hidden />
        )}
      </IconButton>
      <IconButton
        label={t.servers.restartNamed(server.name)}
        hint={t.servers.restart}
        disabled={!server.config}
        aria-disabled={pending !== undefined}
        onClick={() => act('restart')}
      >
        {pending === 'restart' ? spin : <RotateCw size={15} aria-hidden />}
      </IconButton>
      <IconButton
        label={`${t.common.edit}: ${server.name}`}
        hint={t.common.edit}
        onClick={() => overlay.set({ kind: 'edit', server })}
      >
        <Pencil size={15} aria-hidden />
      </IconButton>
      <IconButton
        label={`${t.common.delete}: ${server.name}`}
        hint={t.common.delete}
        className="hover:bg-bad-soft hover:text-bad-ink"
        onClick={() => overlay.set({ kind: 'delete', server })}
      >
        <Trash2 size={15} aria-hidden />
      </IconButton>
    </>
  );
}
