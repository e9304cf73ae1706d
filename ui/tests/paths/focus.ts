// SPEC H7: where the keyboard focus is.
import type { Page } from 'playwright-core';
import { focused, holds, visit } from '../check.ts';
import type { Paths } from '../path.ts';
import { createEntry, deleteEntry } from '../records.ts';

const card = (page: Page, name: string) => page.locator(`[data-server="${name}"]`);

export const paths: Paths = {
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
    await visit(page, '#/servers/alpha');
    const edit = page.getByRole('dialog', { name: 'alpha' }).getByRole('button', { name: 'Edit: alpha' });
    await edit.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Edit alpha' }).waitFor();
    await page.keyboard.press('Escape');
    await focused(edit);
    await closed();

    const entry = await createEntry(portway, 'focus');
    await visit(page, '#/entries');
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
    await deleteEntry(portway, entry.id);

    // A button stays where the keyboard is while it works, and turns into its opposite.
    await visit(page, '#/servers');
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

    await visit(page, '#/tools/alpha/elicit');
    await page.getByRole('heading', { name: 'elicit' }).waitFor();
    await run.focus();
    await page.keyboard.press('Enter');
    const question = page.getByRole('dialog', { name: /The server asks/ });
    await question.getByRole('button', { name: 'Decline' }).press('Enter');
    await question.waitFor({ state: 'detached' });
    await page.locator('[data-result]').waitFor();
    await focused(run);

    // From a menu to a question to the new key: back to the menu's button.
    const entry = await createEntry(portway, 'turning');
    await visit(page, '#/entries');
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
    await deleteEntry(portway, entry.id);

    // A refused action leaves the focus on the button.
    await visit(page, '#/servers');
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

  async h7_works_by_keyboard_palette_focus_escape_zh_cn({ open }) {
    const { page, done } = await open({ language: 'zh-CN' });
    await page.locator('[data-server=alpha]').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').waitFor();
    await page.keyboard.type('beta');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'beta' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('5');
    await page.getByRole('heading', { name: '设置', exact: true }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('1');
    await page.locator('[data-server=alpha]').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('alpha');
    await page.locator('[data-server=beta]').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await page.locator('[data-server=beta]').waitFor();
    await page.locator('h1').click();
    await page.keyboard.press('n');
    const name = page.getByRole('dialog').getByLabel('服务名称');
    await focused(name);
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press('Tab');
    }
    holds(
      await page.evaluate(() => document.querySelector('[role=dialog]')?.contains(document.activeElement)),
      'the focus stays in the dialog',
    );
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await done();
  },
};
