#!/usr/bin/env node
// Upstream MCP server for judging a gateway with the official conformance suite.
// Built on the official TypeScript SDK; carries every fixture (tools, resources,
// prompts) that the server scenarios name. One set of definitions, four faces:
//
//   server.mjs --port N [--era both|2025|2026] [--sse] [--log FILE]   Streamable HTTP at /mcp
//   server.mjs --stdio  [--era both|2025|2026]                        newline-delimited stdio
//
//   both with [--extra] [--page N] [--effects FILE]
//
//   --era 2025   only the initialize handshake with sessions (as 2025-11-25 and older)
//   --era 2026   only the stateless 2026-07-28 protocol; an initialize is refused
//   --sse        additionally the HTTP+SSE transport of 2024-11-05 at /sse and /messages
//   --log FILE   one JSON line per HTTP request received: what the gateway really sent
//
//   --extra      the fixtures of extras.mjs as well
//   --page N     lists in pages of N
//   --effects F  one JSON line per tool, prompt or resource that ran, and per cancelled one
//
// Listens on 127.0.0.1 only, and ends with the process that started it.
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import http from 'node:http';
import { parseArgs } from 'node:util';
import {
    McpServer,
    ProtocolError,
    ResourceTemplate,
    classifyInboundRequest,
    createMcpHandler,
    fromJsonSchema,
    isInitializeRequest
} from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { EXTRA_TOOLS, paged } from './extras.mjs';
import { PROMPTS, RESOURCES, TOOLS, changes, effects, object, sealed, text, user, world } from './fixtures.mjs';

const { values: opt } = parseArgs({
    options: {
        port: { type: 'string' },
        stdio: { type: 'boolean', default: false },
        era: { type: 'string', default: 'both' },
        sse: { type: 'boolean', default: false },
        log: { type: 'string' },
        extra: { type: 'boolean', default: false },
        page: { type: 'string' },
        effects: { type: 'string' }
    }
});
if (!['both', '2025', '2026'].includes(opt.era) || opt.stdio === (opt.port !== undefined)) {
    console.error('usage: server.mjs (--port N [--sse] [--log FILE] | --stdio) [--era both|2025|2026] [--extra] [--page N] [--effects FILE]');
    process.exit(2);
}

if (opt.effects) effects.on('effect', effect => appendFileSync(opt.effects, JSON.stringify(effect) + '\n'));
const ran = effect => effects.emit('effect', effect);

const live = new Set(); // long-lived instances: 2025 sessions and stdio connections
let modern; // the 2026 HTTP handler, for its subscription streams

changes.on('change', kind => {
    for (const one of live) one.sync(kind);
    if (kind === 'tools') modern?.notify.toolsChanged();
    if (kind === 'prompts') modern?.notify.promptsChanged();
    if (kind === 'resource') modern?.notify.resourceUpdated('test://watched-resource');
});

// Compiled once: the modern handler builds a server per request.
const tools = (opt.extra ? [...TOOLS, ...EXTRA_TOOLS] : TOOLS).map(([name, description, properties, run, { raw, outputSchema, ...ornaments } = {}]) => ({
    name,
    run,
    definition: {
        description,
        inputSchema: fromJsonSchema(raw ? properties : object(properties)),
        ...(outputSchema && { outputSchema: fromJsonSchema(outputSchema) }),
        ...ornaments
    }
}));
const prompts = PROMPTS.map(([name, description, schema, run]) => ({ name, description, run, argsSchema: schema && fromJsonSchema(schema) }));

function build({ longLived = false } = {}) {
    const server = new McpServer(
        { name: 'gateway-bench-upstream', version: '1.0.0' },
        {
            capabilities: {
                tools: { listChanged: true },
                prompts: { listChanged: true },
                resources: { listChanged: true, subscribe: true },
                completions: {},
                logging: {}
            },
            instructions: 'Fixtures for conformance runs.',
            cacheHints: { 'tools/list': { ttlMs: 1000, cacheScope: 'public' }, 'resources/read': { ttlMs: 0, cacheScope: 'private' } },
            requestState: { verify: sealed.verify }
        }
    );
    for (const { name, run, definition } of tools) {
        server.registerTool(name, definition, async (args, ctx) => {
            ran({ tool: name, args });
            return run(args, ctx, server);
        });
    }
    for (const [name, uri, description, mimeType, body] of RESOURCES) {
        server.registerResource(name, uri, { description, mimeType }, async () => {
            ran({ resource: uri });
            return { contents: [{ uri, mimeType, ...body() }] };
        });
    }
    server.registerResource(
        'template',
        new ResourceTemplate('test://template/{id}/data', { list: undefined }),
        { description: 'A text per id', mimeType: 'application/json' },
        async (uri, { id }) => {
            ran({ resource: uri.href });
            return { contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] };
        }
    );
    for (const { name, description, run, argsSchema } of prompts) {
        const get = (args, ctx) => {
            ran({ prompt: name, args });
            return run(args, ctx);
        };
        if (argsSchema) server.registerPrompt(name, { description, argsSchema }, async (args, ctx) => get(args, ctx));
        else server.registerPrompt(name, { description }, async ctx => get({}, ctx));
    }

    const words = ['paris', 'park', 'party', 'pear', 'plum'];
    server.server.setRequestHandler('completion/complete', async ({ params }) => {
        const taken = Object.values(params.context?.arguments ?? {});
        const values = words.filter(word => word.startsWith(params.argument.value) && !taken.includes(word));
        return { completion: { values, total: values.length, hasMore: false } };
    });

    const watched = new Set();
    server.server.setRequestHandler('resources/subscribe', async ({ params }) => void watched.add(params.uri) ?? {});
    server.server.setRequestHandler('resources/unsubscribe', async ({ params }) => void watched.delete(params.uri) ?? {});

    const extraTool = server.registerTool('test_extra_tool', { description: 'Comes and goes' }, async () => text('here'));
    const extraPrompt = server.registerPrompt('test_extra_prompt', { description: 'Comes and goes' }, async () => ({ messages: [user('here')] }));
    if (!world.extraTool) extraTool.disable();
    if (!world.extraPrompt) extraPrompt.disable();

    if (opt.page) paged(server.server, Number(opt.page), message => new ProtocolError(-32602, message));

    if (longLived) {
        const one = {
            server,
            sync(kind) {
                // enable() and disable() announce the change themselves
                if (kind === 'tools') world.extraTool ? extraTool.enable() : extraTool.disable();
                if (kind === 'prompts') world.extraPrompt ? extraPrompt.enable() : extraPrompt.disable();
                if (kind === 'resource' && (one.modern || watched.has('test://watched-resource'))) {
                    server.server.sendResourceUpdated({ uri: 'test://watched-resource' }).catch(() => {});
                }
            }
        };
        live.add(one);
        const before = server.server.onclose;
        server.server.onclose = () => {
            live.delete(one);
            before?.();
        };
        server.bench = one;
    }
    return server;
}

const parent = process.ppid;
setInterval(() => process.ppid !== parent && process.exit(0), 250).unref();

if (opt.stdio) {
    if (opt.era === '2025') {
        await build({ longLived: true }).connect(new StdioServerTransport());
    } else {
        serveStdio(({ era }) => {
            const server = build({ longLived: true });
            server.bench.modern = era === 'modern';
            return server;
        }, { legacy: opt.era === '2026' ? 'reject' : 'serve' });
    }
    process.stdin.on('close', () => process.exit(0));
} else {
    await serveHttp(Number(opt.port));
}

async function serveHttp(port) {
    modern = createMcpHandler(() => build(), { legacy: 'reject', onerror: error => console.error('modern:', error.message) });
    const serveModern = toNodeHandler(modern);
    const sessions = new Map();
    const legacySse = opt.sse ? await import('@modelcontextprotocol/server-legacy/sse') : undefined;

    // Replay for dropped streams: per stream, in order, by counter.
    const eventStore = () => {
        const kept = [];
        return {
            async storeEvent(stream, message) {
                kept.push({ stream, message });
                return `${stream}@${kept.length}`;
            },
            async replayEventsAfter(last, { send }) {
                const cut = last.lastIndexOf('@');
                const stream = last.slice(0, cut);
                for (let i = Number(last.slice(cut + 1)); i < kept.length; i++) {
                    if (kept[i].stream === stream && kept[i].message?.jsonrpc) await send(`${stream}@${i + 1}`, kept[i].message);
                }
                return stream;
            }
        };
    };

    const refuse = (res, status, code, message, id = null) => {
        res.writeHead(status, { 'content-type': 'application/json' });
        res.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }));
    };

    const ours = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
    async function handle(req, res) {
        // Guard against DNS rebinding: only local names, in Host and in Origin.
        const origin = req.headers.origin?.replace(/^https?:\/\//, '');
        if (!ours.test(req.headers.host ?? '') || (origin !== undefined && !ours.test(origin))) {
            return refuse(res, 403, -32000, 'Forbidden host or origin');
        }
        const path = new URL(req.url, 'http://localhost').pathname;
        let body;
        if (req.method === 'POST') {
            const parts = [];
            for await (const part of req) parts.push(part);
            try {
                body = JSON.parse(Buffer.concat(parts).toString('utf8'));
            } catch {
                return refuse(res, 400, -32700, 'Parse error');
            }
        }
        if (opt.log) {
            const { authorization, ...headers } = req.headers;
            appendFileSync(opt.log, JSON.stringify({
                at: new Date().toISOString(), http: req.method, path, rpc: body?.method, id: body?.id, name: body?.params?.name ?? body?.params?.uri,
                headers: { ...headers, ...(authorization && { authorization: 'present' }) }, meta: body?.params?._meta
            }) + '\n');
        }
        if (legacySse && (path === '/sse' || path === '/messages')) return serveSse(req, res, path, body);
        if (path !== '/mcp') return refuse(res, 404, -32000, 'Not found');

        const session = req.headers['mcp-session-id'];
        if (opt.era !== '2025') {
            const kind = req.method === 'POST'
                ? classifyInboundRequest({
                    httpMethod: req.method,
                    protocolVersionHeader: req.headers['mcp-protocol-version'],
                    mcpMethodHeader: req.headers['mcp-method'],
                    body
                }).kind
                : 'legacy';
            if (opt.era === '2026' || kind !== 'legacy') return serveModern(req, res, body);
        }

        if (session !== undefined) {
            const transport = sessions.get(session);
            return transport ? transport.handleRequest(req, res, body) : refuse(res, 404, -32001, 'Session not found', body?.id ?? null);
        }
        if (req.method !== 'POST' || !isInitializeRequest(body)) {
            return refuse(res, 400, -32000, 'Bad Request: no session', body?.id ?? null);
        }
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: () => randomUUID(),
            eventStore: eventStore(),
            retryInterval: 500,
            onsessioninitialized: id => void sessions.set(id, transport)
        });
        transport.onclose = () => void sessions.delete(transport.sessionId);
        await build({ longLived: true }).connect(transport);
        return transport.handleRequest(req, res, body);
    }

    const sse = new Map();
    async function serveSse(req, res, path, body) {
        if (path === '/sse' && req.method === 'GET') {
            const transport = new legacySse.SSEServerTransport('/messages', res);
            sse.set(transport.sessionId, transport);
            transport.onclose = () => sse.delete(transport.sessionId);
            return build({ longLived: true }).connect(transport);
        }
        const transport = sse.get(new URL(req.url, 'http://localhost').searchParams.get('sessionId'));
        return transport && req.method === 'POST' ? transport.handlePostMessage(req, res, body) : refuse(res, 404, -32000, 'No such stream');
    }

    const listener = http.createServer((req, res) => {
        handle(req, res).catch(error => {
            console.error('upstream:', error);
            if (res.headersSent) res.end();
            else refuse(res, 500, -32603, 'Internal error');
        });
    });
    listener.on('error', error => {
        console.error(`upstream: ${error.message}`);
        process.exit(1);
    });
    listener.listen(port, '127.0.0.1', () => {
        console.error(`upstream: http://127.0.0.1:${listener.address().port}/mcp era=${opt.era}${opt.sse ? ' +sse' : ''} pid=${process.pid}`);
    });
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0));
}
