// The browser tests: `npm test -- BINARY FIXTURE [words of the tests to run]`. BINARY is a Portway, FIXTURE the
// test server of the repository (`cargo build --example fixture`).
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openBrowser, openPage, type OpenPage } from './browser.ts';
import type { PathContext, Paths } from './path.ts';
import { paths as activity } from './paths/activity.ts';
import { paths as entries } from './paths/entries.ts';
import { paths as everyScreen } from './paths/every-screen.ts';
import { paths as focus } from './paths/focus.ts';
import { paths as resources } from './paths/resources.ts';
import { paths as serverForm } from './paths/server-form.ts';
import { paths as serverStates } from './paths/server-states.ts';
import { paths as servers } from './paths/servers.ts';
import { paths as settings } from './paths/settings.ts';
import { paths as tools } from './paths/tools.ts';
import { paths as unsaved } from './paths/unsaved.ts';
import { startPortway } from './portway.ts';
import { openProxy } from './proxy.ts';

const [program, server, ...words] = process.argv.slice(2);
if (!program || !server) {
  console.error('usage: npm test -- BINARY FIXTURE [words]');
  process.exit(2);
}
const [binary, fixture] = [resolve(program), resolve(server)];
const LIMIT = 120_000;
const all: Paths = {
  ...servers,
  ...serverForm,
  ...serverStates,
  ...tools,
  ...resources,
  ...entries,
  ...activity,
  ...settings,
  ...unsaved,
  ...focus,
  ...everyScreen,
};
const chosen = Object.entries(all).filter(([name]) => words.every((word) => name.includes(word)));
const portway = await startPortway(binary, {
  alpha: { command: fixture, args: ['--era', 'modern'] },
  beta: { command: fixture, args: ['--era', 'legacy', '--name', 'beta'], env: { API_TOKEN: '${NOTHING:-hidden}' } },
  broken: { command: 'no-such-command', args: ['--now'] },
  sleeper: { command: fixture, enabled: false },
});
const proxy = await openProxy(portway);
const browser = await openBrowser();
let failed = 0;

for (const [name, path] of chosen) {
  failed += (await passes(name, path)) ? 0 : 1;
}

async function passes(name: string, path: Paths[string]): Promise<boolean> {
  const pages: OpenPage[] = [];
  const open: PathContext['open'] = async (options) => {
    const opened = await openPage(browser, proxy, portway, options);
    pages.push(opened);
    return { ...opened, done: () => close(opened) };
  };
  const close = async ({ faults, context }: OpenPage): Promise<void> => {
    if (faults.length > 0) {
      throw new Error(faults.join('\n'));
    }
    await context.close();
  };
  const began = Date.now();
  let timer: NodeJS.Timeout | undefined;
  try {
    const limit = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('took too long')), LIMIT);
    });
    const note = await Promise.race([path({ open, proxy, portway, fixture, browser, binary }), limit]);
    console.log(`ok   ${name} (${Date.now() - began} ms)${typeof note === 'string' ? `: ${note}` : ''}`);
    return true;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    console.log(`FAIL ${name}\n     ${text.replaceAll('\n', '\n     ')}`);
    const picture = join(tmpdir(), `console-${name.replaceAll(/\W+/g, '-')}.png`);
    await pages
      .at(-1)
      ?.page.screenshot({ path: picture })
      .catch(() => undefined);
    return false;
  } finally {
    clearTimeout(timer);
    proxy.setEvents(true);
    proxy.setAssets(true);
    await Promise.all(pages.map(({ context }) => context.close().catch(() => undefined)));
  }
}
await browser.close();
await proxy.close();
await portway.stop();
console.log(`${chosen.length - failed} of ${chosen.length} paths hold`);
process.exit(failed === 0 ? 0 : 1);
