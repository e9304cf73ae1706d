// Walks through the console as a person would: `node tests/run.mjs BINARY
// FIXTURE [words of the paths to walk]`. BINARY is a Portway, FIXTURE the test
// server of the repository (`cargo build --example fixture`).
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openBrowser, openPage } from './browser.mjs';
import { openFront } from './front.mjs';
import { paths as kept } from './paths/kept.mjs';
import { paths as other } from './paths/other.mjs';
import { paths as rest } from './paths/rest.mjs';
import { paths as shown } from './paths/shown.mjs';
import { paths as servers } from './paths/servers.mjs';
import { paths as wide } from './paths/wide.mjs';
import { startPortway } from './portway.mjs';

const [program, server, ...words] = process.argv.slice(2);
if (!program || !server) {
  console.error('usage: node tests/run.mjs BINARY FIXTURE [words]');
  process.exit(2);
}
const [binary, fixture] = [resolve(program), resolve(server)];
const LIMIT = 120_000;
const chosen = Object.entries({ ...servers, ...other, ...kept, ...shown, ...rest, ...wide }).filter(([name]) =>
  words.every((word) => name.includes(word)),
);
const portway = await startPortway(binary, {
  alpha: { command: fixture, args: ['--era', 'modern'] },
  beta: { command: fixture, args: ['--era', 'legacy', '--name', 'beta'], env: { API_TOKEN: '${NOTHING:-hidden}' } },
  broken: { command: 'no-such-command', args: ['--now'] },
  sleeper: { command: fixture, enabled: false },
});
const front = await openFront(portway);
const browser = await openBrowser();
let failed = 0;

for (const [name, walk] of chosen) {
  failed += (await walked(name, walk)) ? 1 : 0;
}

/** What went wrong on the way, if anything did. */
async function walked(name, walk) {
  const pages = [];
  const open = async (options) => {
    const opened = await openPage(browser, front, portway, options);
    pages.push(opened);
    return { ...opened, done: () => close(opened) };
  };
  const close = async (opened) => {
    if (opened.faults.length > 0) {
      throw new Error(opened.faults.join('\n'));
    }
    await opened.context.close();
  };
  const began = Date.now();
  let timer;
  try {
    const limit = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('took too long')), LIMIT);
    });
    const note = await Promise.race([walk({ open, front, portway, fixture, browser, binary }), limit]);
    console.log(`ok   ${name} (${Date.now() - began} ms)${note ? `: ${note}` : ''}`);
    return null;
  } catch (error) {
    console.log(`FAIL ${name}\n     ${String(error.message).replaceAll('\n', '\n     ')}`);
    const path = join(tmpdir(), `console-${name.replaceAll(/\W+/g, '-')}.png`);
    await pages
      .at(-1)
      ?.page.screenshot({ path })
      .catch(() => undefined);
    return error;
  } finally {
    clearTimeout(timer);
    front.setEvents(true);
    front.setAssets(true);
    await Promise.all(pages.map(({ context }) => context.close().catch(() => undefined)));
  }
}
await browser.close();
await front.close();
await portway.stop();
console.log(`${chosen.length - failed} of ${chosen.length} paths hold`);
process.exit(failed === 0 ? 0 : 1);
