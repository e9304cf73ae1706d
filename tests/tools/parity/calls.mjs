// Questions that make something run: tools, resources, prompts, completion.
import { LOG_LEVEL_META_KEY } from '@modelcontextprotocol/client';

const MEGABYTE = 1_000_000;
const call = (name, args) => [name, peer => peer.call(name, args)];
const digest = ({ content, ...rest }) => ({ length: content[0].text.length, ends: content[0].text.slice(-3), more: Object.keys(rest) });

/** What was logged during one call, at a level. */
async function logged(peer, level, tool) {
    const { told } = peer.one;
    told.length = 0;
    if (!peer.modern) await peer.client.setLoggingLevel(level);
    const result = await peer.call(tool, {}, peer.modern ? { _meta: { [LOG_LEVEL_META_KEY]: level } } : {});
    const logs = told.filter(({ method }) => method === 'notifications/message');
    return { logs, result };
}

async function progress(peer, tool, args) {
    const seen = [];
    const result = await peer.call(tool, args, { onprogress: step => seen.push(step) });
    return { seen, result };
}

export const CALLS = [
    call('test_simple_text'),
    call('test_image_content'),
    call('test_audio_content'),
    call('test_embedded_resource'),
    call('test_multiple_content_types'),
    call('extra_links'),
    call('test_error_handling'),
    call('test_echo', { message: 'plain' }),
    ['echo of odd characters', peer => peer.call('test_echo', { message: 'ü 世界 \u0000\u001f\u2028\u2029 "\\/ 😀 \r\n\t' })],
    ['echo of nothing', peer => peer.call('test_echo', { message: '' })],
    ['echo of a megabyte', async peer => digest(await peer.call('test_echo', { message: `${'y'.repeat(MEGABYTE)}end` }))],
    ['two megabytes back', async peer => digest(await peer.call('test_big', { n: 2 * MEGABYTE }))],
    ['structured content that is no object', peer => peer.call('extra_list'), {
        unless: ({ client, upstream }) => client === 'modern' && upstream === '2025' && 'a 2025 server wraps it itself'
    }],
    ['_meta both ways', peer => peer.call('extra_meta', {}, { _meta: { 'example.org/asked': { a: [1, null, 'ü'] }, 'example.org/flag': true } })],
    ['an argument that is also a header', peer => peer.call('test_x_mcp_header', { region: 'ü eu ', level: 3 })],
    ['no value for that header', peer => peer.call('test_x_mcp_header', {})],
    ['arguments of a rich schema', peer => peer.call('json_schema_2020_12_tool', { name: 'n', phone: '1', by: 'phone' })],
    ['arguments against the schema', peer => peer.call('json_schema_2020_12_tool', { name: 5 })],
    ['a missing argument', peer => peer.call('test_echo', {})],
    ['a default left out', peer => peer.call('extra_annotated', { count: 1 })],
    ['an unknown tool', peer => peer.call('no_such_tool', {}), { codeOnly: true }],
    ['an unknown method', ({ client }) => client.request({ method: 'no/such', params: {} }, anything()).catch(({ code, message }) =>
        // In the modern era it comes with a 404, which this client does not look into.
        Number(message.match(/"code":(-\d+)/)?.[1] ?? code))],
    ['twenty at once', async peer => {
        const texts = await Promise.all(Array.from({ length: 20 }, (_, n) => peer.call('test_echo', { message: `number ${n}` })));
        return texts.map(({ content }) => content[0].text);
    }, { unordered: true }],
    ['a slow one delays nobody', async peer => {
        const order = [];
        const note = name => () => order.push(name);
        const enough = new AbortController();
        const slow = peer.call('test_sleep', { ms: 30_000 }, { signal: enough.signal }).catch(() => {}).then(note('slow'));
        await peer.effects.wait('has begun to sleep', ({ tool }) => tool === 'test_sleep');
        await peer.call('test_echo', { message: 'quick' }).then(note('quick'));
        enough.abort();
        await peer.effects.wait('has noticed', ({ cancelled }) => cancelled === 'test_sleep');
        await slow;
        return order;
    }],
    ['a slow one is answered', peer => peer.call('test_sleep', { ms: 300 })],
    ['progress', peer => progress(peer, 'test_tool_with_progress')],
    ['a hundred steps in order', peer => progress(peer, 'extra_progress', { steps: 100 })],
    ['no steps', peer => progress(peer, 'extra_progress', { steps: 0 })],
    ['logs', peer => logged(peer, 'info', 'test_tool_with_logging')],
    ['logs of every level', peer => logged(peer, 'debug', 'extra_log')],
    ['logs from warning up', peer => logged(peer, 'warning', 'extra_log')],
    ['no logs unless wanted', async peer => {
        if (!peer.modern) return 'a legacy server may';
        peer.one.told.length = 0;
        await peer.call('test_tool_with_logging');
        return [...peer.one.told];
    }],
    ['a call taken back', async peer => {
        const stop = new AbortController();
        const ended = peer.call('test_sleep', { ms: 30_000 }, { signal: stop.signal }).then(() => 'answered', () => 'given up');
        await peer.effects.wait('sleeps', ({ tool }) => tool === 'test_sleep');
        stop.abort();
        await peer.effects.wait('has noticed', ({ cancelled }) => cancelled === 'test_sleep');
        return [await ended, await peer.call('test_simple_text')];
    }],
    ['a call that lost its patience', async peer => {
        const ended = peer.call('test_sleep', { ms: 30_000 }, { timeout: 1000 }).then(() => 'answered', () => 'given up');
        await peer.effects.wait('has noticed', ({ cancelled }) => cancelled === 'test_sleep');
        return ended;
    }],
    ['a stream that broke off', peer => peer.call('test_reconnection')],
    ['a text resource', peer => peer.read('test://static-text')],
    ['a binary resource', peer => peer.read('test://static-binary')],
    ['a resource of a template', peer => peer.read('test://template/a%20b/data')],
    ['no such resource', peer => peer.read('test://nowhere').catch(error => {
        // A legacy client may be told with its own era's code.
        const { code, message, data } = error;
        return { code: !peer.modern && code === -32002 ? -32602 : code, message: message.replace('-32002', '-32602'), data };
    })],
    ['how long a resource keeps', async peer => {
        if (!peer.modern) return 'not in this era';
        const { ttlMs, cacheScope } = await peer.read('test://static-text');
        return { ttl: ttlMs, scope: cacheScope };
    }],
    ['a prompt', peer => peer.prompt('test_simple_prompt')],
    ['a prompt with arguments', peer => peer.prompt('test_prompt_with_arguments', { arg1: 'one', arg2: 'ü "two"' })],
    ['a prompt with a resource', peer => peer.prompt('test_prompt_with_embedded_resource', { resourceUri: 'test://static-text' })],
    ['a prompt with an image', peer => peer.prompt('test_prompt_with_image')],
    ['a prompt without its arguments', peer => peer.prompt('test_prompt_with_arguments', {})],
    ['no such prompt', peer => peer.prompt('nothing'), { codeOnly: true }],
    ['completion for a prompt', ({ client, names }) => client.complete({
        ref: { type: 'ref/prompt', name: names.prompt('test_prompt_with_arguments') }, argument: { name: 'arg1', value: 'par' }
    })],
    ['completion for a template', ({ client, names }) => client.complete({
        ref: { type: 'ref/resource', uri: names.uri('test://template/{id}/data') }, argument: { name: 'id', value: 'p' }
    })],
    ['completion in context', ({ client, names }) => client.complete({
        ref: { type: 'ref/prompt', name: names.prompt('test_prompt_with_arguments') },
        argument: { name: 'arg2', value: 'par' },
        context: { arguments: { arg1: 'paris' } }
    })],
    ['completion of nothing', ({ client, names }) => client.complete({
        ref: { type: 'ref/prompt', name: names.prompt('test_prompt_with_arguments') }, argument: { name: 'arg1', value: 'zzz' }
    })]
];

/** A result schema that takes whatever comes. */
function anything() {
    return { '~standard': { version: 1, vendor: 'parity', validate: value => ({ value }) } };
}
