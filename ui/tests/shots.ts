// Pictures of every screen in both themes: `npm run shots -- BINARY FIXTURE [FOLDER [NAME]]`.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { openBrowser, openPage } from './browser.ts';
import { startPortway } from './portway.ts';
import { openProxy } from './proxy.ts';
import { createEntry, createTool } from './records.ts';

const [binary, fixture, folder = 'tests/shots', only = ''] = process.argv.slice(2);
if (!binary || !fixture) {
  console.error('usage: npm run shots -- BINARY FIXTURE [FOLDER [NAME]]');
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
// Names that a reader of the pictures would know, for the same test server.
const names = mkdtempSync(join(tmpdir(), 'portway-shots-'));
for (const name of ['github-mcp', 'mcp-files', 'mcp-memory', 'mcp-weather']) {
  symlinkSync(resolve(fixture), join(names, name));
}
process.env['PATH'] = `${names}:/usr/bin:/bin`;
const portway = await startPortway(binary, {
  github: { command: 'github-mcp', args: ['--era', 'modern'], env: { GITHUB_TOKEN: '${GITHUB_TOKEN:-none}' } },
  'local-files': { command: 'mcp-files', args: ['--era', 'legacy', '--tools', '12'] },
  memory: { command: 'mcp-memory' },
  docs: { url: 'http://127.0.0.1:9/mcp', headers: { Authorization: 'Bearer ${DOCS_TOKEN:-none}' } },
  search: { command: 'false', args: ['--index', 'docs'] },
  weather: { command: 'mcp-weather', enabled: false },
});
const proxy = await openProxy(portway);
const browser = await openBrowser();
const bindings = [];
for (const [tool, server] of [
  ['echo', 'github'],
  ['add', 'github'],
  ['content', 'github'],
  ['progress', 'memory'],
  ['env', 'local-files'],
] as const) {
  bindings.push({ tool_id: (await createTool(portway, tool, server, tool)).id, status: true });
}
for (const [name, some] of [
  ['claude-code', bindings],
  ['ci-runner', bindings.slice(0, 2)],
  ['vscode', bindings.slice(1, 4)],
] as const) {
  await createEntry(portway, name, some);
}
/** A few seconds of calls, for the charts of the activity. */
async function makeCalls(): Promise<void> {
  const { page: driver, context } = await openPage(browser, proxy, portway);
  await driver.locator('[data-server=memory][data-status=connected]').waitFor();
  await driver.evaluate(async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const call = (name: string, values: Record<string, string>) =>
      fetch('/api/mcp/servers/github/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-portway-console': '1',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': name,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name, arguments: values, _meta: meta },
        }),
      }).then((answer) => answer.text());
    for (let round = 0; round < 24; round += 1) {
      await Promise.all([...Array(1 + (round % 5)).keys()].map(() => call('echo', { text: 'hello' })));
      if (round % 6 === 2) await call('fail', {});
      await new Promise((resolve) => setTimeout(resolve, 220));
    }
  });
  await context.close();
}

const shots: [name: string, path: string, act?: (page: Page) => Promise<void>][] = [
  ['servers', '#/servers'],
  [
    'unfolded',
    '#/servers',
    async (page) =>
      page
        .getByRole('button', { name: /github.*(tools|工具)|(tools|工具).*github|展开 github/ })
        .first()
        .click(),
  ],
  ['detail', '#/servers/github'],
  ['log', '#/servers/github/log'],
  ['add', '#/servers', async (page) => page.keyboard.press('n')],
  [
    'tools',
    '#/tools/github/content',
    async (page) =>
      page
        .locator('form')
        .getByRole('button')
        .filter({ hasText: /Run|运行/ })
        .click(),
  ],
  ['entries', '#/entries'],
  [
    'connect',
    '#/entries',
    async (page) => page.locator('[data-entry=claude-code] button', { hasText: /Connect|连接/ }).click(),
  ],
  ['create', '#/entries/new'],
  ['activity', '#/activity'],
  ['settings', '#/settings'],
  ['palette', '#/servers', async (page) => page.keyboard.press('Control+k')],
];
for (const [theme, language] of [
  ['light', 'en'],
  ['dark', 'zh-CN'],
] as const) {
  for (const [name, path, act] of shots.filter(([one]) => one.includes(only))) {
    if (name === 'activity') {
      await makeCalls();
    }
    const { page, context: own } = await openPage(browser, proxy, portway, { theme, language, path });
    await page.waitForTimeout(700);
    await act?.(page);
    await page.waitForTimeout(600);
    await page.screenshot({ path: `${folder}/${name}-${theme}.png` });
    await own.close();
  }
}
for (const [name, path] of [
  ['servers', '#/servers'],
  ['entries', '#/entries'],
  ['tools', '#/tools/github/echo'],
] as const) {
  const { page, context: own } = await openPage(browser, proxy, portway, { width: 320, height: 640, path });
  await page.waitForTimeout(900);
  await page.screenshot({ path: `${folder}/${name}-320.png` });
  await own.close();
}
await browser.close();
await proxy.close();
await portway.stop();
rmSync(names, { recursive: true });
