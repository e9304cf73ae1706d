// SPEC H2, H5, H7, H9: what is shown, and where the keyboard is.
import { holds, same, until } from '../check.mjs';
import { openFront } from '../front.mjs';
import { openPage } from '../browser.mjs';
import { startPortway } from '../portway.mjs';

const card = (page, name) => page.locator(`[data-server="${name}"]`);
const focused = (locator) => until('the focus', () => locator.evaluate((node) => node === document.activeElement));

export const paths = {
  async h2_a_crashed_server_is_amber_and_says_when_it_is_tried_again({ open, front, portway }) {
    const [alpha] = (await portway.api('GET', '/api/mcp/servers')).filter(({ name }) => name === 'alpha');
    const away = {
      ...alpha,
      status: 'disconnected',
      state: 'stopped',
      error: 'ended with exit code 3',
      restarts: 1,
      toolCount: 0,
    };
    front.setEvents(false);
    front.answer('GET /api/mcp/servers', [
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
      ]) {
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
      front.unanswer('GET /api/mcp/servers');
      front.setEvents(true);
    }
  },

  async h2_what_is_not_known_is_not_green({ open, front }) {
    const { page, done } = await open();
    const light = card(page, 'alpha').locator('[data-shade]');
    await until('a green light', async () => (await light.getAttribute('data-shade')) === 'good');
    front.answer('GET /api/mcp/servers', {}, 503);
    front.setEvents(false);
    try {
      await page.locator('[data-link=down]').waitFor({ timeout: 60_000 });
      same(
        [await light.getAttribute('data-shade'), await card(page, 'alpha').locator('[data-word]').innerText()],
        ['idle', 'Unknown'],
        'the light',
      );
    } finally {
      front.unanswer('GET /api/mcp/servers');
      front.setEvents(true);
    }
    await until('a green light', async () => (await light.getAttribute('data-shade')) === 'good', 60_000);
    await done();
  },

  async h2_a_frozen_gateway_is_not_live({ binary, browser }) {
    const portway = await startPortway(binary, { idle: { command: 'true', enabled: false } });
    const front = await openFront(portway);
    try {
      const { page, faults, context } = await openPage(browser, front, portway);
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
      await front.close();
      await portway.stop();
    }
  },

  async h5_a_required_object_without_fields_does_not_block_a_call({ open, front, portway }) {
    const tools = await portway.api('GET', '/api/mcp/servers/alpha/tools');
    const inputSchema = {
      type: 'object',
      required: ['options', 'more', 'names', 'text'],
      properties: {
        options: { type: 'object', properties: {} },
        more: { type: 'object', properties: { x: { type: 'string' } } },
        names: { type: 'array', items: { type: 'string' } },
        text: { type: 'string' },
      },
    };
    front.answer(
      'GET /api/mcp/servers/alpha/tools',
      tools.map((one) => (one.name === 'echo' ? { ...one, inputSchema } : one)),
    );
    try {
      const { page, done } = await open({ path: '#/tools/alpha/echo' });
      const run = page.getByRole('button', { name: 'Run' });
      await run.click();
      await page.getByText('Check these fields: text').waitFor();
      await page.getByLabel('text', { exact: true }).fill('here');
      const sent = page.waitForRequest((request) => request.url().endsWith('/servers/alpha/mcp'));
      await run.click();
      same(
        (await sent).postDataJSON().params.arguments,
        { options: {}, more: {}, names: [], text: 'here' },
        'what is sent',
      );
      await done();
    } finally {
      front.unanswer('GET /api/mcp/servers/alpha/tools');
    }
  },

  async h7_the_focus_returns_after_every_dialog_and_menu({ open, portway }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    const opened = () => page.getByRole('dialog').last().waitFor();
    const closed = async () => {
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    for (const from of [
      page.getByRole('button', { name: 'Add Server' }).first(),
      page.getByRole('button', { name: 'Edit: alpha' }),
      page.getByRole('button', { name: 'Delete: alpha' }),
      card(page, 'alpha').getByRole('link').first(),
    ]) {
      await from.focus();
      await page.keyboard.press('Enter');
      await opened();
      await closed();
      await focused(from);
    }
    const search = page.getByRole('searchbox').first();
    await search.focus();
    await page.keyboard.press('Control+k');
    await opened();
    await closed();
    await focused(search);
    // From the palette to a dialog: back to where the palette was opened.
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('Add Server');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Add Server' }).waitFor();
    await closed();
    await focused(search);
    // A dialog above a sheet.
    await page.evaluate(() => (window.location.hash = '#/servers/alpha'));
    const edit = page.getByRole('dialog', { name: 'alpha' }).getByRole('button', { name: 'Edit: alpha' });
    await edit.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Edit alpha' }).waitFor();
    await page.keyboard.press('Escape');
    await focused(edit);
    await closed();

    const entry = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name: 'focus', bindings: [] });
    await page.evaluate(() => (window.location.hash = '#/entries'));
    const menu = page.getByRole('button', { name: 'More actions for focus' });
    await menu.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menu').waitFor();
    await page.keyboard.press('Escape');
    await focused(menu);
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
    await opened();
    await closed();
    await focused(menu);
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);

    // A button stays where the keyboard is while it works, and turns into its opposite.
    await page.evaluate(() => (window.location.hash = '#/servers'));
    const start = page.getByRole('button', { name: 'Start sleeper', exact: true });
    await start.focus();
    await page.keyboard.press('Enter');
    await page.locator('[data-server=sleeper][data-status=connected]').waitFor();
    await focused(page.getByRole('button', { name: 'Stop sleeper', exact: true }));
    await page.keyboard.press('Enter');
    await page.locator('[data-server=sleeper][data-status=disconnected]').waitFor();
    await done();
  },

  async h7_the_focus_stays_while_a_button_works({ open, portway }) {
    const { page, done } = await open({ path: '#/tools/alpha/progress' });
    const run = page.getByRole('button', { name: /^(Run|Running)$/ });
    const fields = page.locator('form input[inputmode=decimal]');
    await fields.first().waitFor();
    for (const [at, field] of (await fields.all()).entries()) {
      await field.fill(at === 0 ? '600' : '100');
    }
    await run.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('progressbar').waitFor();
    await focused(run);
    // A busy button does nothing.
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Cancel' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('Cancelled.').waitFor();
    await focused(run);

    await page.evaluate(() => (window.location.hash = '#/tools/alpha/elicit'));
    await page.getByRole('heading', { name: 'elicit' }).waitFor();
    await run.focus();
    await page.keyboard.press('Enter');
    const question = page.getByRole('dialog', { name: /The server asks/ });
    await question.getByRole('button', { name: 'Decline' }).press('Enter');
    await question.waitFor({ state: 'detached' });
    await page.locator('[data-result]').waitFor();
    await focused(run);

    // From a menu to a question to the new key: back to the menu's button.
    const entry = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name: 'turning', bindings: [] });
    await page.evaluate(() => (window.location.hash = '#/entries'));
    const menu = page.getByRole('button', { name: 'More actions for turning' });
    await menu.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Rotate key' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).press('Enter');
    await page.getByText('This key is shown once.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await focused(menu);
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);

    // What is refused leaves the keyboard on the button.
    await page.evaluate(() => (window.location.hash = '#/servers'));
    await card(page, 'alpha').waitFor();
    await page.keyboard.press('n');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('alpha');
    await dialog.getByLabel('Command', { exact: true }).last().fill('true');
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await add.press('Enter');
    await dialog.locator('[aria-invalid=true]').waitFor();
    await focused(add);
    await done();
  },

  async h9_a_definition_with_a_bad_name_is_renamed({ binary, browser }) {
    const portway = await startPortway(binary, {
      'my/server: 1': { command: 'true', args: ['--kept'], enabled: false, note: 'mine' },
    });
    const front = await openFront(portway);
    try {
      const { page, faults, context } = await openPage(browser, front, portway);
      await page.getByRole('button', { name: 'Edit: my/server: 1' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill('still/bad');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.locator('[aria-invalid=true]').waitFor();
      await dialog.getByLabel('Name').fill('my-server');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await card(page, 'my-server').waitFor();
      await card(page, 'my/server: 1').waitFor({ state: 'detached' });
      const { config } = await portway.api('GET', '/api/mcp/servers/my-server');
      same([config.command, config.args], ['true', ['--kept']], 'the rest of it');
      same(faults, [], 'faults');
      await context.close();
    } finally {
      await front.close();
      await portway.stop();
    }
  },

  async h7_the_console_is_loaded_compressed({ open }) {
    const { page, done } = await open();
    await card(page, 'alpha').waitFor();
    const scripts = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
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

  async 'activity draws a call once and makes no formatter for it'({ open, portway }) {
    const CALLS = 40;
    // A row formats its time when it is drawn; so drawings can be counted.
    const count = () => {
      const RealFormat = Intl.DateTimeFormat;
      window.counted = { made: 0, used: 0 };
      const { format } = Object.getOwnPropertyDescriptors(RealFormat.prototype);
      Object.defineProperty(RealFormat.prototype, 'format', {
        ...format,
        get() {
          const real = format.get.call(this);
          return (at) => {
            window.counted.used += 1;
            return real(at);
          };
        },
      });
      for (const name of ['toLocaleTimeString', 'toLocaleString']) {
        const real = Date.prototype[name];
        Date.prototype[name] = function counted(...options) {
          window.counted.made += 1;
          return real.apply(this, options);
        };
      }
      Intl.DateTimeFormat = class extends RealFormat {
        constructor(...options) {
          super(...options);
          window.counted.made += 1;
        }
      };
    };
    const { page, done } = await open({ path: '#/activity', init: count });
    await page.locator('[data-link=live]').waitFor();
    const { name } = (await portway.api('GET', '/api/mcp/tools')).tools.find((one) => /alpha.*echo/.test(one.name));
    const call = (text) => portway.api('POST', `/api/mcp/tools/${name}/call`, { arguments: { text } });
    await call('first');
    await page.locator('[data-call="alpha:echo"]').first().waitFor();
    const before = await page.evaluate(() => ({
      ...window.counted,
      rows: document.querySelectorAll('[data-call]').length,
    }));
    for (let at = 0; at < CALLS; at += 1) {
      await call(`call ${at}`);
    }
    await until(
      'the calls to be shown',
      async () => (await page.evaluate(() => window.counted.used)) - before.used >= CALLS,
    );
    const after = await page.evaluate(() => ({ ...window.counted }));
    holds(after.made - before.made <= 2, `${after.made - before.made} formatters were made for ${CALLS} calls`);
    holds(after.used - before.used <= CALLS * 2 + 50, `${after.used - before.used} rows were drawn for ${CALLS} calls`);
    await done();
    return `${after.used - before.used} rows drawn for ${CALLS} calls`;
  },

  async 'activity moves its rows once a second, however many calls there are'({ open, portway }) {
    const CALLS = 40;
    const { page, done } = await open({ path: '#/activity' });
    // From here on the page's time is that of the test: a tenth of a second a call.
    await page.clock.install();
    await page.reload();
    await page.locator('[data-link=live]').waitFor();
    const { name } = (await portway.api('GET', '/api/mcp/tools')).tools.find((one) => /alpha.*echo/.test(one.name));
    const call = () => portway.api('POST', `/api/mcp/tools/${name}/call`, { arguments: { text: 'again' } });
    await call();
    await page.locator('[data-call="alpha:echo"]').first().waitFor();
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.evaluate(() => {
      window.told = 0;
      window.moved = 0;
      new window.EventSource('/api/mcp/events').addEventListener('call_ended', () => (window.told += 1));
      new MutationObserver(() => (window.moved += 1)).observe(document.querySelector('tbody'), { childList: true });
    });
    // The second stream is open once it tells of a call.
    await until('the stream of the test', async () => {
      await call();
      return page.evaluate(() => window.told > 0);
    });
    await page.evaluate(() => {
      window.told = 0;
      window.moved = 0;
    });
    for (let at = 1; at <= CALLS; at += 1) {
      await call();
      await until('the call to be told', () => page.evaluate((n) => window.told >= n, at));
      await page.clock.runFor(100);
    }
    const moved = await page.evaluate(() => window.moved);
    holds(moved >= 1 && moved <= CALLS / 5, `the rows moved ${moved} times in ${CALLS / 10} s`);
    await done();
    return `${moved} times in ${CALLS / 10} s`;
  },

  async 'times and shares are written as the language has them'({ open, front }) {
    const at = new Date(2026, 0, 2, 0, 15, 0).getTime();
    const call = {
      id: 1,
      server: 'alpha',
      tool: 'echo',
      entry: null,
      principal: 'admin',
      at,
      durationMs: 3,
      outcome: 'ok',
    };
    const second = { at, calls: 5, errors: 1, p50: 1, p95: 2, p99: 3 };
    front.answer('GET /api/mcp/activity', { inFlight: [], recent: [call], perSecond: [second, second], dropped: 0 });
    try {
      for (const language of ['en', 'zh-CN', 'zh-TW']) {
        const { page, done } = await open({ path: '#/activity', language });
        const row = page.locator('[data-call]').first();
        await row.waitFor();
        same(await row.locator('td').first().innerText(), '00:15:00', `midnight in ${language}`);
        holds(/(^|\s)20%/.test(await page.locator('main').innerText()), `a share in ${language}`);
        await done();
      }
    } finally {
      front.unanswer('GET /api/mcp/activity');
    }
  },
};
