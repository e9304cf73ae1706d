// An official client with what it was asked, told and answered, so that two of them can be
// compared: one at the server itself, one at Portway.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { existsSync, readFileSync } from 'node:fs';
import { until } from '../processes.mjs';

const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' } };
const EVERYTHING = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const NOTIFICATIONS = [
    'notifications/message',
    'notifications/tools/list_changed',
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/resources/updated'
];

/** Its answers to questions, unless a comparison wants others. */
const ANSWERS = {
    elicit: ({ mode }) => (mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { username: 'ada', email: 'ada@example.org', name: 'Ada', ok: true, color: 'blue' } }),
    sample: () => ({ role: 'assistant', model: 'a-model', stopReason: 'endTurn', content: { type: 'text', text: 'Paris, ü' } }),
    roots: () => ({ roots: [{ uri: 'file:///shop/a', name: 'a' }, { uri: 'file:///shop/b' }] })
};

/** One connected client: `{ client, asked, told, answers, close() }`. */
export async function connect(url, era, capabilities = EVERYTHING) {
    const client = new Client({ name: 'parity', version: '1.0.0' }, { capabilities, versionNegotiation: { mode: MODES[era] } });
    const one = { client, asked: [], told: [], answers: { ...ANSWERS }, close: () => client.close() };
    const answer = kind => async request => {
        const { _meta, task, elicitationId, ...params } = request.params ?? {};
        one.asked.push({ method: request.method, params });
        return one.answers[kind](params);
    };
    if (capabilities.elicitation) client.setRequestHandler('elicitation/create', answer('elicit'));
    if (capabilities.sampling) client.setRequestHandler('sampling/createMessage', answer('sample'));
    if (capabilities.roots) client.setRequestHandler('roots/list', answer('roots'));
    for (const method of NOTIFICATIONS) {
        client.setNotificationHandler(method, ({ params = {} }) => {
            const { _meta, ...rest } = params;
            one.told.push({ method, ...rest });
        });
    }
    // A legacy client opens its own stream some time after it has connected, and is told
    // nothing before that.
    let open = era !== 'legacy';
    const fetching = async (address, init) => {
        const response = await fetch(address, init);
        open ||= init?.method === 'GET';
        return response;
    };
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: fetching }));
    await until('the stream of its own opens', () => open, 20_000);
    // So that a modern client knows which arguments go into headers.
    await client.listTools();
    return one;
}

/** What ran at the server: everything in the file it writes, since the last time. */
export class Effects {
    #file;
    #read = 0;

    constructor(file) {
        this.#file = file;
    }

    #all() {
        return existsSync(this.#file) ? readFileSync(this.#file, 'utf8').split('\n').filter(Boolean).map(line => JSON.parse(line)) : [];
    }

    /** Those since the last call of this. */
    take() {
        const all = this.#all();
        const fresh = all.slice(this.#read);
        this.#read = all.length;
        return fresh;
    }

    /** Waits for one that fits, without taking it. */
    wait(what, fits) {
        return until(`the server ${what}`, () => this.#all().slice(this.#read).some(fits), 20_000);
    }
}

/** One side of the comparison. `names` says how the endpoint calls things. */
export class Peer {
    constructor(url, era, effects, names) {
        Object.assign(this, { url, era, effects, names, modern: era === 'modern' });
    }

    /** A client of its own for one comparison, closed after it. */
    async with(capabilities, use) {
        const one = await connect(this.url, this.era, capabilities);
        try {
            return await use(one);
        } finally {
            await one.close();
        }
    }

    /** Connects the client that asks most of the questions. */
    async open() {
        this.one = await connect(this.url, this.era);
        this.client = this.one.client;
        await this.names.learn(this.client);
    }

    async close() {
        await this.one?.close();
    }

    call(name, args = {}, options = {}, one = this.one) {
        const { _meta, ...rest } = options;
        return one.client.callTool({ name: this.names.tool(name), arguments: args, ...(_meta && { _meta }) }, rest);
    }

    read(uri, one = this.one) {
        return one.client.readResource({ uri: this.names.uri(uri) }, { cacheMode: 'bypass' });
    }

    prompt(name, args, one = this.one) {
        return one.client.getPrompt({ name: this.names.prompt(name), ...(args && { arguments: args }) });
    }

    /** What this client was told with a method, waiting until there are `count`. */
    async toldOf(method, count, one = this.one) {
        const told = () => one.told.filter(note => note.method === `notifications/${method}`);
        await until(() => `${count} of ${method}; told ${JSON.stringify(one.told)}`, () => told().length >= count, 20_000);
        return told();
    }
}
