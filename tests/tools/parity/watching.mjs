// Questions about what happens later: changed lists, changed resources.
import { pause, until } from '../processes.mjs';

const WATCHED = 'test://watched-resource';
const fresh = { cacheMode: 'bypass' };

/** Watches with `filter` while `use` runs; each era in its own way. */
async function listening(peer, filter, use) {
    peer.one.told.length = 0;
    if (!peer.modern) return use();
    const subscription = await peer.client.listen(filter);
    try {
        return await use(subscription.honoredFilter);
    } finally {
        await subscription.close();
    }
}

/** Makes a list change until that is told: a legacy client's stream may open late. */
async function changed(peer, tool, kind) {
    const told = () => peer.one.told.some(({ method }) => method === `notifications/${kind}/list_changed`);
    let result;
    const end = Date.now() + 20_000;
    do {
        result = await peer.call(tool);
        for (let wait = 0; wait < 100 && !told(); wait++) await pause(20);
    } while (!told() && Date.now() < end);
    if (!told()) throw new Error(`never told that ${kind} changed`);
    return result.content[0].text.endsWith(' on');
}

/** Changes a list twice and compares what it then says and does. */
async function comesAndGoes(peer, { filter, tool, kind, has, use }) {
    return listening(peer, { [filter]: true }, async honored => {
        const seen = [];
        for (let turn = 0; turn < 2; turn++) {
            peer.one.told.length = 0;
            const there = await changed(peer, tool, kind);
            await until(`the list of ${kind} follows`, async () => (await has()) === there, 20_000);
            seen.push({ [there ? 'on' : 'off']: there ? await use() : await use().catch(({ code }) => ({ code })) });
        }
        return { honored, seen: seen.sort((a, b) => (Object.keys(a)[0] < Object.keys(b)[0] ? -1 : 1)) };
    });
}

/** Two clients watch one resource from the same moment on; what each is told when it
 *  changes. `before` may have the first one stop. */
async function watchedByTwo(peer, before) {
    const uri = peer.names.uri(WATCHED);
    const watch = async one => {
        if (!peer.modern) {
            await one.client.subscribeResource({ uri });
            return () => one.client.unsubscribeResource({ uri });
        }
        const subscription = await one.client.listen({ resourceSubscriptions: [uri] });
        return () => subscription.close();
    };
    return peer.with({}, first => peer.with({}, async second => {
        const [stopFirst, stopSecond] = await Promise.all([watch(first), watch(second)]);
        await before(stopFirst);
        await peer.call('test_touch_watched_resource');
        await peer.toldOf('resources/updated', 1, second);
        await pause(300);
        await stopSecond();
        return [first, second].map(({ told }) => told.filter(({ method }) => method === 'notifications/resources/updated'));
    }));
}

export const WATCHING = [
    ['a tool that comes and goes', peer => comesAndGoes(peer, {
        filter: 'toolsListChanged',
        tool: 'test_trigger_tool_change',
        kind: 'tools',
        has: async () => (await peer.client.listTools(undefined, fresh)).tools.some(({ name }) => name === peer.names.tool('test_extra_tool')),
        use: () => peer.call('test_extra_tool')
    }), { loose: true }],
    ['a prompt that comes and goes', peer => comesAndGoes(peer, {
        filter: 'promptsListChanged',
        tool: 'test_trigger_prompt_change',
        kind: 'prompts',
        has: async () => (await peer.client.listPrompts(undefined, fresh)).prompts.some(({ name }) => name === peer.names.prompt('test_extra_prompt')),
        use: () => peer.prompt('test_extra_prompt')
    }), { loose: true }],
    ['a resource that changes', async peer => {
        const uri = peer.names.uri(WATCHED);
        return listening(peer, { resourceSubscriptions: [uri] }, async honored => {
            if (!peer.modern) await peer.client.subscribeResource({ uri });
            const before = await peer.read(WATCHED);
            await peer.call('test_touch_watched_resource');
            const told = await peer.toldOf('resources/updated', 1);
            const after = await peer.read(WATCHED);
            if (!peer.modern) await peer.client.unsubscribeResource({ uri });
            return { honored, before, told, after };
        });
    }],
    ['a resource watched no longer', async peer => {
        const uri = peer.names.uri(WATCHED);
        await listening(peer, { resourceSubscriptions: [uri] }, async () => {
            if (!peer.modern) await peer.client.subscribeResource({ uri });
            await peer.call('test_touch_watched_resource');
            await peer.toldOf('resources/updated', 1);
            if (!peer.modern) await peer.client.unsubscribeResource({ uri });
        });
        peer.one.told.length = 0;
        await peer.call('test_touch_watched_resource');
        await pause(500);
        return peer.one.told.filter(({ method }) => method === 'notifications/resources/updated');
    }],
    ['nothing unasked on a stream', async peer => {
        if (!peer.modern) return 'a legacy server may';
        peer.one.told.length = 0;
        await peer.client.listen({ resourceSubscriptions: [peer.names.uri('test://static-text')] }).then(async subscription => {
            await peer.call('test_touch_watched_resource');
            await pause(300);
            await subscription.close();
        });
        return [...peer.one.told];
    }],
    ['two that watch', async peer => watchedByTwo(peer, async () => {})],
    ['one that stops beside another', async peer => watchedByTwo(peer, stopFirst => stopFirst())]
];
