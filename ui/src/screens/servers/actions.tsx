import { LoaderCircle, Pencil, Play, RotateCw, Square, Trash2 } from 'lucide-react';
import { messageOf } from '../../api/http';
import { wish, type Wish } from '../../api/servers';
import type { ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import { IconButton } from '../../parts/icon-button';
import { toast } from '../../parts/toast';
import { asking } from '../../store/servers';
import { overlay } from '../../store/shell';

interface Props {
  server: ServerRecord;
  pending: Wish | undefined;
  setPending: (wish: Wish | undefined) => void;
}

export function CardActions({ server, pending, setPending }: Props) {
  const t = useText();
  const act = async (what: Wish) => {
    setPending(what);
    try {
      const { one } = asking();
      one(await wish(server.name, what));
    } catch (error) {
      toast('bad', t.servers.failed(server.name), messageOf(error));
    } finally {
      setPending(undefined);
    }
  };
  const runs = server.status === 'connected' || server.status === 'connecting';
  const spin = <LoaderCircle size={15} aria-hidden className="animate-spin" />;
  return (
    <>
      {runs ? (
        <IconButton label={t.servers.stopNamed(server.name)} hint={t.servers.stop} disabled={pending !== undefined} onClick={() => act('stop')}>
          {pending === 'stop' ? spin : <Square size={14} aria-hidden />}
        </IconButton>
      ) : (
        <IconButton label={t.servers.startNamed(server.name)} hint={t.servers.start} disabled={pending !== undefined || !server.config} onClick={() => act('start')}>
          {pending === 'start' ? spin : <Play size={15} aria-hidden />}
        </IconButton>
      )}
      <IconButton label={t.servers.restartNamed(server.name)} hint={t.servers.restart} disabled={pending !== undefined || !server.config} onClick={() => act('restart')}>
        {pending === 'restart' ? spin : <RotateCw size={15} aria-hidden />}
      </IconButton>
      <IconButton label={`${t.common.edit}: ${server.name}`} hint={t.common.edit} onClick={() => overlay.set({ kind: 'edit', server })}>
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
