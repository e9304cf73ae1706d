// A door in front of Portway that the tests can shut: it passes everything on,
// and breaks off the event stream, or refuses it, when told to. A Portway that
// was built without the console gets its pages from `dist`.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
const POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

export async function openFront(portway) {
  const health = await (await fetch(`${portway.url}/healthz`)).json();
  const streams = new Set();
  const own = health.console !== 'embedded';
  const back = new URL(portway.url);
  const state = { events: true, assets: true, overrides: new Map(), held: new Map() };

  const server = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url, portway.url);
    const override = state.overrides.get(`${incoming.method} ${pathname}`);
    if (override) {
      outgoing
        .writeHead(override.status ?? 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(override.body));
      return;
    }
    if (!state.assets && pathname.startsWith('/assets/')) {
      outgoing.writeHead(404).end();
      return;
    }
    if (
      own &&
      incoming.method === 'GET' &&
      (pathname.startsWith('/assets/') || (pathname === '/' && !searchParams.has('token')))
    ) {
      page(pathname === '/' ? '/index.html' : pathname, outgoing);
      return;
    }
    const isStream = pathname === '/api/mcp/events';
    if (isStream && !state.events) {
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
        const hold = state.held.get(`${incoming.method} ${pathname}`);
        if (hold) {
          state.held.delete(`${incoming.method} ${pathname}`);
          hold(answer, outgoing);
          return;
        }
        outgoing.writeHead(answer.statusCode, answer.headers);
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
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    streams: () => streams.size,
    setEvents(on) {
      state.events = on;
      if (!on) {
        streams.forEach((stream) => stream.destroy());
      }
    },
    /** As after an upgrade: the files that an open page knows are gone. */
    setAssets(on) {
      state.assets = on;
    },
    answer: (what, body, status) => state.overrides.set(what, { body, status }),
    unanswer: (what) => state.overrides.delete(what),
    /** Keeps the next answer back until the function it gives is called, with what to change in it. */
    hold(what) {
      const kept = new Promise((resolve) => {
        state.held.set(what, (answer, outgoing) => resolve([answer, outgoing]));
      });
      return async (changes) => {
        const [answer, outgoing] = await kept;
        const body = { ...JSON.parse(Buffer.concat(await answer.toArray()).toString()), ...changes };
        outgoing.writeHead(answer.statusCode, { 'content-type': 'application/json' }).end(JSON.stringify(body));
        return body;
      };
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function page(path, outgoing) {
  const plain = join(DIST, path);
  const file = [plain, `${plain}.gz`].find((one) => one.startsWith(DIST) && existsSync(one) && statSync(one).isFile());
  if (!file) {
    outgoing.writeHead(404).end();
    return;
  }
  const coding = file === plain ? {} : { 'content-encoding': 'gzip' };
  outgoing.writeHead(200, {
    'content-type': TYPES[extname(plain)] ?? 'application/octet-stream',
    'content-security-policy': POLICY,
    ...coding,
  });
  createReadStream(file).pipe(outgoing);
}
