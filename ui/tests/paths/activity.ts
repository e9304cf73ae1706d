// SPEC H7: the calls, live; and how little is drawn for them.
import type { Tool } from '../../src/api/types';
import { holds, same, until } from '../check.ts';
import type { Paths } from '../path.ts';
import type { Portway } from '../portway.ts';

/** The name of the tool `echo` of `alpha` among all tools. */
async function echoOf(portway: Portway): Promise<string> {
  const { tools } = await portway.api<{ tools: Tool[] }>('GET', '/api/mcp/tools');
  const found = tools.find(({ name }) => /alpha.*echo/.test(name));
  if (!found) {
    throw new Error('echo is missing');
  }
  return found.name;
}

export const paths: Paths = {
  async 'activity shows a call while it runs and after (zh-CN)'({ open }) {
    const { page, done } = await open({ path: '#/tools/alpha/echo', language: 'zh-CN' });
    await page.getByRole('heading', { name: 'echo' }).waitFor();
    await page.locator('form textarea').first().fill('x');
    await page.getByRole('button', { name: '运行' }).click();
    await page.locator('[data-result=ok]').waitFor();
    await page.getByRole('link', { name: '活动' }).click();
    const row = page.locator('[data-call="alpha:echo"]').first();
    await row.waitFor();
    holds((await row.innerText()).includes('成功'), 'with its outcome');
    await done();
  },

  async 'activity draws a call once and makes no formatter for it'({ open, portway }) {
    const CALLS = 40;
    // A row formats its time when it is drawn; so drawings can be counted.
    const count = () => {
      window.formatters = { made: 0, used: 0 };
      Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
        construct(Format, options: ConstructorParameters<typeof Intl.DateTimeFormat>) {
          window.formatters.made += 1;
          const made = new Format(...options);
          const format = made.format.bind(made);
          const value = (at?: number | Date) => {
            window.formatters.used += 1;
            return format(at);
          };
          return Object.defineProperty(made, 'format', { value });
        },
      });
      for (const name of ['toLocaleTimeString', 'toLocaleString'] as const) {
        Date.prototype[name] = new Proxy(Reflect.get(Date.prototype, name), {
          apply(format, date, options: unknown[]) {
            window.formatters.made += 1;
            return Reflect.apply(format, date, options) as string;
          },
        });
      }
    };
    const { page, done } = await open({ path: '#/activity', init: count });
    await page.locator('[data-link=live]').waitFor();
    const name = await echoOf(portway);
    const call = (text: string) => portway.api('POST', `/api/mcp/tools/${name}/call`, { arguments: { text } });
    await call('first');
    await page.locator('[data-call="alpha:echo"]').first().waitFor();
    const before = await page.evaluate(() => ({
      ...window.formatters,
      rows: document.querySelectorAll('[data-call]').length,
    }));
    for (let at = 0; at < CALLS; at += 1) {
      await call(`call ${at}`);
    }
    await until(
      'the calls to be shown',
      async () => (await page.evaluate(() => window.formatters.used)) - before.used >= CALLS,
    );
    const after = await page.evaluate(() => ({ ...window.formatters }));
    holds(after.made - before.made <= 2, `${after.made - before.made} formatters were made for ${CALLS} calls`);
    holds(after.used - before.used <= CALLS * 2 + 50, `${after.used - before.used} rows were drawn for ${CALLS} calls`);
    await done();
    return `${after.used - before.used} rows drawn for ${CALLS} calls`;
  },

  async 'activity moves its rows once a second, however many calls there are'({ open, portway }) {
    const CALLS = 40;
    const { page, done } = await open({ path: '#/activity' });
    // From here on the page's time is that of the test: a tenth of a second a call.
    await page.clock.install();
    await page.reload();
    await page.locator('[data-link=live]').waitFor();
    const name = await echoOf(portway);
    const call = () => portway.api('POST', `/api/mcp/tools/${name}/call`, { arguments: { text: 'again' } });
    await call();
    await page.locator('[data-call="alpha:echo"]').first().waitFor();
    await page.clock.pauseAt(Date.now() + 3_600_000);
    await page.evaluate(() => {
      window.callEvents = 0;
      window.rowChanges = 0;
      new EventSource('/api/mcp/events').addEventListener('call_ended', () => (window.callEvents += 1));
      new MutationObserver(() => (window.rowChanges += 1)).observe(document.querySelector('tbody') as Node, {
        childList: true,
      });
    });
    // The second stream is open once it reports a call.
    await until('the stream of the test', async () => {
      await call();
      return page.evaluate(() => window.callEvents > 0);
    });
    await page.evaluate(() => {
      window.callEvents = 0;
      window.rowChanges = 0;
    });
    for (let at = 1; at <= CALLS; at += 1) {
      await call();
      await until('the event of the call', () => page.evaluate((n) => window.callEvents >= n, at));
      await page.clock.runFor(100);
    }
    const moved = await page.evaluate(() => window.rowChanges);
    holds(moved >= 1 && moved <= CALLS / 5, `the rows moved ${moved} times in ${CALLS / 10} s`);
    await done();
    return `${moved} times in ${CALLS / 10} s`;
  },

  async 'times and shares are written as the language has them'({ open, proxy }) {
    const at = new Date(2026, 0, 2, 0, 15, 0).getTime();
    const call = {
      id: 1,
      server: 'alpha',
      tool: 'echo',
      entry: null,
      principal: 'admin',
      at,
      durationMs: 3,
      outcome: 'ok',
    };
    const second = { at, calls: 5, errors: 1, p50: 1, p95: 2, p99: 3 };
    proxy.stub('GET /api/mcp/activity', { inFlight: [], recent: [call], perSecond: [second, second], dropped: 0 });
    try {
      for (const language of ['en', 'zh-CN', 'zh-TW']) {
        const { page, done } = await open({ path: '#/activity', language });
        const row = page.locator('[data-call]').first();
        await row.waitFor();
        same(await row.locator('td').first().innerText(), '00:15:00', `midnight in ${language}`);
        holds(/(^|\s)20%/.test(await page.locator('main').innerText()), `a share in ${language}`);
        await done();
      }
    } finally {
      proxy.unstub('GET /api/mcp/activity');
    }
  },
};
