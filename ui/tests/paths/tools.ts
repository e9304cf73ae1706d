// SPEC H5: finding a tool, calling it, its results, progress and questions.
import type { Tool } from '../../src/api/types';
import { holds, same, visit } from '../check.ts';
import type { Paths } from '../path.ts';

const tool = (name: string) => ({ path: `#/tools/alpha/${name}` });

export const paths: Paths = {
  async 'tools are found by search and called with a form and with JSON'({ open }) {
    const { page, done } = await open({ path: '#/tools' });
    await page.getByRole('searchbox', { name: 'Search all tools' }).fill('adds two alpha');
    await page.getByRole('link', { name: /^add/ }).first().click();
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByText('This field is required.').first().waitFor();
    const numbers = page.locator('form input[inputmode=decimal]');
    await numbers.nth(0).fill('20');
    await numbers.nth(1).fill('22');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.locator('[data-result=ok]').getByText('42').first().waitFor();
    await page.getByRole('button', { name: 'JSON' }).click();
    const editor = page.locator('form textarea');
    const text = await editor.inputValue();
    same(Object.values(JSON.parse(text) as Record<string, unknown>), [20, 22], 'the form as JSON');
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
    const drawn = await page.locator('canvas').evaluate((node) => {
      const { width } = node as HTMLCanvasElement;
      return width > 0 && width < 300;
    });
    holds(drawn, 'the picture is drawn');
    await visit(page, '#/tools/alpha/fail');
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
    ] as const) {
      const field = page.locator('form').getByLabel(label).first();
      if (await field.count()) {
        await field.fill(value);
      }
    }
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('progressbar').waitFor();
    await page.locator('[data-result=ok]').waitFor();
    await visit(page, '#/tools/alpha/hang');
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

  async h5_a_required_object_without_fields_does_not_block_a_call({ open, proxy, portway }) {
    const tools = await portway.api<Tool[]>('GET', '/api/mcp/servers/alpha/tools');
    const inputSchema = {
      type: 'object',
      required: ['options', 'more', 'names', 'text'],
      properties: {
        options: { type: 'object', properties: {} },
        more: { type: 'object', properties: { x: { type: 'string' } } },
        names: { type: 'array', items: { type: 'string' } },
        text: { type: 'string' },
      },
    };
    proxy.stub(
      'GET /api/mcp/servers/alpha/tools',
      tools.map((one) => (one.name === 'echo' ? { ...one, inputSchema } : one)),
    );
    try {
      const { page, done } = await open({ path: '#/tools/alpha/echo' });
      const run = page.getByRole('button', { name: 'Run' });
      await run.click();
      await page.getByText('Check these fields: text').waitFor();
      await page.getByLabel('text', { exact: true }).fill('here');
      const sent = page.waitForRequest((request) => request.url().endsWith('/servers/alpha/mcp'));
      await run.click();
      same(
        ((await sent).postDataJSON() as { params: { arguments: unknown } }).params.arguments,
        { options: {}, more: {}, names: [], text: 'here' },
        'what is sent',
      );
      await done();
    } finally {
      proxy.unstub('GET /api/mcp/servers/alpha/tools');
    }
  },
};
