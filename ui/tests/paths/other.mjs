// The other screens: tools, entries, activity, settings, signing in.
import { holds, same, until } from '../check.mjs';

const tool = (name) => ({ path: `#/tools/alpha/${name}` });

/** The tools that the holder of a key sees. */
async function listed(portway, key) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const answer = await fetch(`${portway.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }),
  });
  const text = await answer.text();
  return JSON.parse(text.startsWith('{') ? text : /^data: ?(.*)$/m.exec(text)[1]).result.tools;
}

export const paths = {
  async k3_without_a_session_the_token_is_asked_for({ open, portway }) {
    const { page, done } = await open({ signedIn: false });
    await page.getByLabel('Admin token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('That is not the admin token.').waitFor();
    await page.getByLabel('Admin token').fill(portway.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('[data-server=alpha]').waitFor();
    holds(!page.url().includes(portway.token), 'the token is not in the address');
    await done();
  },

  async 'tools are found by search and called with a form and with JSON'({ open }) {
    const { page, done } = await open({ path: '#/tools' });
    await page.getByRole('searchbox', { name: 'Search all tools' }).fill('adds two alpha');
    await page.getByRole('link', { name: /^add/ }).first().click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('This is needed.').first().waitFor();
    const numbers = page.locator('form input[inputmode=decimal]');
    await numbers.nth(0).fill('20');
    await numbers.nth(1).fill('22');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('[data-result=ok]').getByText('42').first().waitFor();
    await page.getByRole('button', { name: 'JSON' }).click();
    const editor = page.locator('form textarea');
    const text = await editor.inputValue();
    same(Object.values(JSON.parse(text)), [20, 22], 'the form as JSON');
    await editor.fill(text.replace('20', '1'));
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('[data-result=ok]').getByText('23').first().waitFor();
    await editor.fill('{ not json');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('Not valid JSON').waitFor();
    await done();
  },

  async 'a result may be text, image, audio, link or resource; an error says so'({ open }) {
    const { page, done } = await open(tool('content'));
    await page.getByRole('button', { name: 'Run' }).click();
    const result = page.locator('[data-result=ok]');
    await result.getByRole('img', { name: 'Image' }).waitFor();
    await result.getByRole('group', { name: 'Audio' }).waitFor();
    await result.getByText('fixture://embedded').waitFor();
    const drawn = await page.locator('canvas').evaluate((canvas) => canvas.width > 0 && canvas.width < 300);
    holds(drawn, 'the picture is drawn');
    await page.evaluate(() => (window.location.hash = '#/tools/alpha/fail'));
    await page.getByRole('heading', { name: 'fail' }).waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('[data-result=error]').waitFor();
    await done();
  },

  async 'a call shows its progress and can be cancelled'({ open }) {
    const { page, done } = await open(tool('progress'));
    await page.getByRole('heading', { name: 'progress' }).waitFor();
    for (const [label, value] of [
      [/steps|count|n\b/i, '5'],
      [/ms|millis|delay|pause/i, '100'],
    ]) {
      const field = page.locator('form').getByLabel(label).first();
      if (await field.count()) {
        await field.fill(value);
      }
    }
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('progressbar').waitFor();
    await page.locator('[data-result=ok]').waitFor();
    await page.evaluate(() => (window.location.hash = '#/tools/alpha/hang'));
    await page.getByRole('heading', { name: 'hang' }).waitFor();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('Cancelled.').waitFor();
    await done();
  },

  async 'a question of the server is a form, in both eras'({ open }) {
    for (const server of ['alpha', 'beta']) {
      const { page, done } = await open({ path: `#/tools/${server}/elicit` });
      await page.getByRole('heading', { name: 'elicit' }).waitFor();
      await page.getByRole('button', { name: 'Run' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      for (const input of await dialog.locator('textarea, input:not([type=checkbox])').all()) {
        await input.fill((await input.getAttribute('inputmode')) === 'decimal' ? '7' : 'Ada');
      }
      for (const choice of await dialog.locator('select').all()) {
        await choice.selectOption({ index: 1 });
      }
      await dialog.getByRole('button', { name: 'Send' }).click();
      await page.locator('[data-result]').waitFor();
      holds(/Ada|accept/.test(await page.locator('[data-result]').innerText()), `${server} got the answer`);
      await done();
    }
  },

  async h6_an_entry_is_made_with_its_tools_used_rotated_switched_off_and_deleted({ open, portway }) {
    const { page, done } = await open({ path: '#/entries' });
    await page.getByRole('button', { name: 'New entry' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Create entry' }).click();
    await dialog.getByText('A name is needed.').waitFor();
    await dialog.getByLabel('Name').fill('my client');
    await dialog.getByRole('searchbox').fill('alpha echo');
    await dialog.getByRole('checkbox', { name: /^echo/ }).check();
    await dialog.getByRole('button', { name: 'Create entry' }).click();
    await page.getByText('my client is ready').waitFor();
    const key = await page.getByRole('dialog').locator('code').first().innerText();
    for (const client of [
      'Claude Code',
      'Claude Desktop',
      'VS Code',
      'Cursor',
      'Codex',
      'Gemini CLI',
      'opencode',
      'curl',
    ]) {
      await page.getByRole('button', { name: client, exact: true }).click();
      holds(
        (await page.locator('[data-settings]').innerText()).includes(key),
        `the settings for ${client} have the key`,
      );
    }
    same(
      (await listed(portway, key)).map(({ name }) => name),
      ['echo'],
      'what a client with that key sees',
    );
    await page.getByRole('button', { name: 'Copy: Key' }).click();
    await page.getByRole('dialog').getByText('Copied').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    const [entry] = (await portway.api('GET', '/api/v1/mcp_v2')).items.filter(({ name }) => name === 'my client');
    same(
      (await portway.api('GET', `/api/v1/mcp_v2/${entry.id}/bindings`)).items.map(({ name, status }) => [name, status]),
      [['echo', true]],
      'what is bound',
    );

    await page.getByRole('checkbox', { name: 'alpha:add in my client' }).click();
    await until(
      'the binding',
      async () => (await portway.api('GET', `/api/v1/mcp_v2/${entry.id}/bindings`)).items.length === 2,
    );
    const cell = page.getByRole('checkbox', { name: 'alpha:echo in my client' });
    await until('the tick', () => cell.isChecked());
    await cell.click();
    await until(
      'the binding switched off',
      async () =>
        !(await portway.api('GET', `/api/v1/mcp_v2/${entry.id}/bindings`)).items.find(({ name }) => name === 'echo')
          .status,
    );

    await page.getByRole('switch', { name: 'Enable my client' }).click();
    await until('the entry switched off', async () => !(await portway.api('GET', `/api/v1/mcp_v2/${entry.id}`)).status);
    await page.getByRole('button', { name: 'More actions for my client' }).click();
    await page.getByRole('menuitem', { name: 'Rotate key' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click();
    await page.getByText('This key is shown once.').waitFor();
    holds((await page.getByRole('dialog').locator('code').first().innerText()) !== key, 'the key is new');
    await page.getByRole('button', { name: 'Copy: Key' }).click();
    await page.getByRole('dialog').getByText('Copied').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'More actions for my client' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByText('Delete entry my client?').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.locator('[data-entry="my client"]').waitFor({ state: 'detached' });
    await done();
  },

  async h6_an_entry_is_edited_its_patterns_and_what_it_exposes_too({ open, portway }) {
    const made = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name: 'plain', bindings: [] });
    const { page, done } = await open({ path: '#/entries' });
    await page.getByRole('button', { name: 'More actions for plain' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('patterned');
    await dialog.getByLabel('Tools by pattern').fill('not a pattern');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.locator('textarea[aria-invalid=true]').waitFor();
    await dialog.getByLabel('Tools by pattern').fill('alpha:e*\nbeta:add');
    await dialog.getByLabel('Never these tools').fill('*:elicit*');
    await dialog.getByLabel('Resources of').fill('alpha');
    await dialog.getByLabel('Expires').fill('2099-01-02T03:04:05');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const card = page.locator('[data-entry=patterned]');
    await card.getByText('alpha:e*, beta:add').waitFor();
    const entry = await portway.api('GET', `/api/v1/mcp_v2/${made.id}`);
    same(
      [entry.filter, entry.exposes],
      [
        { allow: ['alpha:e*', 'beta:add'], deny: ['*:elicit*'] },
        { resources: ['alpha'], prompts: [] },
      ],
      'the entry',
    );
    holds(entry.key.expires_at?.startsWith('2099-01-0'), `it expires: ${entry.key.expires_at}`);
    const names = (await listed(portway, made.api_key)).map(({ name }) => name);
    holds(
      names.some((name) => name.includes('echo')) && !names.some((name) => name.includes('elicit')),
      `what its key gives: ${names}`,
    );
    await portway.api('DELETE', `/api/v1/mcp_v2/${made.id}`);
    await done();
  },

  async 'activity shows a call while it runs and after (zh-CN)'({ open }) {
    const { page, done } = await open({ path: '#/tools/alpha/echo', language: 'zh-CN' });
    await page.getByRole('heading', { name: 'echo' }).waitFor();
    await page.locator('form textarea').first().fill('x');
    await page.getByRole('button', { name: '运行' }).click();
    await page.locator('[data-result=ok]').waitFor();
    await page.getByRole('link', { name: '活动' }).click();
    const row = page.locator('[data-call="alpha:echo"]').first();
    await row.waitFor();
    holds((await row.innerText()).includes('成功'), 'with its outcome');
    await done();
  },

  async 'settings tell of sources and plan a file (zh-TW)'({ open }) {
    const { page, done } = await open({ path: '#/settings', language: 'zh-TW' });
    await page.getByRole('link', { name: 'alpha' }).waitFor();
    await page
      .getByLabel('.mcp.json')
      .fill('{"mcpServers":{"alpha":{"command":"true"},"new":{"url":"http://127.0.0.1:9/mcp"}}}');
    await page.getByRole('button', { name: '預覽變更' }).click();
    const plan = await page.locator('[data-plan]').innerText();
    for (const part of ['將啟動', 'new', '將重啟', 'alpha', '將移除', 'beta']) {
      holds(plan.includes(part), `${part} is in the plan: ${plan}`);
    }
    await page.getByLabel('.mcp.json').fill('{');
    await page.getByRole('button', { name: '預覽變更' }).click();
    await page.locator('textarea[aria-invalid=true]').waitFor();
    await page.getByRole('button', { name: '深色' }).click();
    same(await page.locator('html').getAttribute('data-theme'), 'dark', 'the theme');
    await page.getByRole('group', { name: '語言' }).getByRole('button', { name: 'English' }).click();
    await page.getByRole('heading', { name: 'Appearance' }).waitFor();
    await done();
  },

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
};
