// What holds for all of it: keyboard, 320 px, both themes, many servers.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { holds, same, until } from '../check.mjs';
import { typesOf } from '../types.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Every screen, and what is only there once it has loaded. */
const SCREENS = [
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

async function show(page, [path, content]) {
  await page.evaluate((hash) => (window.location.hash = hash), path);
  await content(page).waitFor();
  await until(`${path} to be at rest`, async () => (await page.locator('[aria-busy=true]').count()) === 0);
  same(await page.locator('[data-missing]').count(), 0, `parts of ${path} that are missing`);
}

async function serious(page) {
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
async function many(front, portway) {
  const [first] = (await portway.api('GET', '/api/mcp/servers')).filter(({ name }) => name === 'alpha');
  const servers = Array.from({ length: 500 }, (_, at) => ({
    ...first,
    id: `${at}`,
    name: `server-${String(at).padStart(3, '0')}`,
    toolCount: 10,
  }));
  const [tool] = await portway.api('GET', '/api/mcp/servers/alpha/tools');
  front.setEvents(false);
  front.answer('GET /api/mcp/servers', servers);
  for (const { name } of servers) {
    front.answer(
      `GET /api/mcp/servers/${name}/tools`,
      Array.from({ length: 10 }, (_, at) => ({ ...tool, name: `tool_${at}`, key: `${name}:tool_${at}` })),
    );
  }
  return servers;
}

function few(front, servers) {
  front.unanswer('GET /api/mcp/servers');
  servers.forEach(({ name }) => front.unanswer(`GET /api/mcp/servers/${name}/tools`));
  front.setEvents(true);
}

/** The most rows that existed at a time while something was done; all that is not needed costs frames. */
async function mostRows(page, rows, act) {
  await page.evaluate((selector) => {
    window.most = 0;
    const look = () => (window.most = Math.max(window.most, document.querySelectorAll(selector).length));
    look();
    window.looking = new MutationObserver(look);
    window.looking.observe(document.querySelector('main'), { subtree: true, childList: true });
  }, rows);
  await act();
  return page.evaluate(() => {
    window.looking.disconnect();
    return window.most;
  });
}

export const paths = {
  async g5_the_shapes_the_console_was_built_with_are_those_of_the_api({ portway }) {
    const made = readFileSync(new URL('../../src/api/generated.ts', import.meta.url), 'utf8');
    holds(
      made === typesOf(await portway.api('GET', '/api/openapi.json')),
      'src/api/generated.ts is up to date (node tests/types.mjs BINARY)',
    );
  },

  async h7_nothing_serious_for_axe_in_both_themes({ open }) {
    const found = [];
    for (const theme of ['light', 'dark']) {
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

  async h7_works_by_keyboard_palette_focus_escape_zh_cn({ open }) {
    const { page, done } = await open({ language: 'zh-CN' });
    await page.locator('[data-server=alpha]').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').waitFor();
    await page.keyboard.type('beta');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'beta' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('5');
    await page.getByRole('heading', { name: '设置', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('1');
    await page.locator('[data-server=alpha]').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('alpha');
    await page.locator('[data-server=beta]').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await page.locator('[data-server=beta]').waitFor();
    await page.locator('h1').click();
    await page.keyboard.press('n');
    const name = page.getByRole('dialog').getByLabel('服务名称');
    await until('the focus', () => name.evaluate((node) => node === document.activeElement));
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press('Tab');
    }
    holds(
      await page.evaluate(() => document.querySelector('[role=dialog]').contains(document.activeElement)),
      'the focus stays in the dialog',
    );
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await done();
  },

  async '500 servers and 5,000 tools: only what is near the window exists, one event renders one card'({
    open,
    front,
    portway,
  }) {
    const servers = await many(front, portway);
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
        window.touched = new Set();
        new MutationObserver((changes) => {
          changes.forEach(({ target }) =>
            window.touched.add(
              (target.closest ? target : target.parentElement)?.closest('[data-server]')?.dataset.server,
            ),
          );
        }).observe(document.querySelector('main ul'), {
          subtree: true,
          childList: true,
          attributes: true,
          characterData: true,
        });
      });
      front.answer(
        'GET /api/mcp/servers',
        servers.map((server) =>
          server.name === 'server-001' ? { ...server, status: 'error', state: 'error', error: 'went away' } : server,
        ),
      );
      await page.locator('[data-server=server-001][data-status=error]').waitFor();
      // The cards below it move down; nothing inside them changes.
      same(await page.evaluate(() => [...window.touched].filter(Boolean)), ['server-001'], 'cards that were touched');

      await page.evaluate(() => (window.location.hash = '#/tools'));
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
      few(front, servers);
    }
  },
};
