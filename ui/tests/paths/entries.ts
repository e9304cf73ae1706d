// SPEC H6, H9: entries, tool records and bindings.
import type { Page } from 'playwright-core';
import type { Entry, Tool } from '../../src/api/types';
import { holds, same, until } from '../check.ts';
import type { PathContext, Paths } from '../path.ts';
import type { Portway } from '../portway.ts';
import {
  addBinding,
  createEntry,
  createTool,
  deleteEntry,
  deleteTool,
  findEntry,
  findTool,
  getEntry,
  listBindings,
} from '../records.ts';

const record = (page: Page, name: string) => page.locator(`[data-record="${name}"]`);

/** The tools that the holder of a key sees. */
async function listed(portway: Portway, key: string): Promise<Tool[]> {
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
  const json = text.startsWith('{') ? text : (/^data: ?(.*)$/m.exec(text)?.[1] ?? '');
  return (JSON.parse(json) as { result: { tools: Tool[] } }).result.tools;
}

const bindings = async (portway: Portway, entry: Entry) =>
  (await listBindings(portway, entry.id)).map(({ name }) => name);

/** An entry without tools, and the page of the entries. */
async function entryOf({ open, portway }: Pick<PathContext, 'open' | 'portway'>, name: string) {
  const entry = await createEntry(portway, name);
  return { entry, ...(await open({ path: '#/entries' })) };
}

async function fromMenu(page: Page, name: string, item: string): Promise<void> {
  await page.getByRole('button', { name: `More actions for ${name}`, exact: true }).click();
  await page.getByRole('menuitem', { name: item, exact: true }).click();
}

export const paths: Paths = {
  async h6_an_entry_is_made_with_its_tools_used_rotated_switched_off_and_deleted({ open, portway }) {
    const { page, done } = await open({ path: '#/entries' });
    await page.getByRole('button', { name: 'New entry' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Create entry' }).click();
    await dialog.getByText('Enter a name.').waitFor();
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
    const entry = await findEntry(portway, 'my client');
    if (!entry) {
      throw new Error('the entry is missing');
    }
    same(
      (await listBindings(portway, entry.id)).map(({ name, status }) => [name, status]),
      [['echo', true]],
      'what is bound',
    );

    await page.getByRole('checkbox', { name: 'alpha:add in my client' }).click();
    await until('the binding', async () => (await listBindings(portway, entry.id)).length === 2);
    const cell = page.getByRole('checkbox', { name: 'alpha:echo in my client' });
    await until('the tick', () => cell.isChecked());
    await cell.click();
    await until(
      'the binding switched off',
      async () => !(await listBindings(portway, entry.id)).find(({ name }) => name === 'echo')?.status,
    );

    await page.getByRole('switch', { name: 'Enable my client' }).click();
    await until('the entry switched off', async () => !(await getEntry(portway, entry.id)).status);
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
    const made = await createEntry(portway, 'plain');
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
    const entry = await getEntry(portway, made.id);
    same(
      [entry.filter, entry.exposes],
      [
        { allow: ['alpha:e*', 'beta:add'], deny: ['*:elicit*'] },
        { resources: ['alpha'], prompts: [] },
      ],
      'the entry',
    );
    holds(entry.key?.expires_at?.startsWith('2099-01-0'), `it expires: ${entry.key?.expires_at}`);
    const names = (await listed(portway, made.api_key)).map(({ name }) => name);
    holds(
      names.some((name) => name.includes('echo')) && !names.some((name) => name.includes('elicit')),
      `what its key gives: ${names.join(', ')}`,
    );
    await deleteEntry(portway, made.id);
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
    const made = await findTool(portway, 'whisper');
    same(
      [made?.description, made?.server, made?.tool, made?.missing],
      ['Says it again.', 'alpha', 'not_yet', 'tool'],
      'the record',
    );

    await fromMenu(page, 'whisper', 'Delete');
    await dialog.getByText('lose the tool immediately: recorded').waitFor();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await record(page, 'whisper').waitFor({ state: 'detached' });
    same(await bindings(portway, entry), [], 'what is bound');
    await deleteEntry(portway, entry.id);
    await done();
  },

  async h9_a_binding_is_removed_and_the_focus_stays_in_the_row({ open, portway }) {
    const tool = await createTool(portway, 'sum', 'alpha', 'add');
    const { entry, page, done } = await entryOf({ open, portway }, 'unbound');
    await addBinding(portway, entry.id, tool.id);
    const button = page.getByRole('button', { name: 'Remove sum from unbound' });
    await button.focus();
    await page.keyboard.press('Enter');
    await button.waitFor({ state: 'detached' });
    same(await bindings(portway, entry), [], 'what is bound');
    await record(page, 'sum').getByText('in no entry').waitFor();
    holds(await record(page, 'sum').evaluate((row) => row.contains(document.activeElement)), 'the focus is in the row');
    await deleteTool(portway, tool.id);
    await deleteEntry(portway, entry.id);
    await done();
  },

  async h9_the_tools_that_clients_of_an_entry_see_are_shown({ open, portway }) {
    const tool = await createTool(portway, 'sum', 'alpha', 'add');
    const { entry, page, done } = await entryOf({ open, portway }, 'mixed');
    await addBinding(portway, entry.id, tool.id);
    await portway.api('PATCH', `/api/v1/mcp_v2/${entry.id}`, { filter: { allow: ['beta:ech*'], deny: [] } });
    await fromMenu(page, 'mixed', 'Show its tools');
    const dialog = page.getByRole('dialog', { name: 'Tools of mixed' });
    await dialog.getByRole('listitem').filter({ hasText: 'alpha:add' }).getByText('bound').waitFor();
    await dialog.getByRole('listitem').filter({ hasText: 'beta:echo' }).getByText('by pattern').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await deleteTool(portway, tool.id);
    await deleteEntry(portway, entry.id);
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
    same((await getEntry(portway, entry.id)).exposes?.resources, ['to-come'], 'what is exposed');
    await deleteEntry(portway, entry.id);
    await done();
  },
};
