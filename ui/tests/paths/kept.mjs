// SPEC H8: nothing a person typed or started is lost.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { holds, same, until } from '../check.mjs';

const tool = (name) => ({ path: `#/tools/alpha/${name}` });

/** An entry of that name, and the dialog with its new key. */
async function rotated(page, portway, name) {
  const known = (await portway.api('GET', '/api/v1/mcp_v2')).items.find((entry) => entry.name === name);
  if (!known) {
    await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name, bindings: [] });
  }
  await page.evaluate(() => (window.location.hash = '#/entries'));
  await page.getByRole('button', { name: `More actions for ${name}` }).click();
  await page.getByRole('menuitem', { name: 'Rotate key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('This key is shown once.').waitFor();
  return { dialog, key: await dialog.locator('code').first().innerText() };
}

async function pasteInto(field, text) {
  await field.evaluate((node, value) => {
    const clipboardData = new window.DataTransfer();
    clipboardData.setData('text/plain', value);
    node.select();
    node.dispatchEvent(new window.ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

const rows = (dialog) => dialog.getByLabel(/^Argument \d+$/).evaluateAll((nodes) => nodes.map((node) => node.value));

export const paths = {
  async h8_a_part_that_cannot_be_loaded_leaves_a_way_back({ open, front }) {
    const { page, done } = await open(tool('echo'));
    await page.getByLabel('text').fill('half a thought');
    front.setAssets(false);
    await page.getByRole('navigation').getByRole('link', { name: 'Settings' }).click();
    await page.locator('[data-missing]').waitFor();
    await page.getByRole('navigation').waitFor();
    front.setAssets(true);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
    await page.locator('[data-missing]').waitFor({ state: 'detached' });

    // What was typed, and the dialog it was typed into, come back after a reload.
    await page.keyboard.press('n');
    await page.getByRole('dialog').getByLabel('Name').fill('unfinished');
    front.setAssets(false);
    await page.evaluate(() => (window.location.hash = '#/activity'));
    // The notice is no place outside the dialog: neither for the mouse nor for the keyboard.
    const again = page.locator('[data-missing]').getByRole('button', { name: 'Try again' });
    await again.waitFor();
    await page.getByRole('dialog').getByLabel('Name').focus();
    await until('the notice by Tab', async () => {
      await page.keyboard.press('Tab');
      return again.evaluate((node) => node === document.activeElement);
    });
    await again.click();
    await page.locator('[data-missing]').waitFor();
    same(await page.getByText('What you typed will be lost.').count(), 0, 'questions');
    front.setAssets(true);
    await page.locator('[data-missing]').getByRole('button', { name: 'Reload the page' }).click();
    await until(
      'the typed name',
      async () => (await page.getByRole('dialog').getByLabel('Name').inputValue()) === 'unfinished',
    );
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what stays in the storage');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.evaluate(() => (window.location.hash = '#/tools/alpha/echo'));
    same(await page.getByLabel('text').inputValue(), 'half a thought', 'the arguments');
    await done();
  },

  async h8_without_its_first_script_the_page_says_so({ open, front }) {
    const { page, done } = await open();
    await page.locator('[data-server=alpha]').waitFor();
    await page.route('**/assets/index-*.js', (route) => route.abort());
    await page.reload();
    for (const text of ['The console has not loaded yet.', '控制台尚未加载。', '主控台尚未載入。']) {
      await page.getByText(text).waitFor();
    }
    await page.unroute('**/assets/index-*.js');
    await page.getByRole('link', { name: 'Try again' }).click();
    await page.locator('[data-server=alpha]').waitFor();
    same(await page.getByText('The console has not loaded yet.').count(), 0, 'what is left of it');
    same(new URL(page.url()).origin, front.url, 'where it leads');
    await done();
  },

  async h8_a_gateway_that_comes_back_brings_the_missing_part({ open, front }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    front.setAssets(false);
    front.setEvents(false);
    await page.getByRole('navigation').getByRole('link', { name: 'Activity' }).click();
    await page.locator('[data-missing]').waitFor();
    front.setAssets(true);
    front.setEvents(true);
    await page.getByRole('heading', { name: 'Activity', exact: true }).waitFor({ timeout: 60_000 });
    await page.locator('[data-missing]').waitFor({ state: 'detached' });
    await done();
  },

  async h8_copied_is_said_when_it_is_and_a_key_is_not_lost({ open, portway }) {
    const plain = await open();
    await plain.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const first = await rotated(plain.page, portway, 'copies');
    await first.dialog.getByRole('button', { name: 'Copy: Key' }).click();
    await first.dialog.getByText('Copied').waitFor();
    same(await plain.page.evaluate(() => navigator.clipboard.readText()), first.key, 'the clipboard');
    await plain.page.keyboard.press('Escape');
    await plain.page.getByRole('dialog').waitFor({ state: 'detached' });

    // Over plain HTTP there is no clipboard object; a selection can be copied.
    const bare = await open({ init: () => Object.defineProperty(navigator, 'clipboard', { value: undefined }) });
    const second = await rotated(bare.page, portway, 'copies');
    await second.dialog.getByRole('button', { name: 'Copy: Key' }).click();
    await second.dialog.getByText('Copied').waitFor();
    await until(
      'the key in the clipboard',
      async () => (await plain.page.evaluate(() => navigator.clipboard.readText())) === second.key,
    );
    await bare.done();

    const none = await open({
      init: () => {
        Object.defineProperty(navigator, 'clipboard', {
          value: { writeText: () => Promise.reject(new Error('denied')) },
        });
        document.execCommand = () => false;
      },
    });
    const { page } = none;
    const third = await rotated(page, portway, 'copies');
    await third.dialog.getByRole('button', { name: 'Copy: Key' }).click();
    await third.dialog.getByText('Not copied. Press Ctrl C').waitFor();
    same(await page.evaluate(() => window.getSelection().toString()), third.key, 'what is selected');
    holds((await third.dialog.getByText('Copied', { exact: true }).count()) === 0, 'nothing says it was copied');
    for (const leave of [
      () => page.keyboard.press('Escape'),
      () => page.mouse.click(5, 5),
      () => third.dialog.getByRole('button', { name: 'Done' }).click(),
    ]) {
      await leave();
      await page.getByText('The key has not been copied.').waitFor();
      await page.getByRole('button', { name: 'Go back' }).click();
    }
    await page.evaluate(() => (window.location.hash = '#/tools'));
    await page.getByRole('heading', { name: 'Tools', exact: true, includeHidden: true }).waitFor({ state: 'attached' });
    same(await third.dialog.locator('code').first().innerText(), third.key, 'the key on another screen');
    await third.dialog.locator('code').first().selectText();
    await page.keyboard.press('Control+c');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await none.done();
    await plain.done();
  },

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
    const { config } = await portway.api('GET', '/api/mcp/servers/worded');
    same([config.command, config.args], ['my tool', args], 'what is saved');
    const file = JSON.parse(readFileSync(join(portway.folder, '.mcp.json'), 'utf8'));
    same(file.mcpServers.worded.env, { A: 'first\nsecond' }, 'a value of two lines');
    await portway.api('DELETE', '/api/mcp/servers/worded');

    await page.keyboard.press('n');
    const command = dialog.getByLabel('Command', { exact: true }).last();
    for (const [line, name, words, variables] of [
      [
        `TOKEN='a b' npx -y "@scope/pkg" --flag='x  y'z '' a\\ b "say \\"hi\\" \\n"`,
        'npx',
        ['-y', '@scope/pkg', '--flag=x  yz', '', 'a b', 'say "hi" \\n'],
        ['TOKEN', 'a b'],
      ],
      ['/usr/bin/node \\\n  server.js', '/usr/bin/node', ['server.js'], []],
      ['cd /tmp && npx x', 'cd /tmp && npx x', [], []],
      [`npx 'not closed`, `npx 'not closed`, [], []],
    ]) {
      for (const row of (await dialog.getByRole('button', { name: /^Remove / }).all()).reverse()) {
        await row.click();
      }
      await pasteInto(command, line);
      if ((await command.inputValue()) === '' || words.length === 0) {
        await command.fill(line);
      }
      await until(`the command of ${line}`, async () => (await command.inputValue()) === name);
      same(await rows(dialog), words, `the arguments of ${line}`);
      const found = await dialog
        .getByLabel(/^(Variable|Value) 1$/)
        .evaluateAll((nodes) => nodes.map((node) => node.value));
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
    same((await portway.api('GET', '/api/mcp/servers/pasted-one')).config.args, ['--name', '// a,}'], 'its arguments');
    await dialog.locator('[aria-invalid=true]').fill('pasted-two');
    await dialog.getByRole('button', { name: 'Add 1 server', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    same((await portway.api('GET', '/api/mcp/servers/pasted-two')).config.enabled, false, 'a disabled one stays so');
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
    const use = async (text) => {
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
    await until('the focus', () => place.evaluate((node) => node === document.activeElement));
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
    const values = await dialog
      .getByLabel(/^(Variable|Value) \d$/)
      .evaluateAll((nodes) => nodes.map((node) => node.value));
    same(values, ['PORT', '8080', 'DEBUG', 'true'], 'numbers as text');

    // What cannot be taken is named, and nothing is changed.
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

  async h8_leaving_a_section_keeps_a_call_and_its_form({ open }) {
    const { page, done } = await open(tool('progress'));
    const fields = page.locator('form input[inputmode=decimal]');
    await fields.first().waitFor();
    for (const [at, field] of (await fields.all()).entries()) {
      await field.fill(at === 0 ? '12' : '150');
    }
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('progressbar').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
    await page.evaluate(() => (window.location.hash = '#/tools/alpha/progress'));
    same(await fields.first().inputValue(), '12', 'what was typed');
    await page.locator('[data-result=ok]').waitFor();
    holds((await page.getByText('Cancelled.').count()) === 0, 'it was not cancelled');
    await done();
  },

  async h8_escape_and_an_expired_session_lose_nothing({ open, portway }) {
    const { page, context: own, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    await page.keyboard.press('n');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('slow-typing');
    await dialog.getByLabel('Command', { exact: true }).last().fill('true');
    for (const leave of [
      () => page.keyboard.press('Escape'),
      () => page.mouse.click(5, 5),
      () => dialog.getByRole('button', { name: 'Close' }).click(),
    ]) {
      await leave();
      await page.getByText('What you typed will be lost.').waitFor();
      await page.keyboard.press('Escape');
      await page.getByText('What you typed will be lost.').waitFor({ state: 'detached' });
    }
    same(await dialog.getByLabel('Name').inputValue(), 'slow-typing', 'the name');

    await own.clearCookies();
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Admin token').fill(portway.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor();
    same(await dialog.getByLabel('Name').inputValue(), 'slow-typing', 'the name after signing in again');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await dialog.waitFor({ state: 'detached' });
    // A form that nothing was typed into just closes.
    await page.keyboard.press('n');
    await until('an empty form', async () => (await dialog.getByLabel('Name').inputValue()) === '');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });

    await page.evaluate(() => (window.location.hash = '#/entries/new'));
    await dialog.getByLabel('Name').fill('an entry');
    await page.evaluate(() => (window.location.hash = '#/servers'));
    await dialog.waitFor({ state: 'detached' });
    await page.evaluate(() => (window.location.hash = '#/entries/new'));
    same(await dialog.getByLabel('Name').inputValue(), 'an entry', 'the entry after another section');
    await done();
  },

  async h8_signing_in_by_the_link_loses_nothing({ open, front, portway }) {
    const { page, context: own, done } = await open();
    const asked = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    const expire = async (act) => {
      await own.clearCookies();
      await act();
      await page.getByLabel('Admin token').waitFor();
    };
    const link = () => page.goto(`${front.url}/?token=${portway.token}`);
    const dialog = page.getByRole('dialog');
    await page.locator('[data-link=live]').waitFor();
    await page.keyboard.press('n');
    await dialog.getByLabel('Name').fill('typed before');
    await dialog.getByLabel('Command', { exact: true }).last().fill('true');
    await expire(() => dialog.getByRole('button', { name: 'Add', exact: true }).click());
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what is in the storage while the page is open');
    // Nobody knows whether the tab is being closed.
    await page.reload();
    same(asked, ['beforeunload'], 'what was asked');
    await page.getByLabel('Admin token').waitFor();
    await link();
    await until('the typed name', async () => (await dialog.getByLabel('Name').inputValue()) === 'typed before');
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what stays in the storage');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();

    // A form that has an address of its own.
    await page.evaluate(() => (window.location.hash = '#/entries/new'));
    await dialog.getByLabel('Name').fill('an entry');
    await expire(() => dialog.getByRole('button', { name: 'Create entry' }).click());
    await link();
    await until('the typed entry', async () => (await dialog.getByLabel('Name').inputValue()) === 'an entry');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();

    const { key } = await rotated(page, portway, 'copies');
    await expire(() => page.evaluate(() => (window.location.hash = '#/settings')));
    await link();
    await until('the key', async () => (await dialog.locator('code').first().innerText()) === key);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await dialog.waitFor({ state: 'detached' });
    asked.length = 0;
    await page.reload();
    await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
    same(asked, [], 'nothing is asked where nothing is unsaved');
    await done();
  },

  async h8_going_back_to_a_form_saves_nothing({ open, portway }) {
    const entry = await portway.api('POST', '/api/v1/mcp_v2/with_bindings', { name: 'unsaved', bindings: [] });
    const { page, done } = await open({ path: '#/entries' });
    const sent = [];
    page.on('request', (request) => request.method() !== 'GET' && sent.push(`${request.method()} ${request.url()}`));
    await page.getByRole('button', { name: 'More actions for unsaved' }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog');
    for (const back of [
      () => dialog.getByRole('button', { name: 'Go back' }).click(),
      () => page.keyboard.press('Enter'),
      () => page.keyboard.press('Space'),
    ]) {
      await dialog.getByLabel('Name').fill('half a na');
      await page.keyboard.press('Escape');
      await dialog.getByText('What you typed will be lost.').waitFor();
      await back();
      await dialog.getByRole('button', { name: 'Save' }).waitFor();
    }
    same(await dialog.getByLabel('Name').inputValue(), 'half a na', 'the name');
    same((await portway.api('GET', `/api/v1/mcp_v2/${entry.id}`)).name, 'unsaved', 'what is saved');
    same(sent, [], 'what was sent');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await portway.api('DELETE', `/api/v1/mcp_v2/${entry.id}`);
    await done();
  },
};
