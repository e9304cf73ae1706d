// SPEC H4: command lines, pasted definitions and invalid names in the form of a server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import type { ServerConfig } from '../../src/api/types';
import { openPage } from '../browser.ts';
import { focused, same, until, valuesOf } from '../check.ts';
import type { Paths } from '../path.ts';
import { startPortway } from '../portway.ts';
import { openProxy } from '../proxy.ts';
import { configOf } from '../records.ts';

const card = (page: Page, name: string) => page.locator(`[data-server="${name}"]`);
const rows = (dialog: Locator) => valuesOf(dialog.getByLabel(/^Argument \d+$/));

async function pasteInto(field: Locator, text: string): Promise<void> {
  await field.evaluate((node, value) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', value);
    (node as HTMLInputElement).select();
    node.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

export const paths: Paths = {
  async h4_arguments_survive_an_edit_whatever_is_in_them({ open, portway }) {
    const args = ['-c', 'one\ntwo', '', '"quoted"', "it's", 'a b', '  '];
    await portway.api('POST', '/api/mcp/servers', { name: 'worded', command: 'my tool', args, enabled: false });
    const { page, done } = await open();
    await page.getByRole('button', { name: 'Edit: worded' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Argument 7', { exact: true }).waitFor();
    same(await rows(dialog), args, 'the rows');
    // Looking at the command does not take it apart.
    await dialog.getByLabel('Command', { exact: true }).last().focus();
    await dialog.getByRole('button', { name: 'Add variable' }).click();
    await dialog.getByLabel('Variable 1').fill('A');
    await dialog.getByLabel('Value 1').fill('first\nsecond');
    await dialog.getByRole('button', { name: 'Add variable' }).click();
    await dialog.getByLabel('Variable 2').fill('A');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('A is given twice.').waitFor();
    await dialog.getByRole('button', { name: 'Remove A' }).last().click();
    await dialog.getByRole('button', { name: 'Add argument' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const config = await configOf(portway, 'worded');
    same([config.command, config.args], ['my tool', args], 'what is saved');
    const file = JSON.parse(readFileSync(join(portway.folder, '.mcp.json'), 'utf8')) as {
      mcpServers: Record<string, ServerConfig>;
    };
    same(file.mcpServers.worded?.env, { A: 'first\nsecond' }, 'a value of two lines');
    await portway.api('DELETE', '/api/mcp/servers/worded');

    await page.keyboard.press('n');
    const command = dialog.getByLabel('Command', { exact: true }).last();
    const lines: [line: string, command: string, args: string[], variable: string[]][] = [
      [
        `TOKEN='a b' npx -y "@scope/pkg" --flag='x  y'z '' a\\ b "say \\"hi\\" \\n"`,
        'npx',
        ['-y', '@scope/pkg', '--flag=x  yz', '', 'a b', 'say "hi" \\n'],
        ['TOKEN', 'a b'],
      ],
      ['/usr/bin/node \\\n  server.js', '/usr/bin/node', ['server.js'], []],
      ['cd /tmp && npx x', 'cd /tmp && npx x', [], []],
      [`npx 'not closed`, `npx 'not closed`, [], []],
    ];
    for (const [line, name, words, variables] of lines) {
      for (const row of (await dialog.getByRole('button', { name: /^Remove / }).all()).reverse()) {
        await row.click();
      }
      await pasteInto(command, line);
      if ((await command.inputValue()) === '' || words.length === 0) {
        await command.fill(line);
      }
      await until(`the command of ${line}`, async () => (await command.inputValue()) === name);
      same(await rows(dialog), words, `the arguments of ${line}`);
      const found = await valuesOf(dialog.getByLabel(/^(Variable|Value) 1$/));
      same(found, variables, `the variables of ${line}`);
    }
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await done();
  },

  async h4_two_pasted_servers_are_two_comments_and_all({ open, portway, fixture }) {
    const { page, done } = await open();
    await page.getByRole('button', { name: 'Add Server' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Paste JSON' }).click();
    await dialog.getByLabel('Paste JSON').fill(`// mine
      { "mcpServers": { /* the first */
        "pasted-one": { "command": "${fixture}", "args": ["--name", "// a,}"], },
        "alpha": { "url": "http://127.0.0.1:9/mcp", "disabled": true },
      }, }`);
    await dialog.getByRole('button', { name: 'Fill in the form' }).click();
    await dialog.getByRole('button', { name: 'Add 2 servers' }).click();
    // One is there already: it stays, and says so.
    await dialog.getByRole('button', { name: 'Add 1 server', exact: true }).waitFor();
    await page.locator('[data-server=pasted-one][data-status=connected]').waitFor();
    same((await configOf(portway, 'pasted-one')).args, ['--name', '// a,}'], 'its arguments');
    await dialog.locator('[aria-invalid=true]').fill('pasted-two');
    await dialog.getByRole('button', { name: 'Add 1 server', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    same((await configOf(portway, 'pasted-two')).enabled, false, 'a disabled one stays so');
    await portway.api('DELETE', '/api/mcp/servers/pasted-one');
    await portway.api('DELETE', '/api/mcp/servers/pasted-two');

    await page.keyboard.press('n');
    await dialog.getByRole('button', { name: 'Paste JSON' }).click();
    await dialog.getByLabel('Paste JSON').fill('"files": { "command": "npx", "args": ["-y"] },');
    await dialog.getByRole('button', { name: 'Fill in the form' }).click();
    await dialog.getByLabel('Argument 1', { exact: true }).waitFor();
    same([await dialog.getByLabel('Name').inputValue(), await rows(dialog)], ['files', ['-y']], 'one fills the form');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await done();
  },

  async h4_pasting_neither_loses_nor_spoils_text({ open }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    await page.keyboard.press('n');
    const dialog = page.getByRole('dialog');
    const place = dialog.getByLabel('Paste JSON');
    const toggle = dialog.getByRole('button', { name: 'Paste JSON' });
    const use = async (text: string) => {
      await place.fill(text);
      await dialog.getByRole('button', { name: 'Fill in the form' }).click();
    };
    const question = dialog.getByText('This replaces what is in the form.');
    // A half-typed form is not replaced without asking.
    await dialog.getByLabel('Name').fill('mine');
    await dialog.getByLabel('Command', { exact: true }).last().fill('half');
    await toggle.click();
    await use(
      '{ "name": "spelled", "command": "node", "args": "-y \'a b\' --port=1", "env": { "PORT": 8080, "DEBUG": true } }',
    );
    await question.waitFor();
    await dialog.getByRole('button', { name: 'Go back' }).click();
    await focused(place);
    same(
      [
        await dialog.getByLabel('Name').inputValue(),
        await dialog.getByLabel('Command', { exact: true }).last().inputValue(),
      ],
      ['mine', 'half'],
      'the form',
    );
    await dialog.getByRole('button', { name: 'Fill in the form' }).click();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await dialog.getByLabel('Argument 3', { exact: true }).waitFor();
    same(await dialog.getByLabel('Name').inputValue(), 'spelled', 'the name within the definition');
    same(await rows(dialog), ['-y', 'a b', '--port=1'], 'arguments in one text');
    const values = await valuesOf(dialog.getByLabel(/^(Variable|Value) \d$/));
    same(values, ['PORT', '8080', 'DEBUG', 'true'], 'numbers as text');

    // The form names each field that it cannot read, and changes nothing.
    await toggle.click();
    await use(
      '{ "mcpServers": { "files": { "command": "x", "args": ["-p", 1, null], "env": [1] }, "b": { "command": "y", "args": "\'open" } } }',
    );
    await dialog.getByText('Cannot be read: files.args, files.env, b.args').waitFor();
    same(await dialog.getByLabel('Name').inputValue(), 'spelled', 'the form after a refusal');

    // A list of several outlives the button that made it.
    const two = '[{ "name": "one", "command": "x" }, { "name": "two", "command": "y" }]';
    await use(two);
    await question.waitFor();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await dialog.getByLabel('Name 2').fill('renamed');
    await toggle.click();
    same(await dialog.getByLabel('Name 2').inputValue(), 'renamed', 'the renamed one');
    await toggle.click();
    same(await place.inputValue(), two, 'the pasted text');
    await dialog.getByRole('button', { name: 'Fill in the form' }).click();
    await question.waitFor();
    await dialog.getByRole('button', { name: 'Go back' }).click();
    same(await dialog.getByLabel('Name 2').inputValue(), 'renamed', 'the renamed one, still');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await done();
  },

  async h9_a_definition_with_a_bad_name_is_renamed({ binary, browser }) {
    const portway = await startPortway(binary, {
      'my/server: 1': { command: 'true', args: ['--kept'], enabled: false, note: 'mine' },
    });
    const proxy = await openProxy(portway);
    try {
      const { page, faults, context } = await openPage(browser, proxy, portway);
      await page.getByRole('button', { name: 'Edit: my/server: 1' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByLabel('Name').fill('still/bad');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.locator('[aria-invalid=true]').waitFor();
      await dialog.getByLabel('Name').fill('my-server');
      await dialog.getByRole('button', { name: 'Save' }).click();
      await card(page, 'my-server').waitFor();
      await card(page, 'my/server: 1').waitFor({ state: 'detached' });
      const config = await configOf(portway, 'my-server');
      same([config.command, config.args], ['true', ['--kept']], 'the rest of it');
      same(faults, [], 'faults');
      await context.close();
    } finally {
      await proxy.close();
      await portway.stop();
    }
  },
};
