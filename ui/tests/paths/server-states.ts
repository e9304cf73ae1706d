// SPEC H2: states that a card must show truthfully, and a server in detail.
import type { Page } from 'playwright-core';
import { openPage } from '../browser.ts';
import { holds, same, until } from '../check.ts';
import type { Paths } from '../path.ts';
import { startPortway } from '../portway.ts';
import { openProxy } from '../proxy.ts';
import { listServers } from '../records.ts';

const card = (page: Page, name: string) => page.locator(`[data-server="${name}"]`);

export const paths: Paths = {
  async 'a server in detail: log, resources, configuration without secrets'({ open }) {
    const { page, done } = await open({ path: '#/servers/beta' });
    const sheet = page.getByRole('dialog', { name: 'beta' });
    await sheet.getByText('Process tree').waitFor();
    await sheet.getByRole('tab', { name: 'Resources' }).click();
    await sheet.getByText('fixture://').first().waitFor();
    await sheet.getByRole('tab', { name: 'Configuration' }).click();
    await sheet.getByText('API_TOKEN').waitFor();
    holds(!(await sheet.innerText()).includes('hidden'), 'no value of a variable');
    await sheet.getByRole('tab', { name: 'Log' }).click();
    await sheet.getByRole('log').waitFor();
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    await done();
  },

  async h2_a_crashed_server_is_amber_and_says_when_it_is_tried_again({ open, proxy, portway }) {
    const [alpha] = (await listServers(portway)).filter(({ name }) => name === 'alpha');
    const away = {
      ...alpha,
      status: 'disconnected',
      state: 'stopped',
      error: 'ended with exit code 3',
      restarts: 1,
      toolCount: 0,
    };
    proxy.setEvents(false);
    proxy.stub('GET /api/mcp/servers', [
      { ...away, name: 'crashed', retryAt: Date.now() + 50_000 },
      { ...away, name: 'failing', status: 'error', state: 'error', retryAt: Date.now() + 50_000 },
      { ...away, name: 'far', status: 'error', state: 'error', transport: 'http', retryAt: Date.now() + 50_000 },
      { ...away, name: 'stopped', error: null, restarts: 0, retryAt: null },
    ]);
    try {
      const { page, done } = await open({ width: 320, height: 640 });
      await card(page, 'crashed').waitFor();
      for (const [name, shade, word] of [
        ['crashed', 'warn', 'Restarting'],
        ['failing', 'warn', 'Restarting'],
        ['far', 'bad', 'Error'],
        ['stopped', 'idle', 'Stopped'],
      ] as const) {
        same(
          [
            await card(page, name).locator('[data-shade]').getAttribute('data-shade'),
            await card(page, name).locator('[data-word]').innerText(),
          ],
          [shade, word],
          name,
        );
      }
      const left = card(page, 'crashed').locator('[data-retry]');
      const first = await left.innerText();
      holds(/^next try in \d+ s$/.test(first), `the time left: ${first}`);
      await until('the time to run down', async () => (await left.innerText()) !== first);
      same(await card(page, 'stopped').locator('[data-retry]').count(), 0, 'a stopped one is not tried');
      holds(
        await card(page, 'crashed').getByText('stdio', { exact: true }).isVisible(),
        'the transport is on a narrow card',
      );
      await done();
    } finally {
      proxy.unstub('GET /api/mcp/servers');
      proxy.setEvents(true);
    }
  },

  async h2_what_is_not_known_is_not_green({ open, proxy }) {
    const { page, done } = await open();
    const light = card(page, 'alpha').locator('[data-shade]');
    await until('a green light', async () => (await light.getAttribute('data-shade')) === 'good');
    proxy.stub('GET /api/mcp/servers', {}, 503);
    proxy.setEvents(false);
    try {
      await page.locator('[data-link=down]').waitFor({ timeout: 60_000 });
      same(
        [await light.getAttribute('data-shade'), await card(page, 'alpha').locator('[data-word]').innerText()],
        ['idle', 'Unknown'],
        'the light',
      );
    } finally {
      proxy.unstub('GET /api/mcp/servers');
      proxy.setEvents(true);
    }
    await until('a green light', async () => (await light.getAttribute('data-shade')) === 'good', 60_000);
    await done();
  },

  async h2_a_frozen_gateway_is_not_live({ binary, browser }) {
    const portway = await startPortway(binary, { idle: { command: 'true', enabled: false } });
    const proxy = await openProxy(portway);
    try {
      const { page, faults, context } = await openPage(browser, proxy, portway);
      // The page's clock can be set forward from its next load on.
      await page.clock.install();
      await page.reload();
      await page.locator('[data-link=live]').waitFor();
      process.kill(portway.pid, 'SIGSTOP');
      await page.clock.fastForward(30_000);
      await page.locator('[data-link=live]').waitFor({ state: 'detached' });
      await page.locator('[data-link=down]').waitFor({ timeout: 60_000 });
      same(await card(page, 'idle').locator('[data-word]').innerText(), 'Unknown', 'the server');
      process.kill(portway.pid, 'SIGCONT');
      await page.locator('[data-link=live]').waitFor({ timeout: 60_000 });
      same(faults, [], 'faults');
      await context.close();
    } finally {
      process.kill(portway.pid, 'SIGCONT');
      await proxy.close();
      await portway.stop();
    }
  },
};
