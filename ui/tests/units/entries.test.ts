// The settings and requests that a client needs to use an entry.
import assert from 'node:assert/strict';
import test from 'node:test';
import { clients } from '../../src/screens/entries/clients';
import { words } from '../../src/screens/servers/words';

const settings = (name: string) =>
  Object.fromEntries(
    clients({ name, origin: 'http://x:1', key: 'pw_k' }).map(({ name: client, text }) => [client, text]),
  );

test('h6 the settings of every client have the address and the key', () => {
  for (const [client, text] of Object.entries(settings('mine'))) {
    assert.match(text, /http:\/\/x:1/, client);
    assert.match(text, /pw_k/, client);
  }
});

test('h6 files are valid and commands are one command', () => {
  const all = settings('mine');
  for (const client of ['Claude Desktop', 'VS Code', 'Cursor', 'Gemini CLI', 'opencode']) {
    assert.doesNotThrow(() => JSON.parse(all[client] ?? '') as unknown, client);
  }
  assert.equal(words(all['Claude Code'] ?? '')?.[0], 'claude');
  const curl = words(all['curl'] ?? '') ?? [];
  assert.equal((JSON.parse(curl.at(-1) ?? '') as { method: string }).method, 'tools/list');
});

test('h6 a name is reduced to what every client accepts', () => {
  for (const [name, plain] of [
    ['my client', 'my-client'],
    ['--x--', 'x'],
    ['客户端', 'portway'],
  ] as const) {
    assert.match(settings(name)['Codex'] ?? '', new RegExp(`^\\[mcp_servers\\.${plain}\\]`));
  }
});
