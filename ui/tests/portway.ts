// A Portway for the tests: on a free port, in a temporary directory.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TOKEN = 'pw_admin_console_tests_0123456789abcdef';
const START_LIMIT = 60_000;

export interface Portway {
  url: string;
  token: string;
  folder: string;
  pid: number;
  /** A request to the REST API as the admin. It fails unless the status is 2xx. */
  api: <T>(method: string, path: string, body?: unknown) => Promise<T>;
  stop: () => Promise<void>;
}

/** Starts a Portway with an `.mcp.json` that defines `servers`. */
export async function startPortway(binary: string, servers: Record<string, unknown>): Promise<Portway> {
  const folder = mkdtempSync(join(tmpdir(), 'portway-ui-'));
  writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers: servers }, null, 2));
  const child = spawn(binary, ['--listen', '127.0.0.1:0', '--project', folder], {
    env: { PATH: process.env['PATH'], HOME: folder, PORTWAY_ADMIN_TOKEN: TOKEN, RUST_LOG: 'warn' },
    stdio: ['ignore', 'pipe', process.env['PORTWAY_LOG'] ? 'inherit' : 'ignore'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let text = '';
    const limit = setTimeout(() => reject(new Error(`Portway did not start: ${text}`)), START_LIMIT);
    child.once('exit', (code) => reject(new Error(`Portway ended with ${code}: ${text}`)));
    child.stdout.on('data', (data: Buffer) => {
      text += data.toString();
      const found = /listening on (http:\S+)/.exec(text)?.[1];
      if (found) {
        clearTimeout(limit);
        resolve(found);
      }
    });
  });
  child.removeAllListeners('exit');
  const { pid } = child;
  if (pid === undefined) {
    throw new Error('Portway has no process id');
  }
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`${method} ${path}: ${response.status} ${text}`);
    }
    return (text ? JSON.parse(text) : null) as T;
  };
  const stop = async (): Promise<void> => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, token: TOKEN, folder, pid, api, stop };
}
