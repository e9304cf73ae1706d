// D8 against a server that says what a Portway might, and worse.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';

import { mergeTools, NameClash, PortwayError, portwayTools } from '../dist/index.js';

const KEY = 's3cret-key';

/** A server whose answers `script` gives: of a request, its body and the response. */
async function serve(t, script) {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => script(request, body, response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

const LIST = {
  format: 'copilot',
  hash: 'h1',
  tools: [
    {
      name: 'mcp_a_read',
      description: 'Reads',
      parameters: { type: 'object' },
      skipPermission: true,
      metadata: { server: 'a' },
    },
    { name: 'mcp_a_write', description: 'Writes', parameters: { type: 'object' } },
  ],
};

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** Lists LIST; calls are answered by `called`. */
function listing(called) {
  return (request, body, response) => {
    if (request.method === 'GET') json(response, 200, LIST, { etag: '"1"' });
    else called(request, body, response);
  };
}

async function called(t, script, options = {}, invocation = {}) {
  const url = await serve(t, listing(script));
  const portway = await portwayTools({ url, key: KEY, ...options });
  return portway.tools[0].handler({ path: '/x' }, invocation);
}

test('d8 a list becomes tools, and a call is one request', async (t) => {
  const result = { textResultForLlm: 'grüße 世界', resultType: 'success' };
  const url = await serve(
    t,
    listing((request, body, response) => {
      assert.equal(request.url, '/api/mcp/tools/mcp_a_read/call?format=copilot&filter=some+filter');
      assert.equal(request.headers.authorization, `Bearer ${KEY}`);
      assert.deepEqual(JSON.parse(body), { arguments: { path: '/x' } });
      json(response, 200, result);
    }),
  );
  const own = { name: 'mine', handler: () => 'x' };
  const portway = await portwayTools({ url, key: KEY, filter: 'some filter', own: [own] });
  assert.deepEqual(
    portway.tools.map((tool) => tool.name),
    ['mine', 'mcp_a_read', 'mcp_a_write'],
  );
  assert.deepEqual(portway.tools[1].parameters, { type: 'object' });
  assert.deepEqual(portway.tools[1].metadata, { server: 'a' });
  assert.deepEqual(await portway.tools[1].handler({ path: '/x' }, {}), result);
  portway.close();
});

test('d8 only who asks for it skips permission', async (t) => {
  const url = await serve(
    t,
    listing(() => {}),
  );
  for (const [permission, skipped] of [
    [undefined, []],
    ['ask', []],
    ['readOnlyHint', ['mcp_a_read']],
    ['skip', ['mcp_a_read', 'mcp_a_write']],
  ]) {
    const { tools } = await portwayTools({ url, key: KEY, ...(permission && { permission }) });
    assert.deepEqual(
      tools.filter((tool) => tool.skipPermission).map((tool) => tool.name),
      skipped,
    );
  }
});

test('d8 whatever goes wrong is a result with its text', async (t) => {
  const refusal = (message) => ({ error: { code: 'X', message } });
  const table = [
    [(_, __, response) => json(response, 404, refusal('there is no tool "mcp_a_read"')), 'failure', /there is no tool/],
    [(_, __, response) => json(response, 401, refusal('no')), 'failure', /does not take this key/],
    [
      (_, __, response) => json(response, 422, refusal('arguments: must be an object')),
      'failure',
      /422.*arguments: must be/,
    ],
    [(_, __, response) => json(response, 503, {}), 'failure', /503/],
    [(_, __, response) => response.end('<html>hello'), 'failure', /is no Portway/],
    [(_, __, response) => json(response, 200, { hello: 1 }), 'failure', /not a result/],
    [(_, __, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), 'failure', /302/],
    [(_, __, response) => response.destroy(), 'failure', /no Portway answers/],
    [() => {}, 'timeout', /no answer within 2 s/],
    [(_, __, response) => response.writeHead(200).write('{"textResult'), 'timeout', /no answer within 2 s/],
  ];
  for (const [script, type, text] of table) {
    // Only where the time shall run out is it short; listing the tools must fit into it too.
    const result = await called(t, script, type === 'timeout' ? { timeoutMs: 2_000 } : {});
    assert.equal(result.resultType, type, result.textResultForLlm);
    assert.match(result.textResultForLlm, text);
    assert.match(result.textResultForLlm, /^mcp_a_read /);
    assert.equal(result.error, result.textResultForLlm);
    assert.ok(!result.textResultForLlm.includes(KEY));
  }
});

test('d8 a call that is given up hangs up', { timeout: 20_000 }, async (t) => {
  const cancel = new AbortController();
  let hungUp;
  const gone = new Promise((resolve) => (hungUp = resolve));
  const result = await called(
    t,
    (request, _, response) => {
      response.on('close', hungUp);
      cancel.abort();
    },
    {},
    { signal: cancel.signal },
  );
  assert.equal(result.resultType, 'failure');
  assert.match(result.textResultForLlm, /cancelled/);
  await gone;
});

test('d8 without a list there is an error to branch on, and no key in it', async (t) => {
  const denied = await serve(t, (_, __, response) => json(response, 401, {}));
  const page = await serve(t, (_, __, response) => response.end('hello'));
  const other = await serve(t, (_, __, response) => json(response, 200, { tools: 1 }));
  const silent = await serve(t, () => {});
  for (const [options, code] of [
    [{ url: 'http://127.0.0.1:1', key: KEY }, 'unreachable'],
    [{ url: denied, key: KEY }, 'denied'],
    [{ url: page, key: KEY }, 'unexpected'],
    [{ url: other, key: KEY }, 'unexpected'],
    [{ url: silent, key: KEY, timeoutMs: 200 }, 'timeout'],
    [{ url: 'ftp://x', key: KEY }, 'bad_options'],
    [{ url: `http://u:${KEY}@127.0.0.1`, key: KEY }, 'bad_options'],
    [{ url: 'http://127.0.0.1:1', key: `${KEY}\n` }, 'bad_options'],
    [{ url: 'http://127.0.0.1:1', key: KEY, timeoutMs: 0 }, 'bad_options'],
  ]) {
    await assert.rejects(portwayTools(options), (error) => {
      assert.ok(error instanceof PortwayError, String(error));
      assert.equal(error.code, code, error.message);
      assert.ok(!error.message.includes(KEY), error.message);
      return true;
    });
  }
});

test('d8 two tools of one name are an error that names it', async (t) => {
  const clash = (error) => error instanceof NameClash && error.toolName === 'mcp_a_read';
  assert.throws(() => mergeTools([{ name: 'mcp_a_read' }], [{ name: 'x' }, { name: 'mcp_a_read' }]), clash);
  const url = await serve(
    t,
    listing(() => {}),
  );
  await assert.rejects(portwayTools({ url, key: KEY, own: [{ name: 'mcp_a_read' }] }), clash);
});

test('d8 changes are told, a Portway that is away is no change', { timeout: 30_000 }, async (t) => {
  let [names, etag, away, asked] = [['mcp_a_read', 'no name'], '"1"', false, 0];
  const url = await serve(t, (request, _, response) => {
    asked += 1;
    if (away) response.destroy();
    else if (request.headers['if-none-match'] === etag) response.writeHead(304, { etag }).end();
    else json(response, 200, { tools: names.map((name) => ({ name })) }, { etag });
  });
  const told = [];
  const own = { name: 'mine' };
  const portway = await portwayTools({
    url,
    key: KEY,
    own: [own],
    pollMs: 100,
    onChange: (tools) => told.push(tools.map((tool) => tool.name)),
  });
  const until = async (what, holds) => {
    const end = Date.now() + 15_000;
    while (!holds()) {
      assert.ok(Date.now() < end, `never: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  assert.deepEqual(
    portway.tools.map((tool) => tool.name),
    ['mine', 'mcp_a_read'],
  );
  await until('looks', () => asked >= 3);
  away = true;
  await until('a look in vain', () => asked >= 5);
  assert.deepEqual(told, []);
  [names, etag, away] = [['mcp_a_read', 'mcp_b_new', 'mine'], '"2"', false];
  await until('the news', () => told.length > 0);
  // A tool of the program's own name comes later: its own stays.
  assert.deepEqual(told, [['mine', 'mcp_a_read', 'mcp_b_new']]);
  assert.equal(await portway.refresh(), false);
  portway.close();
  const before = asked;
  etag = '"3"';
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(asked, before);
  await assert.rejects(portway.refresh(), { code: 'cancelled' });
});
