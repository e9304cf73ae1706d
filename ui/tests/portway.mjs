// A Portway of our own, on a port of its own, in a folder of its own.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TOKEN = 'pw_admin_console_tests_0123456789abcdef';
const START = 60_000;

/** `servers`: what `.mcp.json` says. */
export async function startPortway(binary, servers) {
  const folder = mkdtempSync(join(tmpdir(), 'portway-ui-'));
  const file = join(folder, '.mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: servers }, null, 2));
  const child = spawn(binary, ['--listen', '127.0.0.1:0', '--project', folder], {
    env: { PATH: process.env.PATH, HOME: folder, PORTWAY_ADMIN_TOKEN: TOKEN, RUST_LOG: 'warn' },
    stdio: ['ignore', 'pipe', process.env.PORTWAY_LOG ? 'inherit' : 'ignore'],
  });
  const url = await new Promise((resolve, reject) => {
    let text = '';
    const limit = setTimeout(() => reject(new Error(`Portway did not start: ${text}`)), START);
    child.once('exit', (code) => reject(new Error(`Portway ended with ${code}: ${text}`)));
    child.stdout.on('data', (data) => {
      text += data;
      const found = /listening on (http:\S+)/.exec(text);
      if (found) {
        clearTimeout(limit);
        resolve(found[1]);
      }
    });
  });
  child.removeAllListeners('exit');
  const api = async (method, path, body) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    }
    return text ? JSON.parse(text) : null;
  };
  const stop = async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  const write = (next) => writeFileSync(file, JSON.stringify({ mcpServers: next }, null, 2));
  return { url, token: TOKEN, folder, api, stop, write, pid: child.pid };
}
