// Helpers of the browser tests.
import type { Locator, Page } from 'playwright-core';

/** Waits until `look` gives something other than a falsy value. */
export async function until<T>(what: string, look: () => T | Promise<T>, limit = 20_000): Promise<NonNullable<T>> {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`never came: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Puts arguments into the form of a server, one row each. */
export async function fillArguments(dialog: Locator, args: string[]): Promise<void> {
  for (const row of (await dialog.getByRole('button', { name: /^Remove Argument/ }).all()).reverse()) {
    await row.click();
  }
  for (const [at, value] of args.entries()) {
    await dialog.getByRole('button', { name: 'Add argument' }).click();
    await dialog.getByLabel(`Argument ${at + 1}`, { exact: true }).fill(value);
  }
}

export function same(actual: unknown, expected: unknown, what: string): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) {
    throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  }
}

export function holds(truth: unknown, what: string): void {
  if (!truth) {
    throw new Error(`does not hold: ${what}`);
  }
}

/** Waits until an element has the focus. */
export async function focused(locator: Locator): Promise<void> {
  await until('the focus', () => locator.evaluate((node) => node === document.activeElement));
}

/** Goes to another screen of the page, as a link would. */
export async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => (window.location.hash = to), hash);
}

/** The texts of input fields. */
export const valuesOf = (fields: Locator): Promise<string[]> =>
  fields.evaluateAll((nodes) => nodes.map((node) => (node as HTMLInputElement).value));
