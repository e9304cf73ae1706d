import { lazy, Suspense } from 'react';
import { deleteServer } from '../api/servers';
import { useText } from '../i18n';
import { toast } from '../parts/toast';
import { useCell } from '../store/cell';
import { drop } from '../store/servers';
import { closeOverlay, overlay } from '../store/shell';
import { go } from './route';

const form = () => import('../screens/servers/form');
const palette = () => import('./palette');

const ServerForm = lazy(form);
const Confirm = lazy(() => import('../parts/confirm'));
const Palette = lazy(palette);

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
      return <Suspense><Palette onClose={closeOverlay} /></Suspense>;
    case 'add':
      return <Suspense><ServerForm onClose={closeOverlay} /></Suspense>;
    case 'edit':
      return <Suspense><ServerForm server={open.server} onClose={closeOverlay} /></Suspense>;
    case 'delete': {
      const { name, source } = open.server;
      return (
        <Suspense><Confirm
          title={t.servers.deleteTitle(name)}
          text={t.servers.deleteText(source)}
          action={t.common.delete}
          onClose={closeOverlay}
          onConfirm={async () => {
            await deleteServer(name);
            drop(name);
            go('servers');
            toast('good', t.servers.deleted(name));
          }}
        /></Suspense>
      );
    }
  }
}
