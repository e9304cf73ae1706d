// SPEC H7: what holds on every screen: accessibility, 320 px, size, many servers.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator, Page } from 'playwright-core';
import type { ServerRecord, Tool } from '../../src/api/types';
import { holds, same, until, visit } from '../check.ts';
import type { Paths } from '../path.ts';
import type { Portway } from '../portway.ts';
import type { Proxy } from '../proxy.ts';
import { listServers } from '../records.ts';
import { type ApiDocument, typesOf } from '../types.ts';

const card = (page: Page, name: string) => page.locator(`[data-server="${name}"]`);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Every screen, and what is only there once it has loaded. */
const SCREENS: [path: string, content: (page: Page) => Locator][] = [
  ['#/servers', (page) => page.locator('[data-server=alpha]')],
  ['#/servers/alpha', (page) => page.getByRole('heading', { name: 'Process tree' })],
  ['#/servers/alpha/log', (page) => page.getByRole('searchbox', { name: 'Filter log' })],
  ['#/servers/alpha/resources', (page) => page.getByText('Resource by URI')],
  ['#/servers/alpha/prompts', (page) => page.getByRole('dialog').getByText('greet').first()],
  ['#/tools', (page) => page.locator('li[aria-posinset]').first()],
  ['#/tools/alpha/echo', (page) => page.getByRole('button', { name: 'Run' })],
  ['#/entries', (page) => page.getByRole('heading', { name: 'Tool records' })],
  ['#/entries/new', (page) => page.getByRole('dialog', { name: 'New entry' }).getByRole('checkbox').first()],
  ['#/activity', (page) => page.locator('[data-call]').first().or(page.getByText('No calls yet'))],
  ['#/settings', (page) => page.getByText('this browser')],
];

async function show(page: Page, [path, content]: (typeof SCREENS)[number]): Promise<void> {
  await visit(page, path);
  await content(page).waitFor();
  await until(`${path} to be at rest`, async () => (await page.locator('[aria-busy=true]').count()) === 0);
  same(await page.locator('[data-missing]').count(), 0, `parts of ${path} that are missing`);
}

/** The serious violations of accessibility rules. */
async function serious(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map((node) => `${node.target.join(' ')} ${node.any[0]?.message ?? ''}`)
          .join(' | ')}`,
    );
}

/** The servers of the real one, and many more like them. */
async function many(proxy: Proxy, portway: Portway): Promise<ServerRecord[]> {
  const first = (await listServers(portway)).find(({ name }) => name === 'alpha');
  if (!first) {
    throw new Error('alpha is missing');
  }
  const servers = Array.from({ length: 500 }, (_, at) => ({
    ...first,
    id: `${at}`,
    name: `server-${String(at).padStart(3, '0')}`,
    toolCount: 10,
  }));
  const [tool] = await portway.api<Tool[]>('GET', '/api/mcp/servers/alpha/tools');
  proxy.setEvents(false);
  proxy.stub('GET /api/mcp/servers', servers);
  for (const { name } of servers) {
    proxy.stub(
      `GET /api/mcp/servers/${name}/tools`,
      Array.from({ length: 10 }, (_, at) => ({ ...tool, name: `tool_${at}`, key: `${name}:tool_${at}` })),
    );
  }
  return servers;
}

function few(proxy: Proxy, servers: ServerRecord[]): void {
  proxy.unstub('GET /api/mcp/servers');
  servers.forEach(({ name }) => proxy.unstub(`GET /api/mcp/servers/${name}/tools`));
  proxy.setEvents(true);
}

/** The most rows that existed at a time while something was done; all that is not needed costs frames. */
async function mostRows(page: Page, rows: string, act: () => Promise<void>): Promise<number> {
  await page.evaluate((selector) => {
    window.mostRows = 0;
    const look = () => (window.mostRows = Math.max(window.mostRows, document.querySelectorAll(selector).length));
    look();
    window.rowObserver = new MutationObserver(look);
    window.rowObserver.observe(document.querySelector('main') as Node, { subtree: true, childList: true });
  }, rows);
  await act();
  return page.evaluate(() => {
    window.rowObserver.disconnect();
    return window.mostRows;
  });
}

export const paths: Paths = {
  async h7_the_console_is_loaded_compressed({ open }) {
    const { page, done } = await open();
    await card(page, 'alpha').waitFor();
    const scripts = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .map((entry) => entry as PerformanceResourceTiming)
        .filter(({ name }) => /\.(js|css)$/.test(name))
        .map(({ name, encodedBodySize, decodedBodySize }) => ({ name, encodedBodySize, decodedBodySize })),
    );
    holds(scripts.length > 0, 'scripts were loaded');
    const large = scripts.filter(({ decodedBodySize }) => decodedBodySize > 2_000);
    same(
      large
        .filter(({ encodedBodySize, decodedBodySize }) => encodedBodySize > decodedBodySize * 0.6)
        .map(({ name }) => name),
      [],
      'files that were not compressed',
    );
    await done();
  },

  async g5_the_shapes_the_console_was_built_with_are_those_of_the_api({ portway }) {
    const made = readFileSync(new URL('../../src/api/generated.ts', import.meta.url), 'utf8');
    holds(
      made === typesOf(await portway.api<ApiDocument>('GET', '/api/openapi.json')),
      'src/api/generated.ts is up to date (npm run types -- BINARY)',
    );
  },

  async h7_nothing_serious_for_axe_in_both_themes({ open }) {
    const found: string[] = [];
    for (const theme of ['light', 'dark'] as const) {
      const { page, done } = await open({ theme });
      await page.locator('[data-server=alpha][data-status=connected]').waitFor();
      for (const screen of SCREENS) {
        await show(page, screen);
        found.push(...(await serious(page)).map((text) => `${theme} ${screen[0]} ${text}`));
      }
      await done();
    }
    same(found, [], 'what axe found');
  },

  async h7_works_at_320_px_nothing_is_wider_than_the_window({ open }) {
    const { page, done } = await open({ width: 320, height: 640 });
    await page.locator('[data-server=alpha]').waitFor();
    for (const screen of SCREENS) {
      await show(page, screen);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      holds(width <= 320, `${screen[0]} is ${width} px wide`);
    }
    await done();
  },

  async '500 servers and 5,000 tools: only what is near the window exists, one event renders one card'({
    open,
    proxy,
    portway,
  }) {
    const servers = await many(proxy, portway);
    try {
      const { page, done } = await open();
      await page.locator('[data-server=server-000]').waitFor();
      holds((await page.locator('[data-server]').count()) < 60, 'only what is near the window exists');
      const typing = await mostRows(page, '[data-server]', async () => {
        await page.getByRole('searchbox').pressSequentially('server-04', { delay: 30 });
        await page.locator('[data-server=server-049]').waitFor();
      });
      holds(typing < 60, `${typing} cards while searching servers`);
      await page.getByRole('searchbox').fill('');
      await page.locator('[data-server=server-001]').waitFor();

      await page.evaluate(() => {
        window.changedCards = new Set();
        new MutationObserver((changes) => {
          changes.forEach(({ target }) => {
            const element = target instanceof Element ? target : target.parentElement;
            window.changedCards.add(element?.closest<HTMLElement>('[data-server]')?.dataset['server']);
          });
        }).observe(document.querySelector('main ul') as Node, {
          subtree: true,
          childList: true,
          attributes: true,
          characterData: true,
        });
      });
      proxy.stub(
        'GET /api/mcp/servers',
        servers.map((server) =>
          server.name === 'server-001' ? { ...server, status: 'error', state: 'error', error: 'went away' } : server,
        ),
      );
      await page.locator('[data-server=server-001][data-status=error]').waitFor();
      // The cards below it move down; nothing inside them changes.
      same(
        await page.evaluate(() => [...window.changedCards].filter(Boolean)),
        ['server-001'],
        'cards that were touched',
      );

      await visit(page, '#/tools');
      await until(
        'all tools',
        async () => (await page.getByRole('status').allInnerTexts()).some((text) => text.includes('5,000')),
        60_000,
      );
      const looking = await mostRows(page, 'li[aria-posinset]', async () => {
        await page.getByRole('searchbox').pressSequentially('server-123 tool_7', { delay: 30 });
        await page.getByRole('link', { name: /tool_7.*server-123/ }).waitFor();
      });
      holds(looking < 60, `${looking} rows while searching tools`);
      await done();
    } finally {
      few(proxy, servers);
    }
  },
};
