import { deleteServer } from '../api/servers';
import { useText } from '../i18n';
import { part } from '../parts/part';
import { toast } from '../parts/toast';
import { useCell } from '../store/cell';
import { drop } from '../store/servers';
import { closeOverlay, overlay } from '../store/shell';
import { go } from './route';

const form = () => import('../screens/servers/form');
const palette = () => import('./palette');

const ServerForm = part(form);
const Palette = part(palette);
const Confirm = part(() => import('../parts/confirm'));
const EditEntry = part(() => import('../screens/entries/edit'));
const RecordForm = part(() => import('../screens/entries/record-form'));
const Connect = part(() => import('../screens/entries/connect'));

/** What a key opens shall be there before the next key is pressed. */
export function preload(): () => void {
  const timer = window.setTimeout(() => void Promise.all([form(), palette()]).catch(() => undefined), 1_500);
  return () => window.clearTimeout(timer);
}

export function Overlays() {
  const t = useText();
  const open = useCell(overlay);
  switch (open.kind) {
    case 'none':
      return null;
    case 'palette':
      return <Palette onClose={closeOverlay} />;
    case 'add':
      return <ServerForm onClose={closeOverlay} />;
    case 'edit':
      return <ServerForm key={open.server.id} server={open.server} onClose={closeOverlay} />;
    case 'entry':
      return <EditEntry key={open.entry.id} entry={open.entry} onClose={closeOverlay} />;
    case 'record':
      return <RecordForm key={open.record?.id ?? 'new'} record={open.record} onClose={closeOverlay} />;
    case 'connect':
      return <Connect entry={open.entry} onClose={closeOverlay} />;
    case 'delete': {
      const { id, name, source } = open.server;
      return (
        <Confirm
          title={t.servers.deleteTitle(name)}
          text={t.servers.deleteText(source)}
          action={t.common.delete}
          onClose={closeOverlay}
          onConfirm={async () => {
            await deleteServer(id);
            drop(name);
            go('servers');
            toast('good', t.servers.deleted(name));
          }}
        />
      );
    }
  }
}
