// How an endpoint names things. The endpoint of one server names them as the server does;
// on the shared one, tools and prompts have the server's name in front, and so have URIs,
// in a form that is learnt from the list of resources.

/** `/servers/{server}/mcp`, and the server itself. */
export const own = {
    async learn() {},
    tool: name => name,
    prompt: name => name,
    uri: uri => uri,
    plain: value => value
};

/** `/mcp`, with the server called `server`. */
export class Shared {
    #name;
    #uri = '';

    constructor(server) {
        this.#name = `mcp_${server}_`;
    }

    async learn(client) {
        const { resources } = await client.listResources(undefined, { cacheMode: 'bypass' });
        const known = resources.find(({ uri }) => uri.endsWith('test://static-text'));
        if (!known) throw new Error(`no URI on the shared endpoint ends as the server's own does: ${JSON.stringify(resources)}`);
        this.#uri = known.uri.slice(0, -'test://static-text'.length);
    }

    tool(name) {
        return this.#name + name;
    }

    prompt(name) {
        return this.#name + name;
    }

    uri(uri) {
        return this.#uri + uri;
    }

    /** An answer with the server's own names in it. */
    plain(value) {
        if (Array.isArray(value)) return value.map(one => this.plain(one));
        if (value !== null && typeof value === 'object') {
            return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.plain(one)]));
        }
        if (typeof value !== 'string') return value;
        const prefix = [this.#name, this.#uri].find(prefix => prefix && value.startsWith(prefix));
        return prefix ? value.slice(prefix.length) : value;
    }
}
