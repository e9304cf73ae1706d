// Questions about what there is. A question is [name, ask, more?]: `ask(peer)` gives the
// answer to compare; `more.unless(cell)` leaves it out where the answers must differ, with
// the reason beside it; `more.loose` does not compare what ran at the server.
const fresh = { cacheMode: 'bypass' };
const sorted = (list, key) => [...list].sort((a, b) => (a[key] < b[key] ? -1 : 1));

/** Every page, by hand: the items, and whether any came twice. */
async function walk(list, field, key) {
    const items = [];
    let cursor;
    for (let page = 0; page < 100; page++) {
        const result = await list(cursor === undefined ? {} : { cursor });
        items.push(...result[field]);
        cursor = result.nextCursor;
        if (cursor === undefined) break;
    }
    return { items: items.map(item => item[key]).sort(), twice: items.length - new Set(items.map(item => item[key])).size };
}

/** The members by which a modern client caches; the values are the gateway's affair. */
const cacheable = ({ ttlMs, cacheScope }) => ({
    ttl: Number.isInteger(ttlMs) && ttlMs >= 0,
    scope: cacheScope === 'public' || cacheScope === 'private'
});

export const LISTS = [
    ['capabilities', async ({ client }) => client.getServerCapabilities()],
    ['instructions', async ({ client }) => client.getInstructions(), {
        unless: ({ shared }) => shared && 'many servers share the endpoint'
    }],
    ['protocol version', async ({ client }) => [client.getNegotiatedProtocolVersion(), client.getProtocolEra()]],
    ['ping', async ({ client, modern }) => (modern ? 'not in this era' : client.ping())],
    ['tools', async ({ client }) => sorted((await client.listTools(undefined, fresh)).tools, 'name'), {
        unless: ({ client, upstream }) => client === 'modern' && upstream === '2025' && 'extra_list is wrapped by a 2025 server; compared without it below'
    }],
    ['tools but the wrapped one', async ({ client, names }) =>
        sorted((await client.listTools(undefined, fresh)).tools, 'name').filter(({ name }) => name !== names.tool('extra_list'))],
    ['key order of a schema', async ({ client, names }) => {
        const { tools } = await client.listTools(undefined, fresh);
        return JSON.stringify(tools.find(({ name }) => name === names.tool('json_schema_2020_12_tool')).inputSchema);
    }],
    ['ornaments of a tool', async ({ client, names }) => {
        const { tools } = await client.listTools(undefined, fresh);
        const { title, annotations, icons, _meta } = tools.find(({ name }) => name === names.tool('extra_annotated'));
        return { title, annotations, icons, _meta };
    }],
    ['tools twice in one order', async ({ client }) => {
        const names = async () => (await client.listTools(undefined, fresh)).tools.map(({ name }) => name);
        return JSON.stringify(await names()) === JSON.stringify(await names());
    }],
    ['resources', async ({ client }) => sorted((await client.listResources(undefined, fresh)).resources, 'uri')],
    ['resource templates', async ({ client }) => (await client.listResourceTemplates(undefined, fresh)).resourceTemplates],
    ['prompts', async ({ client }) => sorted((await client.listPrompts(undefined, fresh)).prompts, 'name')],
    ['pages of tools', async ({ client }) => walk(params => client.request({ method: 'tools/list', params }), 'tools', 'name')],
    ['pages of resources', async ({ client }) => walk(params => client.request({ method: 'resources/list', params }), 'resources', 'uri')],
    ['pages of prompts', async ({ client }) => walk(params => client.request({ method: 'prompts/list', params }), 'prompts', 'name')],
    ['a cursor nobody gave out', async ({ client }) => client.request({ method: 'tools/list', params: { cursor: 'nobody' } }), { codeOnly: true }],
    ['an empty cursor', async ({ client }) => client.request({ method: 'tools/list', params: { cursor: '' } }), { codeOnly: true }],
    ['how long lists keep', async ({ client, modern }) => {
        if (!modern) return 'not in this era';
        const kept = [];
        for (const method of ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list', 'server/discover']) {
            kept.push([method, cacheable(await client.request({ method }))]);
        }
        return kept;
    }]
];
