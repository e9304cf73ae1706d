// Small tools of the paths.
export async function until(what, look, limit = 20_000) {
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
export async function fillArguments(dialog, args) {
  for (const row of (await dialog.getByRole('button', { name: /^Remove Argument/ }).all()).reverse()) {
    await row.click();
  }
  for (const [at, value] of args.entries()) {
    await dialog.getByRole('button', { name: 'Add argument' }).click();
    await dialog.getByLabel(`Argument ${at + 1}`, { exact: true }).fill(value);
  }
}

export function same(actual, expected, what) {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) {
    throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
  }
}

export function holds(truth, what) {
  if (!truth) {
    throw new Error(`does not hold: ${what}`);
  }
}
