// SPEC H9: all that REST can do with servers, tools, resources, prompts and entries.
import { holds, same, until } from '../check.mjs';

const offer = (page, name) => page.locator(`[data-offer="${name}"]`);
const record = (page, name) => page.locator(`[data-record="${name}"]`);

async function bindings(portway, entry) {
  return (await portway.api('GET', `/api/v1/mcp_v2/${entry.id}/bindings`)).items.map(({ name }) => name);
}

/** An entry without tools, and the page of the entries. */
async function entryOf({ open, portway }, name) {
  const entry = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name, bindings: [] });
  return { entry, ...(await open({ path: '#/entries' })) };
}

async function fromMenu(page, name, item) {
  await page.getByRole('button', { name: `More actions for ${name}`, exact: true }).click();
  await page.getByRole('menuitem', { name: item, exact: true }).click();
}

/** The id of the session of a page. */
async function sessionOf(page) {
  const sessions = await page.evaluate(async () => (await window.fetch('/api/console/sessions')).json());
  return sessions.find(({ current }) => current).id;
}

export const paths = {
  async h9_a_resource_is_read_where_it_stands_in_both_eras({ open }) {
    for (const server of ['alpha', 'beta']) {
      const { page, done } = await open({ path: `#/servers/${server}/resources` });
      const text = offer(page, 'fixture://text');
      await text.getByRole('button', { name: 'Read: A text' }).click();
      await text.locator('[data-result=ok]').getByText('a fixed text').waitFor();
      const binary = offer(page, 'fixture://binary');
      await binary.getByRole('button', { name: 'Read: binary' }).click();
      await binary.getByRole('img', { name: 'Image' }).waitFor();
      const template = offer(page, 'fixture://item/{id}');
      await template.getByRole('button', { name: 'Read: item' }).click();
      await template.getByRole('button', { name: 'Read', exact: true }).click();
      await template.getByText('This is needed.').waitFor();
      await template.getByLabel('id').fill('seven');
      await template.getByRole('button', { name: 'Read', exact: true }).click();
      await template.locator('[data-result=ok]').getByText('{"id":"seven"}').waitFor();
      await done();
    }
  },

  async h9_a_resource_is_read_by_its_uri_and_an_unknown_one_says_so({ open }) {
    const { page, done } = await open({ path: '#/servers/alpha/resources' });
    const other = offer(page, '');
    await other.getByRole('button', { name: 'Read: Resource by URI' }).click();
    const uri = other.getByRole('textbox', { name: 'URI' });
    await uri.fill('fixture://nowhere');
    await page.keyboard.press('Enter');
    await other.getByText('Resource not found').waitFor();
    await uri.fill('fixture://item/unlisted');
    await page.keyboard.press('Enter');
    await other.locator('[data-result=ok]').getByText('{"id":"unlisted"}').waitFor();
    await done();
  },

  async h9_a_template_is_filled_in_as_rfc_6570_says({ open, front }) {
    const cases = [
      ['{id}', { id: 'a b/é(1)' }, 'a%20b%2F%C3%A9%281%29'],
      ['{+path}/here', { path: 'foo/bar?x=[50%25]' }, 'foo/bar?x=[50%25]/here'],
      ['x{/one,two}', { one: 'a/b', two: 'c' }, 'x/a%2Fb/c'],
      ['x{.end}', { end: 'tar' }, 'x.tar'],
      ['x{?q,empty,left}', { q: 'a&b' }, 'x?q=a%26b'],
      ['x?fixed=1{&q}{#part}', { part: 'a/b' }, 'x?fixed=1#a/b'],
      ['x{;q:2}', { q: 'value' }, 'x;q=va'],
      ['x{?tag*}', { tag: ['a', 'b c'] }, 'x?tag=a&tag=b%20c'],
    ];
    const uri = (rest) => `fixture://item/${rest}`;
    front.answer(
      'GET /api/mcp/servers/alpha/resources',
      cases.map(([template]) => ({ uriTemplate: uri(template), name: template })),
    );
    try {
      const { page, done } = await open({ path: '#/servers/alpha/resources' });
      for (const [template, values, expected] of cases) {
        const row = offer(page, uri(template));
        await row.getByRole('button', { name: `Read: ${template}` }).click();
        for (const [name, value] of Object.entries(values)) {
          for (const [at, item] of Array.isArray(value) ? value.entries() : []) {
            await row.getByRole('button', { name: 'Add item' }).click();
            await row.getByLabel(`Item ${at + 1}`, { exact: true }).fill(item);
          }
          if (!Array.isArray(value)) {
            await row.getByRole('textbox', { name: new RegExp(`^${name}\\b`) }).fill(value);
          }
        }
        await row.getByRole('button', { name: 'Read', exact: true }).click();
        const result = row.locator('[data-result=ok]');
        await result.waitFor();
        holds((await result.innerText()).includes(uri(expected)), `${template}: ${await result.innerText()}`);
        await row.getByRole('button', { name: `Close: ${template}` }).click();
      }
      await done();
    } finally {
      front.unanswer('GET /api/mcp/servers/alpha/resources');
    }
  },

  async h9_a_prompt_is_got_with_its_arguments_and_may_ask_first({ open }) {
    for (const server of ['alpha', 'beta']) {
      const { page, done } = await open({ path: `#/servers/${server}/prompts` });
      const compose = offer(page, 'compose');
      await compose.getByRole('button', { name: 'Get: compose' }).click();
      await compose.getByRole('button', { name: 'Get', exact: true }).click();
      await compose.getByText('This is needed.').waitFor();
      await compose.getByLabel('topic').fill('the sea');
      await compose.getByRole('button', { name: 'Get', exact: true }).click();
      const result = compose.locator('[data-result=ok]');
      await result.getByText('Write a calm text about the sea.').waitFor();
      await result.getByText('User', { exact: true }).waitFor();
      await compose.getByLabel('tone').fill('loud');
      await compose.getByRole('button', { name: 'Get', exact: true }).click();
      await result.getByText('Write a loud text about the sea.').waitFor();

      const interview = offer(page, 'interview');
      await interview.getByRole('button', { name: 'Get: interview' }).click();
      const question = page.getByRole('dialog', { name: /The server asks/ });
      await question.getByText('Who asks?').waitFor();
      await question.getByLabel('name').fill('Ada');
      await question.getByRole('button', { name: 'Send' }).click();
      await interview
        .locator('[data-result=ok]')
        .getByText(/Interview .*Ada/)
        .waitFor();
      await done();
    }
  },

  async h8_arguments_of_a_prompt_and_of_a_template_survive_leaving_the_server({ open }) {
    const { page, done } = await open({ path: '#/servers/alpha/prompts' });
    await offer(page, 'compose').getByRole('button', { name: 'Get: compose' }).click();
    await offer(page, 'compose').getByLabel('topic').fill('half a thought');
    await page.getByRole('tab', { name: 'Resources' }).click();
    await offer(page, 'fixture://item/{id}').getByRole('button', { name: 'Read: item' }).click();
    await offer(page, 'fixture://item/{id}').getByLabel('id').fill('4');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.evaluate(() => (window.location.hash = '#/servers/alpha/prompts'));
    same(await offer(page, 'compose').getByLabel('topic').inputValue(), 'half a thought', 'the argument');
    await page.getByRole('tab', { name: 'Resources' }).click();
    same(await offer(page, 'fixture://item/{id}').getByLabel('id').inputValue(), '4', 'the variable');
    await done();
  },

  async h9_a_tool_record_is_made_edited_and_deleted({ open, portway }) {
    const { entry, page, done } = await entryOf({ open, portway }, 'recorded');
    await page.getByRole('button', { name: 'New tool record' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('shout');
    await dialog.getByLabel('Server', { exact: true }).fill('alpha');
    await dialog.getByLabel('Tool of the server').fill('ecko');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.locator('input[aria-invalid=true]').waitFor();
    await dialog.getByLabel('Tool of the server').fill('echo');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await record(page, 'shout').getByText('alpha:echo').waitFor();

    await record(page, 'shout').getByRole('button', { name: 'Add to entry: shout' }).click();
    await page.getByRole('menuitem', { name: 'recorded' }).click();
    await until('the binding', async () => (await bindings(portway, entry)).includes('shout'));
    await fromMenu(page, 'shout', 'Edit');
    await dialog.getByLabel('Name').fill('whisper');
    await dialog.getByLabel('Description').fill('Says it again.');
    await page.keyboard.press('Escape');
    await dialog.getByText('What you typed will be lost.').waitFor();
    await dialog.getByRole('button', { name: 'Go back' }).click();
    same(await dialog.getByLabel('Description').inputValue(), 'Says it again.', 'what was typed');
    await dialog.getByLabel('Tool of the server').fill('not_yet');
    await dialog.getByLabel('Save it even if').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await record(page, 'whisper').getByText('not offered now').waitFor();
    const [made] = (await portway.api('GET', '/api/v1/tools?limit=200')).items.filter(({ name }) => name === 'whisper');
    same(
      [made.description, made.server, made.tool, made.missing],
      ['Says it again.', 'alpha', 'not_yet', 'tool'],
      'the record',
    );

    await fromMenu(page, 'whisper', 'Delete');
    await dialog.getByText('lose the tool at once: recorded').waitFor();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await record(page, 'whisper').waitFor({ state: 'detached' });
    same(await bindings(portway, entry), [], 'what is bound');
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);
    await done();
  },

  async h9_a_binding_is_removed_and_the_focus_stays_in_the_row({ open, portway }) {
    const tool = await portway.api('POST', '/api/v1/tools', { name: 'sum', server: 'alpha', tool: 'add' });
    const { entry, page, done } = await entryOf({ open, portway }, 'unbound');
    await portway.api('POST', `/api/v1/mcp_v2/${entry.id}/bindings`, { tool_id: tool.id });
    const button = page.getByRole('button', { name: 'Remove sum from unbound' });
    await button.focus();
    await page.keyboard.press('Enter');
    await button.waitFor({ state: 'detached' });
    same(await bindings(portway, entry), [], 'what is bound');
    await record(page, 'sum').getByText('in no entry').waitFor();
    holds(await record(page, 'sum').evaluate((row) => row.contains(document.activeElement)), 'the focus is in the row');
    await portway.api('DELETE', `/api/v1/tools/${tool.id}`);
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);
    await done();
  },

  async h9_the_tools_that_clients_of_an_entry_see_are_shown({ open, portway }) {
    const tool = await portway.api('POST', '/api/v1/tools', { name: 'sum', server: 'alpha', tool: 'add' });
    const { entry, page, done } = await entryOf({ open, portway }, 'mixed');
    await portway.api('POST', `/api/v1/mcp_v2/${entry.id}/bindings`, { tool_id: tool.id });
    await portway.api('PATCH', `/api/v1/mcp_v2/${entry.id}`, { filter: { allow: ['beta:ech*'], deny: [] } });
    await fromMenu(page, 'mixed', 'Show its tools');
    const dialog = page.getByRole('dialog', { name: 'Tools of mixed' });
    await dialog.getByRole('listitem').filter({ hasText: 'alpha:add' }).getByText('bound').waitFor();
    await dialog.getByRole('listitem').filter({ hasText: 'beta:echo' }).getByText('by pattern').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await portway.api('DELETE', `/api/v1/tools/${tool.id}`);
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);
    await done();
  },

  async h9_an_entry_may_expose_a_server_that_is_not_there({ open, portway }) {
    const { entry, page, done } = await entryOf({ open, portway }, 'ahead');
    await fromMenu(page, 'ahead', 'Edit');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Resources of').fill('to-come');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.locator('textarea[aria-invalid=true]').waitFor();
    await dialog.getByLabel('Save it even if').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    same((await portway.api('GET', `/api/v1/mcp_v2/${entry.id}`)).exposes.resources, ['to-come'], 'what is exposed');
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);
    await done();
  },

  async h9_browsers_are_listed_and_signed_out({ open, portway }) {
    const other = await open({ path: '#/activity' });
    const third = await open();
    const { page, done } = await open({ path: '#/settings' });
    const [own, theirs, thirds] = [await sessionOf(page), await sessionOf(other.page), await sessionOf(third.page)];
    await page.locator(`[data-session="${own}"]`).getByText('this browser').waitFor();
    const row = page.locator(`[data-session="${theirs}"]`);
    await row.getByRole('button', { name: 'Sign out: Chrome, Linux' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const button = row.getByRole('button');
    await until('the focus', () => button.evaluate((node) => node === document.activeElement));
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
    await row.waitFor({ state: 'detached' });
    await other.page.reload();
    await other.page.getByLabel('Admin token').waitFor();
    await page.locator(`[data-session="${thirds}"]`).waitFor();

    await page.getByRole('button', { name: 'Sign out all others' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
    await until('the only session', async () => (await portway.api('GET', '/api/console/sessions')).length === 1);
    await page.locator('[data-session]').nth(1).waitFor({ state: 'detached' });
    await third.page.reload();
    await third.page.getByLabel('Admin token').waitFor();

    // One's own is ended too: the token is asked for, and brings the page back.
    await page.getByRole('button', { name: 'Sign out: Chrome, Linux' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Admin token').fill(portway.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('this browser').waitFor();
    await done();
  },

  async h9_resources_and_records_speak_chinese_and_fit_320_px({ open, portway }) {
    const tool = await portway.api('POST', '/api/v1/tools', {
      name: 'a_rather_long_name_of_a_record_that_has_to_wrap',
      server: 'alpha',
      tool: 'add',
    });
    const made = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', {
      name: 'an entry with a rather long name too',
      bindings: [{ tool_id: tool.id, status: true }],
    });
    const { page, done } = await open({ width: 320, height: 640, language: 'zh-CN', path: '#/servers/alpha/prompts' });
    const narrow = async (what) => {
      const wide = await page.evaluate(() =>
        Math.max(
          document.documentElement.scrollWidth,
          ...Array.from(document.querySelectorAll('[role=dialog]'), (node) => node.scrollWidth),
        ),
      );
      holds(wide <= 320, `${what} is ${wide} px wide`);
    };
    await page.getByRole('button', { name: '获取: compose' }).click();
    await offer(page, 'compose').getByLabel('topic').fill('海');
    await offer(page, 'compose').getByRole('button', { name: '获取', exact: true }).click();
    await offer(page, 'compose').getByText('用户', { exact: true }).waitFor();
    await narrow('a prompt');
    await page.getByRole('tab', { name: '资源' }).click();
    await page.getByRole('button', { name: '读取: A text' }).click();
    await page.getByText('a fixed text').waitFor();
    await page.getByRole('button', { name: '读取: 按 URI 读取资源' }).waitFor();
    await narrow('a resource');
    await page.evaluate(() => (window.location.hash = '#/entries'));
    await page.getByRole('button', { name: `从 ${made.name} 移除 ${tool.name}` }).waitFor();
    await narrow('a record');
    await page.evaluate(() => (window.location.hash = '#/settings'));
    await page.getByText('当前浏览器').first().waitFor();
    await narrow('a session');
    await portway.api('DELETE', `/api/v1/mcp_v2/${made.id}`);
    await portway.api('DELETE', `/api/v1/tools/${tool.id}`);
    await done();
  },
};
