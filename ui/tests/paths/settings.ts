// SPEC K3, H9: signing in and out, sources, plans, languages.
import type { Page } from 'playwright-core';
import type { ConsoleSession } from '../../src/api/types';
import { focused, holds, same, until } from '../check.ts';
import type { Paths } from '../path.ts';

/** The id of the session of a page. */
async function sessionOf(page: Page): Promise<string | undefined> {
  const sessions = await page.evaluate(
    async () => (await (await fetch('/api/console/sessions')).json()) as ConsoleSession[],
  );
  return sessions.find(({ current }) => current)?.id;
}

export const paths: Paths = {
  async k3_without_a_session_the_token_is_asked_for({ open, portway }) {
    const { page, done } = await open({ signedIn: false });
    await page.getByLabel('Admin token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This is not the admin token.').waitFor();
    await page.getByLabel('Admin token').fill(portway.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('[data-server=alpha]').waitFor();
    holds(!page.url().includes(portway.token), 'the token is not in the address');
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
    for (const part of ['將啟動', 'new', '將重新啟動', 'alpha', '將移除', 'beta']) {
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
    await focused(button);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
    await row.waitFor({ state: 'detached' });
    await other.page.reload();
    await other.page.getByLabel('Admin token').waitFor();
    await page.locator(`[data-session="${thirds}"]`).waitFor();

    await page.getByRole('button', { name: 'Sign out all others' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out' }).click();
    await until(
      'the only session',
      async () => (await portway.api<ConsoleSession[]>('GET', '/api/console/sessions')).length === 1,
    );
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
};
