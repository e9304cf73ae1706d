// SPEC H9: resources, URI templates and prompts.
import type { Page } from 'playwright-core';
import { holds, same, visit } from '../check.ts';
import type { Paths } from '../path.ts';
import { createEntry, createTool, deleteEntry, deleteTool } from '../records.ts';

const offer = (page: Page, name: string) => page.locator(`[data-offer="${name}"]`);

export const paths: Paths = {
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
      await template.getByText('This field is required.').waitFor();
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

  async h9_a_template_is_filled_in_as_rfc_6570_says({ open, proxy }) {
    const cases: [template: string, values: Record<string, string | string[]>, uri: string][] = [
      ['{id}', { id: 'a b/é(1)' }, 'a%20b%2F%C3%A9%281%29'],
      ['{+path}/here', { path: 'foo/bar?x=[50%25]' }, 'foo/bar?x=[50%25]/here'],
      ['x{/one,two}', { one: 'a/b', two: 'c' }, 'x/a%2Fb/c'],
      ['x{.end}', { end: 'tar' }, 'x.tar'],
      ['x{?q,empty,left}', { q: 'a&b' }, 'x?q=a%26b'],
      ['x?fixed=1{&q}{#part}', { part: 'a/b' }, 'x?fixed=1#a/b'],
      ['x{;q:2}', { q: 'value' }, 'x;q=va'],
      ['x{?tag*}', { tag: ['a', 'b c'] }, 'x?tag=a&tag=b%20c'],
    ];
    const uri = (rest: string) => `fixture://item/${rest}`;
    proxy.stub(
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
      proxy.unstub('GET /api/mcp/servers/alpha/resources');
    }
  },

  async h9_a_prompt_is_got_with_its_arguments_and_may_ask_first({ open }) {
    for (const server of ['alpha', 'beta']) {
      const { page, done } = await open({ path: `#/servers/${server}/prompts` });
      const compose = offer(page, 'compose');
      await compose.getByRole('button', { name: 'Get: compose' }).click();
      await compose.getByRole('button', { name: 'Get', exact: true }).click();
      await compose.getByText('This field is required.').waitFor();
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
    await visit(page, '#/servers/alpha/prompts');
    same(await offer(page, 'compose').getByLabel('topic').inputValue(), 'half a thought', 'the argument');
    await page.getByRole('tab', { name: 'Resources' }).click();
    same(await offer(page, 'fixture://item/{id}').getByLabel('id').inputValue(), '4', 'the variable');
    await done();
  },

  async h9_resources_and_records_speak_chinese_and_fit_320_px({ open, portway }) {
    const tool = await createTool(portway, 'a_rather_long_name_of_a_record_that_has_to_wrap', 'alpha', 'add');
    const made = await createEntry(portway, 'an entry with a rather long name too', [
      { tool_id: tool.id, status: true },
    ]);
    const { page, done } = await open({ width: 320, height: 640, language: 'zh-CN', path: '#/servers/alpha/prompts' });
    const narrow = async (what: string) => {
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
    await visit(page, '#/entries');
    await page.getByRole('button', { name: `从 ${made.name} 移除 ${tool.name}` }).waitFor();
    await narrow('a record');
    await visit(page, '#/settings');
    await page.getByText('当前浏览器').first().waitFor();
    await narrow('a session');
    await deleteEntry(portway, made.id);
    await deleteTool(portway, tool.id);
    await done();
  },
};
