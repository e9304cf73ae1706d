// SPEC H1-H5: the cards and the form of the servers.
import type { Page } from 'playwright-core';
import type { ServerRecord } from '../../src/api/types';
import { fillArguments, holds, same, until } from '../check.ts';
import type { Paths } from '../path.ts';
import { configOf } from '../records.ts';

const card = (page: Page, name: string) => page.locator(`[data-server="${name}"]`);

export const paths: Paths = {
  async h1_the_tab_bar_speaks_three_languages({ open }) {
    for (const [language, tab, add] of [
      ['zh-CN', 'MCP 服务', '添加服务'],
      ['zh-TW', 'MCP 伺服器', '新增伺服器'],
      ['en', 'MCP Servers', 'Add Server'],
    ] as const) {
      const { page, done } = await open({ language });
      await page.getByRole('navigation').getByRole('link', { name: tab }).waitFor();
      await page.getByRole('button', { name: add }).first().waitFor();
      same(await page.locator('html').getAttribute('lang'), language, 'the language of the page');
      await done();
    }
  },

  async h2_a_card_shows_what_a_server_is_and_how_it_is({ open }) {
    const { page, done } = await open();
    await card(page, 'alpha').and(page.locator('[data-status=connected]')).waitFor();
    const text = await card(page, 'alpha').innerText();
    for (const part of ['alpha', 'Running', 'fixture --era modern', 'stdio', 'MCP 2026-07-28']) {
      holds(text.includes(part), `the card says ${part}: ${text}`);
    }
    const broken = await card(page, 'broken').innerText();
    holds(broken.includes('Error') && broken.includes('no-such-command'), `the reason is on the card: ${broken}`);
    holds((await card(page, 'sleeper').innerText()).includes('Stopped'), 'a stopped one says so');
    await done();
  },

  async h2_start_stop_and_restart_from_the_card_zh_cn({ open }) {
    const { page, done } = await open({ language: 'zh-CN' });
    await page.getByRole('button', { name: '启动 sleeper' }).click();
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    // The event may precede the response, until which the card shows the action.
    await card(page, 'sleeper').getByText('运行中').first().waitFor();
    await page.getByRole('button', { name: '重启 sleeper' }).click();
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    await until('the restart to settle', () => page.getByRole('button', { name: '停止 sleeper' }).isEnabled());
    await page.getByRole('button', { name: '停止 sleeper' }).click();
    await page.locator('[data-server=sleeper][data-status=disconnected]').waitFor();
    await card(page, 'sleeper').getByText('已停止').first().waitFor();
    await done();
  },

  async h3_a_change_is_on_the_page_by_its_event_alone({ open, portway }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.evaluate(() => {
      window.eventTimes = {};
      const source = new EventSource('/api/mcp/events');
      source.addEventListener('server', (event) => {
        const server = JSON.parse(event.data as string) as ServerRecord;
        window.eventTimes[`${server.name} ${server.status}`] ??= performance.now();
      });
      window.shownTimes = {};
      const look = () => {
        const found = document.querySelector<HTMLElement>('[data-server=sleeper]');
        window.shownTimes[`sleeper ${found?.dataset.status}`] ??= performance.now();
        requestAnimationFrame(look);
      };
      look();
    });
    await portway.api('POST', '/api/mcp/servers/sleeper/start');
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    const late = await until('both times', () =>
      page.evaluate(() => {
        const key = 'sleeper connected';
        const [seen, shown] = [window.eventTimes[key], window.shownTimes[key]];
        return seen && shown ? shown - seen : undefined;
      }),
    );
    same(
      asked.filter((path) => path.startsWith('/api/mcp/servers')),
      [],
      'what the page asked for meanwhile',
    );
    await portway.api('POST', '/api/mcp/servers/sleeper/stop');
    await done();
    return `${Math.round(late)} ms after the event`;
  },

  async h3_an_answer_older_than_the_events_changes_nothing({ open, proxy }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    const answered = proxy.hold<ServerRecord>('POST /api/mcp/servers/sleeper/start');
    await page.getByRole('button', { name: 'Start sleeper', exact: true }).click();
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    const stale = await answered({ status: 'connecting', state: 'running', toolCount: 0 });
    same(stale.status, 'connecting', 'the answer is an old one');
    await until('the button to be free again', () => page.getByRole('button', { name: 'Stop sleeper' }).isEnabled());
    same(await card(page, 'sleeper').getAttribute('data-status'), 'connected', 'what the events said stays');
    await page.getByRole('button', { name: 'Stop sleeper' }).click();
    await page.locator('[data-server=sleeper][data-status=disconnected]').waitFor();
    await done();
  },

  async h3_without_events_it_polls_and_recovers_by_itself({ open, proxy, portway }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    proxy.setEvents(false);
    await page.locator('[data-link=polling]').waitFor();
    await portway.api('POST', '/api/mcp/servers/sleeper/start');
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    proxy.setEvents(true);
    await page.locator('[data-link=live]').waitFor({ timeout: 40_000 });
    await portway.api('POST', '/api/mcp/servers/sleeper/stop');
    await page.locator('[data-server=sleeper][data-status=disconnected]').waitFor();
    await done();
  },

  async h4_a_server_is_added_with_errors_beside_the_field({ open, fixture }) {
    const { page, done } = await open();
    await page.getByRole('button', { name: 'Add Server' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('Enter a name.').waitFor();
    await dialog.getByLabel('Name').fill('alpha');
    await dialog.getByLabel('Command', { exact: true }).last().fill(`"${fixture}"`);
    await fillArguments(dialog, ['--era', 'legacy']);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.locator('[aria-invalid=true]').waitFor();
    holds(/alpha/.test(await dialog.innerText()), 'the clash is named');
    await dialog.getByLabel('Name').fill('added');
    await dialog.getByLabel('Command', { exact: true }).last().fill(fixture);
    await dialog.getByRole('button', { name: 'Add variable' }).click();
    await dialog.getByLabel('Variable 1').fill('SECRET_TOKEN');
    await dialog.getByLabel('Value 1').fill('hush-hush');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('[data-server=added][data-status=connected]').waitFor();
    await dialog.waitFor({ state: 'detached' });
    holds(!(await page.content()).includes('hush-hush'), 'no secret on the page');
    await done();
  },

  async h4_an_edit_that_is_out_of_date_is_compared_first({ open, portway }) {
    const { page, done } = await open();
    await page.getByRole('button', { name: 'Edit: added' }).click();
    const dialog = page.getByRole('dialog');
    await fillArguments(dialog, ['--era', 'modern']);
    await portway.api('PATCH', '/api/mcp/servers/added', { args: ['--name', 'theirs'] });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The server has changed').waitFor();
    const text = await page.getByRole('dialog').innerText();
    holds(text.includes('theirs') && text.includes('modern'), `both are shown: ${text}`);
    await page.getByRole('button', { name: 'Save mine anyway' }).click();
    await until('the edit', async () => (await configOf(portway, 'added')).args?.includes('modern'));
    same((await configOf(portway, 'added')).env?.['SECRET_TOKEN'], '***', 'the secret is still there');
    await done();
  },

  async h2_deleting_asks_first_and_names_it_zh_tw({ open }) {
    const { page, done } = await open({ language: 'zh-TW' });
    await page.getByRole('button', { name: '刪除: added' }).click();
    await page.getByRole('dialog').getByText('刪除 added？').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    holds(await card(page, 'added').isVisible(), 'escape deletes nothing');
    await page.getByRole('button', { name: '刪除: added' }).click();
    await page.getByRole('dialog').getByRole('button', { name: '刪除' }).click();
    await card(page, 'added').waitFor({ state: 'detached' });
    await done();
  },

  async h5_a_card_unfolds_and_a_tool_is_tried_in_place({ open }) {
    const { page, done } = await open();
    await page.getByRole('button', { name: 'Show tools of alpha' }).click();
    const row = card(page, 'alpha').locator('[data-tool=echo]');
    holds((await row.innerText()).includes('Repeats a text'), 'descriptions are shown');
    await row.getByRole('button', { name: 'Try it: echo' }).click();
    await row.getByLabel('text').fill('你好, Portway');
    await row.getByRole('button', { name: 'Run' }).click();
    await row.locator('[data-result=ok]').getByText('你好, Portway').waitFor();
    await done();
  },
};
