// A real Portway in a temporary directory, on a port of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const TOKEN = 'test-admin-token-0123456789';
const PATIENCE = 60_000;

/** `servers`: names, and the arguments of the fixture that each is. */
export async function startPortway({ binary, fixture }, servers) {
  const directory = await mkdtemp(join(tmpdir(), 'portway-copilot-'));
  const definition = (args) => ({ command: fixture, args });
  const mcpServers = Object.fromEntries(Object.entries(servers).map(([name, args]) => [name, definition(args)]));
  await writeFile(join(directory, '.mcp.json'), JSON.stringify({ mcpServers }));
  const child = spawn(binary, ['--listen', '127.0.0.1:0'], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory, PORTWAY_ADMIN_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, 'line', { signal: AbortSignal.timeout(PATIENCE) });
  const url = line.replace('portway listening on ', '');
  const portway = {
    url,
    async api(method, path, body) {
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      const text = await answer.text();
      return text === '' ? null : JSON.parse(text);
    },
    connected: (name) =>
      until(
        `${name} is connected`,
        async () => (await portway.api('GET', `/api/mcp/servers/${name}`)).status === 'connected',
      ),
    async stop() {
      if (child.exitCode === null) child.kill('SIGTERM');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
  try {
    for (const name of Object.keys(servers)) await portway.connected(name);
  } catch (error) {
    await portway.stop();
    throw error;
  }
  return portway;
}

export async function until(what, holds) {
  const end = Date.now() + PATIENCE;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
