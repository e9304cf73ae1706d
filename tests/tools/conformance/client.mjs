#!/usr/bin/env node
// What the suite's client leg starts: an official client that uses everything it is
// offered. With PORTWAY_UNDER_TEST it starts that Portway on the mock server and talks to
// it instead, so that Portway is the client the mock judges.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { clean, startPortway } from '../processes.mjs';

const mock = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const modern = (process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '') >= '2026';
const { toolCalls = [] } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const binary = process.env.PORTWAY_UNDER_TEST;

/** A value that fits a property, for a call that must only be well formed. */
const example = ({ type, enum: values } = {}) =>
    values?.[0] ?? { number: 3, integer: 2, boolean: true, object: {}, array: [], null: null }[type] ?? 'word';
const argumentsFor = ({ inputSchema: { properties = {}, required = [] } }) =>
    Object.fromEntries(required.map(name => [name, example(properties[name])]));

async function connect(url, mode) {
    const client = new Client({ name: 'conformance-driver', version: '1.0.0' }, {
        capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
        versionNegotiation: { mode }
    });
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: {} }));
    client.setRequestHandler('sampling/createMessage', async () => ({
        role: 'assistant', model: 'none', content: { type: 'text', text: 'words' }
    }));
    client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///shop', name: 'work' }] }));
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
}

/** A mock may refuse what it does not care about; what it wants to see it has seen. */
const attempt = work => work.catch(error => console.error(`refused: ${error.message}`));

async function useEverything(client) {
    const { tools } = await client.listTools();
    const rich = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    for (const tool of tools) {
        const given = toolCalls.find(({ name }) => name === tool.name)?.arguments
            ?? (tool.name === 'json_schema_echo' ? { schema: rich.inputSchema } : argumentsFor(tool));
        await attempt(client.callTool({ name: tool.name, arguments: given }));
    }
    const { resources } = await client.listResources();
    for (const { uri } of resources) await attempt(client.readResource({ uri }));
    const { prompts } = await client.listPrompts();
    for (const { name } of prompts) await attempt(client.getPrompt({ name }));
}

try {
    const portway = binary && await startPortway(binary, { up: { type: 'http', url: mock } });
    const url = portway ? `${portway.url}/servers/up/mcp` : mock;
    const modes = [modern ? { pin: '2026-07-28' } : 'legacy'];
    // A modern client drops bad tools by itself; a legacy one shows whether Portway did.
    if (portway && scenario === 'http-invalid-tool-headers') modes.push('legacy');
    for (const mode of modes) {
        const client = await connect(url, mode);
        await useEverything(client);
        await client.close();
    }
    await portway?.stop();
} catch (error) {
    console.error(error);
    process.exitCode = 1;
} finally {
    await clean();
}
