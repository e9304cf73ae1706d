// What a Portway without the event stream lacks, made from what it has: events
// by looking at the servers many times a second, the console's own MCP path,
// and the calls that went through it. A Portway that has them is left alone.
import { request } from 'node:http';

const LOOK = 50;

export async function standIn(portway, streams) {
  const probe = await fetch(`${portway.url}/api/mcp/activity`, { headers: { authorization: `Bearer ${portway.token}` } });
  await probe.body?.cancel();
  if (probe.status !== 404) {
    return undefined;
  }
  const calls = { inFlight: new Map(), recent: [], next: 1 };
  let id = 1;
  const send = (stream, type, data) => stream.write(`id: ${id++}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  const tell = (type, data) => streams.forEach((stream) => send(stream, type, data));

  return (incoming, outgoing, pathname, state) => {
    if (pathname === '/api/mcp/events' && state.events) {
      void events(portway, outgoing, streams, send);
      return true;
    }
    const found = /^\/api\/mcp\/servers\/([^/]+)\/(mcp|process|history)$/.exec(pathname);
    if (found?.[2] === 'mcp') {
      forward(portway, incoming, outgoing, found[1], calls, tell);
      return true;
    }
    const answer = (value) => outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const at = Date.now();
    if (found?.[2] === 'process') {
      answer({ processes: [{ pid: 100, ppid: 1, command: 'npx -y server', rssBytes: 48e6, startedAt: at }, { pid: 101, ppid: 100, command: 'node server.js', rssBytes: 91e6, startedAt: at }] });
      return true;
    }
    if (found?.[2] === 'history') {
      answer([{ at: at - 90_000, state: 'connecting' }, { at: at - 89_000, state: 'connected' }, { at: at - 40_000, state: 'disconnected', reason: 'exited with code 3' }, { at: at - 38_000, state: 'connected' }]);
      return true;
    }
    if (pathname === '/api/mcp/activity') {
      answer({ inFlight: [...calls.inFlight.values()], recent: calls.recent, perSecond: perSecond(calls.recent) });
      return true;
    }
    return false;
  };
}

async function events(portway, outgoing, streams, send) {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  streams.add(outgoing);
  const read = async () => portway.api('GET', '/api/mcp/servers');
  let known = new Map((await read()).map((server) => [server.name, JSON.stringify(server)]));
  send(outgoing, 'snapshot', { servers: await read() });
  const timer = setInterval(async () => {
    const servers = await read().catch(() => []);
    const next = new Map(servers.map((server) => [server.name, JSON.stringify(server)]));
    servers.filter((server) => known.get(server.name) !== next.get(server.name)).forEach((server) => send(outgoing, 'server', server));
    [...known.keys()].filter((name) => !next.has(name)).forEach((name) => send(outgoing, 'server_removed', { name }));
    known = next;
  }, LOOK);
  outgoing.on('close', () => {
    clearInterval(timer);
    streams.delete(outgoing);
  });
}

function forward(portway, incoming, outgoing, server, calls, tell) {
  const call = { id: calls.next++, server, tool: String(incoming.headers['mcp-name']), entry: null, at: Date.now() };
  calls.inFlight.set(call.id, call);
  tell('call_started', call);
  const headers = { ...incoming.headers };
  delete headers.cookie;
  delete headers.origin;
  const back = new URL(portway.url);
  let text = '';
  const end = (outcome) => {
    if (calls.inFlight.delete(call.id)) {
      const ended = { outcome, durationMs: Date.now() - call.at };
      calls.recent.unshift({ ...call, ...ended });
      tell('call_ended', { id: call.id, ...ended });
    }
  };
  const passed = request({ host: back.hostname, port: back.port, method: 'POST', path: `/servers/${server}/mcp`, headers: { ...headers, host: back.host, authorization: `Bearer ${portway.token}` } }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.on('data', (data) => (text += data));
    answer.on('end', () => end(text.includes('"isError":true') ? 'tool_error' : text.includes('"error":{') ? 'error' : 'ok'));
    answer.pipe(outgoing);
  });
  passed.on('error', () => outgoing.destroy());
  outgoing.on('close', () => {
    end('cancelled');
    passed.destroy();
  });
  incoming.pipe(passed);
}

function perSecond(recent) {
  const now = Math.floor(Date.now() / 1000);
  return Array.from({ length: 120 }, (_, at) => {
    const second = now - 119 + at;
    const inside = recent.filter((call) => Math.floor(call.at / 1000) === second);
    const took = inside.map((call) => call.durationMs).sort((a, b) => a - b);
    const part = (share) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? null;
    return { at: second * 1000, calls: inside.length, errors: inside.filter((call) => call.outcome !== 'ok').length, p50: part(0.5), p95: part(0.95), p99: part(0.99) };
  });
}
