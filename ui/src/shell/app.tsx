import { useEffect, type ComponentType } from 'react';
import { useText } from '../i18n';
import { part } from '../parts/part';
import { Tips } from '../parts/tip';
import { Toasts } from '../parts/toast';
import { Servers } from '../screens/servers/servers';
import { useCell } from '../store/cell';
import { goLive } from '../store/live';
import { session } from '../store/shell';
import { Header } from './header';
import { Overlays, preload } from './overlays';
import { Boundary, MissingPart } from './rescue';
import { useRoute, type Section } from './route';
import { SignIn } from './sign-in';
import { useShortcuts } from './shortcuts';

const Waiting = () => <div className="h-64" aria-busy />;

const screens: Record<Section, ComponentType> = {
  servers: Servers,
  tools: part(() => import('../screens/tools/tools'), Waiting),
  entries: part(() => import('../screens/entries/entries'), Waiting),
  activity: part(() => import('../screens/activity/activity'), Waiting),
  settings: part(() => import('../screens/settings/settings'), Waiting),
};

export function App() {
  const signedIn = useCell(session) === 'good';
  return (
    <>
      <Boundary>{signedIn ? <Console /> : <SignIn />}</Boundary>
      <MissingPart />
      <Toasts />
      <Tips />
    </>
  );
}

function Console() {
  const t = useText();
  const { section } = useRoute();
  useEffect(goLive, []);
  useEffect(preload, []);
  useShortcuts();
  useEffect(() => {
    document.title = `${t.nav[section]} · Portway`;
  }, [section, t]);
  const Screen = screens[section];
  return (
    <>
      <a
        href="#main"
        onClick={skip}
        className="sr-only focus:not-sr-only focus:absolute focus:top-2 focus:left-2 focus:z-70 focus:rounded-md focus:bg-solid focus:px-3 focus:py-2 focus:text-on-ink"
      >
        {t.common.skip}
      </a>
      <Header />
      <main id="main" tabIndex={-1} className="mx-auto w-full max-w-6xl px-4 pt-6 pb-24 outline-none sm:px-6 sm:pt-8">
        <Boundary key={section}>
          <Screen />
        </Boundary>
      </main>
      <Boundary>
        <Overlays />
      </Boundary>
    </>
  );
}

// The hash is the address of a screen; it cannot be a place on the page too.
function skip(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
