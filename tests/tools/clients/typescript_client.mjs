#!/usr/bin/env node
// A client made with the official TypeScript SDK 1.x: as python_client.py, legacy era only.
//
//   typescript_client.mjs URL [--transport http|sse] [--prefix NAMES]
//   typescript_client.mjs --transport stdio [--prefix NAMES] -- COMMAND [ARGUMENT…]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { parseArgs } from 'node:util';

const { values: { transport, prefix }, positionals: [url, ...args] } = parseArgs({
    options: { era: { type: 'string' }, transport: { type: 'string', default: 'http' }, prefix: { type: 'string', default: '' } },
    allowPositionals: true
});
setTimeout(() => {
    console.error('not done in time');
    process.exit(1);
}, 60_000).unref();

const asked = [];
const progress = [];
const client = new Client({ name: 'typescript-1', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { username: 'ada', email: 'ada@example.org' } };
});
const line = {
    http: () => new StreamableHTTPClientTransport(new URL(url)),
    sse: () => new SSEClientTransport(new URL(url)),
    stdio: () => new StdioClientTransport({ command: url, args, env: process.env, stderr: 'inherit' })
}[transport]();
await client.connect(line);
await client.ping();

const tools = [];
for (let cursor; ;) {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools.map(({ name }) => name));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
}
const call = (name, args, more) => client.callTool({ name: prefix + name, arguments: args }, undefined, more);
const echo = await call('test_echo', { message: 'ü from TypeScript' });
await call('test_tool_with_progress', {}, { onprogress: step => progress.push(step.progress) });
const elicited = await call('test_elicitation', { message: 'Who, TypeScript?' });
const failed = await call('test_error_handling', {});
console.log(JSON.stringify({
    version: line.protocolVersion ?? '2025-11-25',
    tools: tools.sort(),
    echo: echo.content[0].text,
    structured: echo.structuredContent,
    progress,
    asked,
    elicited: elicited.content[0].text,
    failed: [failed.isError, failed.content[0].text]
}));
await client.close();
