// D8 with GitHub's own Copilot runtime, a real Portway, and a model of our own.
// Needs the paths of both programs: PORTWAY_BINARY and PORTWAY_FIXTURE.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';

import { CopilotClient } from '@github/copilot-sdk';

import { portwayTools } from '../dist/index.js';
import { startModel } from './model.mjs';
import { startPortway, TOKEN, until } from './portway.mjs';

const { PORTWAY_BINARY: binary, PORTWAY_FIXTURE: fixture } = process.env;
const LIMIT = 120_000;
const skip = binary && fixture ? false : 'PORTWAY_BINARY and PORTWAY_FIXTURE are not set';

let home, model, client, portway;
const asked = [];

before(async () => {
  if (skip) return;
  home = await mkdtemp(join(tmpdir(), 'copilot-home-'));
  model = await startModel();
  client = new CopilotClient({
    baseDirectory: home,
    workingDirectory: home,
    useLoggedInUser: false,
    logLevel: 'none',
    env: { PATH: process.env.PATH, HOME: home },
  });
  await client.start();
});

afterEach(async () => {
  await portway?.stop();
  portway = undefined;
  asked.length = 0;
});

after(async () => {
  await client?.stop();
  model?.close();
  if (home) await rm(home, { recursive: true, force: true });
});

function settings(tools) {
  return {
    tools,
    model: 'fake',
    modelCapabilities: { supports: { vision: true } },
    provider: { type: 'openai', wireApi: 'completions', baseUrl: model.url, apiKey: 'none' },
    onPermissionRequest(request) {
      asked.push(request);
      return { kind: 'approve-once' };
    },
  };
}

async function say(session, prompt) {
  const event = await session.sendAndWait({ prompt }, LIMIT);
  return event?.data.content;
}

const own = {
  name: 'own_word',
  description: "The program's own",
  parameters: { type: 'object', properties: { word: { type: 'string' } } },
  handler: ({ word }) => `own ${word}`,
};

test('d8 the model has all tools and reads what they say', { skip, timeout: LIMIT }, async () => {
  portway = await startPortway({ binary, fixture }, { fs: [], 'weather-1': [] });
  const { tools } = await portwayTools({ url: portway.url, key: TOKEN, own: [own] });
  const session = await client.createSession(settings(tools));
  const text = 'grüße, 世界 \u{1f980} "quoted"\\n';
  assert.equal(await say(session, `call mcp_fs_echo ${JSON.stringify({ text })}`), `it says: ${text}`);
  const offered = model.offered();
  for (const name of ['mcp_fs_echo', 'mcp_weather-1_add', 'own_word']) assert.ok(offered.includes(name), name);
  const others = offered.filter((name) => !name.startsWith('mcp_') && name !== 'own_word');
  assert.ok(others.length >= 5, `its own are there beside them: ${offered}`);
  assert.equal(await say(session, 'call own_word {"word":"x"}'), 'it says: own x');
  assert.match(await say(session, 'call mcp_weather-1_add {"a":2,"b":40}'), /42/);
  assert.deepEqual(
    asked.map((request) => request.toolName),
    ['mcp_fs_echo', 'own_word', 'mcp_weather-1_add'],
  );
  await session.disconnect();
});

test('d8 what goes wrong is told to the model', { skip, timeout: LIMIT }, async () => {
  portway = await startPortway({ binary, fixture }, { fs: [] });
  const { tools } = await portwayTools({ url: portway.url, key: TOKEN, timeoutMs: 1500 });
  const session = await client.createSession(settings(tools));
  const kinds = [];
  session.on('tool.execution_complete', (event) => kinds.push(event.data.error?.code ?? 'success'));
  assert.equal(await say(session, 'call mcp_fs_fail {"text":"no disk, 满了"}'), 'it says: no disk, 满了');
  assert.match(await say(session, 'call mcp_fs_error {}'), /an error as told/);
  assert.match(await say(session, 'call mcp_fs_sleep {"ms":60000}'), /timed out: no answer within 1.5 s/);
  assert.match(await say(session, 'call mcp_fs_add {"a":"x"}'), /a/);
  await portway.stop();
  assert.match(await say(session, 'call mcp_fs_echo {"text":"x"}'), /no Portway answers at http:\/\/127.0.0.1/);
  assert.deepEqual(kinds, ['failure', 'failure', 'timeout', 'failure', 'failure']);
  await session.disconnect();
});

test('d8 pictures reach the model and nothing is dropped', { skip, timeout: LIMIT }, async () => {
  portway = await startPortway({ binary, fixture }, { fs: [] });
  const { tools } = await portwayTools({ url: portway.url, key: TOKEN, permission: 'readOnlyHint' });
  const session = await client.createSession(settings(tools));
  const said = await say(session, 'call mcp_fs_content {}');
  for (const part of ['text', '[audio: audio/wav', 'fixture://text', 'embedded'])
    assert.ok(said.includes(part), `${part}: ${said}`);
  const seen = JSON.stringify(model.asked.at(-1));
  assert.ok(seen.includes('iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB'), seen);
  assert.equal(await say(session, 'call mcp_fs_echo {"text":"x"}'), 'it says: x');
  assert.deepEqual(
    asked.map((request) => request.toolName),
    ['mcp_fs_content'],
    'what only reads is not asked for',
  );
  await session.disconnect();
});

test('d8 an aborted call is cancelled at its server', { skip, timeout: LIMIT }, async () => {
  const record = join(home, 'record');
  portway = await startPortway({ binary, fixture }, { fs: ['--record', record] });
  const { tools } = await portwayTools({ url: portway.url, key: TOKEN });
  const session = await client.createSession(settings(tools));
  const recorded = async (text) => (await readFile(record, 'utf8')).includes(text);
  await session.send({ prompt: 'call mcp_fs_sleep {"ms":600000}' });
  await until('the call is there', () => recorded('600000'));
  assert.ok(!(await recorded('"event":"cancelled"')));
  await session.abort();
  await until('it is cancelled', () => recorded('"event":"cancelled"'));
  await session.disconnect();
});

test('d8 tools that change are told, and taken up by a resumed session', { skip, timeout: LIMIT }, async () => {
  portway = await startPortway({ binary, fixture }, { fs: [] });
  let news;
  const following = await portwayTools({
    url: portway.url,
    key: TOKEN,
    pollMs: 100,
    onChange: (tools) => (news = tools),
  });
  let session = await client.createSession(settings(following.tools));
  assert.equal(await say(session, 'call mcp_fs_echo {"text":"1"}'), 'it says: 1');
  await portway.api('POST', '/api/mcp/servers', { name: 'late', command: fixture });
  await until('the news', () => news?.some((tool) => tool.name === 'mcp_late_echo'));
  await session.disconnect();
  session = await client.resumeSession(session.sessionId, settings(following.tools));
  assert.equal(await say(session, 'call mcp_late_echo {"text":"2"}'), 'it says: 2');
  following.close();
  await session.disconnect();
});
