#!/usr/bin/env node
// A client made with the official TypeScript SDK 2.x, which starts its server: as python_client.py.
//
//   typescript_2_client.mjs --transport stdio [--era legacy|modern] [--prefix NAMES] -- COMMAND [ARGUMENT…]
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parseArgs } from 'node:util';

const { values: { era, prefix }, positionals: [command, ...args] } = parseArgs({
    options: { era: { type: 'string', default: 'legacy' }, transport: { type: 'string' }, prefix: { type: 'string', default: '' } },
    allowPositionals: true
});
setTimeout(() => {
    console.error('not done in time');
    process.exit(1);
}, 60_000).unref();

const asked = [];
const progress = [];
const client = new Client(
    { name: 'typescript-2', version: '1.0.0' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: era === 'modern' ? 'auto' : 'legacy' } }
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { username: 'ada', email: 'ada@example.org' } };
});
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));

const { tools } = await client.listTools();
const call = (name, args, more) => client.callTool({ name: prefix + name, arguments: args }, more);
const echo = await call('test_echo', { message: 'ü from TypeScript' });
await call('test_tool_with_progress', {}, { onprogress: step => progress.push(step.progress) });
const elicited = await call('test_elicitation', { message: 'Who, TypeScript?' });
const failed = await call('test_error_handling', {});
console.log(JSON.stringify({
    version: client.getNegotiatedProtocolVersion(),
    tools: tools.map(({ name }) => name).sort(),
    echo: echo.content[0].text,
    structured: echo.structuredContent,
    progress,
    asked,
    elicited: elicited.content[0].text,
    failed: [failed.isError, failed.content[0].text]
}));
await client.close();
