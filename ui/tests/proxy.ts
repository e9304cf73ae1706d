// A proxy in front of Portway that can fail on purpose: it breaks off or refuses the event stream, loses the
// scripts, delays or replaces an answer. A Portway that was built without the console gets its pages from `dist`.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Health } from '../src/api/types';
import type { Portway } from './portway.ts';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
const POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** A route is a method and a path: `GET /api/mcp/servers`. */
export interface Proxy {
  url: string;
  /** Lets the event stream through, or breaks it off and refuses it. */
  setEvents: (on: boolean) => void;
  /** Without assets it is as after an upgrade: the files that an open page knows are gone. */
  setAssets: (on: boolean) => void;
  /** Answers a route itself, until `unstub`. */
  stub: (route: string, body: unknown, status?: number) => void;
  unstub: (route: string) => void;
  /** Delays the next answer to a route until the returned function is called, with what to change in the answer. */
  hold: <T>(route: string) => (changes: Partial<T>) => Promise<T>;
  close: () => Promise<void>;
}

export async function openProxy(portway: Portway): Promise<Proxy> {
  const health = (await (await fetch(`${portway.url}/healthz`)).json()) as Health;
  const servesPages = health.console !== 'embedded';
  const back = new URL(portway.url);
  const streams = new Set<ServerResponse>();
  const stubs = new Map<string, { status: number; body: unknown }>();
  const held = new Map<string, (answer: IncomingMessage, outgoing: ServerResponse) => void>();
  let [hasEvents, hasAssets] = [true, true];

  const server = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', portway.url);
    const route = `${incoming.method} ${pathname}`;
    const stub = stubs.get(route);
    if (stub) {
      outgoing.writeHead(stub.status, { 'content-type': 'application/json' }).end(JSON.stringify(stub.body));
      return;
    }
    const isAsset = pathname.startsWith('/assets/');
    if (isAsset && !hasAssets) {
      outgoing.writeHead(404).end();
      return;
    }
    const isPage = pathname === '/' && !searchParams.has('token');
    if (servesPages && incoming.method === 'GET' && (isAsset || isPage)) {
      sendFile(isPage ? '/index.html' : pathname, outgoing);
      return;
    }
    const isStream = pathname === '/api/mcp/events';
    if (isStream && !hasEvents) {
      outgoing.writeHead(503).end();
      return;
    }
    const headers = { ...incoming.headers, host: back.host };
    if (headers.origin) {
      headers.origin = portway.url;
    }
    const passed = request(
      { host: back.hostname, port: back.port, method: incoming.method, path: incoming.url, headers },
      (answer) => {
        const hold = held.get(route);
        if (hold) {
          held.delete(route);
          hold(answer, outgoing);
          return;
        }
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        if (isStream) {
          streams.add(outgoing);
        }
      },
    );
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      streams.delete(outgoing);
      passed.destroy();
    });
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setEvents(on) {
      hasEvents = on;
      if (!on) {
        streams.forEach((stream) => stream.destroy());
      }
    },
    setAssets(on) {
      hasAssets = on;
    },
    stub: (route, body, status = 200) => stubs.set(route, { body, status }),
    unstub: (route) => stubs.delete(route),
    hold<T>(route: string) {
      const arrived = new Promise<[IncomingMessage, ServerResponse]>((resolve) => {
        held.set(route, (answer, outgoing) => resolve([answer, outgoing]));
      });
      return async (changes: Partial<T>) => {
        const [answer, outgoing] = await arrived;
        const chunks = (await answer.toArray()) as Buffer[];
        const body = { ...(JSON.parse(Buffer.concat(chunks).toString()) as T), ...changes };
        outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' }).end(JSON.stringify(body));
        return body;
      };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendFile(path: string, outgoing: ServerResponse): void {
  const plain = join(DIST, path);
  const file = [plain, `${plain}.gz`].find((one) => one.startsWith(DIST) && existsSync(one) && statSync(one).isFile());
  if (!file) {
    outgoing.writeHead(404).end();
    return;
  }
  outgoing.writeHead(200, {
    'content-type': TYPES[extname(plain)] ?? 'application/octet-stream',
    'content-security-policy': POLICY,
    ...(file === plain ? {} : { 'content-encoding': 'gzip' }),
  });
  createReadStream(file).pipe(outgoing);
}
