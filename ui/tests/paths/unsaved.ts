// SPEC H8: nothing a person typed or started is lost.
import type { Locator, Page } from 'playwright-core';
import { holds, same, until, visit } from '../check.ts';
import type { Paths } from '../path.ts';
import type { Portway } from '../portway.ts';
import { createEntry, deleteEntry, findEntry, getEntry } from '../records.ts';

const tool = (name: string) => ({ path: `#/tools/alpha/${name}` });

/** An entry of that name, and the dialog with its new key. */
async function rotated(page: Page, portway: Portway, name: string): Promise<{ dialog: Locator; key: string }> {
  if (!(await findEntry(portway, name))) {
    await createEntry(portway, name);
  }
  await visit(page, '#/entries');
  await page.getByRole('button', { name: `More actions for ${name}` }).click();
  await page.getByRole('menuitem', { name: 'Rotate key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('This key is shown once.').waitFor();
  return { dialog, key: await dialog.locator('code').first().innerText() };
}

export const paths: Paths = {
  async h8_a_part_that_cannot_be_loaded_leaves_a_way_back({ open, proxy }) {
    const { page, done } = await open(tool('echo'));
    await page.getByLabel('text').fill('half a thought');
    proxy.setAssets(false);
    await page.getByRole('navigation').getByRole('link', { name: 'Settings' }).click();
    await page.locator('[data-missing]').waitFor();
    await page.getByRole('navigation').waitFor();
    proxy.setAssets(true);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Settings', exact: true }).waitFor();
    await page.locator('[data-missing]').waitFor({ state: 'detached' });

    // The typed text and its dialog come back after a reload.
    await page.keyboard.press('n');
    await page.getByRole('dialog').getByLabel('Name').fill('unfinished');
    proxy.setAssets(false);
    await visit(page, '#/activity');
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
    proxy.setAssets(true);
    await page.locator('[data-missing]').getByRole('button', { name: 'Reload the page' }).click();
    await until(
      'the typed name',
      async () => (await page.getByRole('dialog').getByLabel('Name').inputValue()) === 'unfinished',
    );
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what stays in the storage');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await visit(page, '#/tools/alpha/echo');
    same(await page.getByLabel('text').inputValue(), 'half a thought', 'the arguments');
    await done();
  },

  async h8_without_its_first_script_the_page_says_so({ open, proxy }) {
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
    same(new URL(page.url()).origin, proxy.url, 'where it leads');
    await done();
  },

  async h8_a_gateway_that_comes_back_brings_the_missing_part({ open, proxy }) {
    const { page, done } = await open();
    await page.locator('[data-link=live]').waitFor();
    proxy.setAssets(false);
    proxy.setEvents(false);
    await page.getByRole('navigation').getByRole('link', { name: 'Activity' }).click();
    await page.locator('[data-missing]').waitFor();
    proxy.setAssets(true);
    proxy.setEvents(true);
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
        Object.defineProperty(document, 'execCommand', { value: () => false });
      },
    });
    const { page } = none;
    const third = await rotated(page, portway, 'copies');
    await third.dialog.getByRole('button', { name: 'Copy: Key' }).click();
    await third.dialog.getByText('Not copied. Press Ctrl C').waitFor();
    same(await page.evaluate(() => window.getSelection()?.toString()), third.key, 'what is selected');
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
    await visit(page, '#/tools');
    await page.getByRole('heading', { name: 'Tools', exact: true, includeHidden: true }).waitFor({ state: 'attached' });
    same(await third.dialog.locator('code').first().innerText(), third.key, 'the key on another screen');
    await third.dialog.locator('code').first().selectText();
    await page.keyboard.press('Control+c');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await none.done();
    await plain.done();
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
    await visit(page, '#/tools/alpha/progress');
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

    await visit(page, '#/entries/new');
    await dialog.getByLabel('Name').fill('an entry');
    await visit(page, '#/servers');
    await dialog.waitFor({ state: 'detached' });
    await visit(page, '#/entries/new');
    same(await dialog.getByLabel('Name').inputValue(), 'an entry', 'the entry after another section');
    await done();
  },

  async h8_signing_in_by_the_link_loses_nothing({ open, proxy, portway }) {
    const { page, context: own, done } = await open();
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    const expire = async (act: () => Promise<void>) => {
      await own.clearCookies();
      await act();
      await page.getByLabel('Admin token').waitFor();
    };
    const link = () => page.goto(`${proxy.url}/?token=${portway.token}`);
    const dialog = page.getByRole('dialog');
    await page.locator('[data-link=live]').waitFor();
    await page.keyboard.press('n');
    await dialog.getByLabel('Name').fill('typed before');
    await dialog.getByLabel('Command', { exact: true }).last().fill('true');
    await expire(() => dialog.getByRole('button', { name: 'Add', exact: true }).click());
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what is in the storage while the page is open');
    // The page cannot tell whether the tab is being closed.
    await page.reload();
    same(asked, ['beforeunload'], 'what was asked');
    await page.getByLabel('Admin token').waitFor();
    await link();
    await until('the typed name', async () => (await dialog.getByLabel('Name').inputValue()) === 'typed before');
    same(await page.evaluate(() => window.sessionStorage.length), 0, 'what stays in the storage');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();

    // A form that has an address of its own.
    await visit(page, '#/entries/new');
    await dialog.getByLabel('Name').fill('an entry');
    await expire(() => dialog.getByRole('button', { name: 'Create entry' }).click());
    await link();
    await until('the typed entry', async () => (await dialog.getByLabel('Name').inputValue()) === 'an entry');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();

    const { key } = await rotated(page, portway, 'copies');
    await expire(() => visit(page, '#/settings'));
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
    const entry = await createEntry(portway, 'unsaved');
    const { page, done } = await open({ path: '#/entries' });
    const sent: string[] = [];
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
    same((await getEntry(portway, entry.id)).name, 'unsaved', 'what is saved');
    same(sent, [], 'what was sent');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
    await deleteEntry(portway, entry.id);
    await done();
  },
};
