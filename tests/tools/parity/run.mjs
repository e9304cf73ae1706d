#!/usr/bin/env node
// The same questions asked of a server directly and through Portway: the answers, what was
// asked back, and what ran at the server must be the same.
//
//   run.mjs [--portway BINARY] [--only REGEX] [--show] [CELL...]
//
// A cell is CLIENT-UPSTREAM-TRANSPORT[-shared], such as modern-2025-stdio; `direct-modern`
// and `direct-legacy` compare the server with itself. JSON summary on stdout.
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { join } from 'node:path';
import { clean, folder, startPortway, startUpstream, stdioUpstream } from '../processes.mjs';
import { ASKING } from './asking.mjs';
import { CALLS } from './calls.mjs';
import { LISTS } from './lists.mjs';
import { Shared, own } from './names.mjs';
import { Effects, Peer } from './peer.mjs';
import { WATCHING } from './watching.mjs';

const LIMIT = 45_000;
const AT_ONCE = 4;
const PAGE = ['--extra', '--page', '7'];
const { values: options, positionals } = parseArgs({
    options: { portway: { type: 'string' }, only: { type: 'string' }, show: { type: 'boolean' } }, allowPositionals: true
});

const brief = value => {
    const text = JSON.stringify(value) ?? 'nothing';
    return text.length > 900 ? `${text.slice(0, 900)}… (${text.length})` : text;
};

/** What is compared of an answer: all but what each hop says of itself. */
const OWN = ['io.modelcontextprotocol/serverInfo', 'ttlMs', 'cacheScope'];
function essence(value) {
    if (Array.isArray(value)) return value.map(essence);
    if (value === null || typeof value !== 'object') return value;
    const kept = Object.entries(value)
        .filter(([name, one]) => one !== undefined && !OWN.includes(name))
        .map(([name, one]) => [name, essence(one)])
        .filter(([name, one]) => !(name === '_meta' && Object.keys(one).length === 0));
    return Object.fromEntries(kept);
}

async function answer(peer, question) {
    const [, ask, more = {}] = question;
    peer.effects.take();
    const began = Date.now();
    let timer;
    const late = new Promise((_, fail) => {
        timer = setTimeout(() => fail(new Error(`no answer within ${LIMIT} ms`)), LIMIT);
    });
    let said;
    try {
        said = await Promise.race([ask(peer), late]);
    } catch (error) {
        const { code, message, data } = error;
        said = { error: more.codeOnly ? { code } : { code, message, data } };
        // Not an answer at all, and never the same as one.
        if (typeof code !== 'number') said.error.stack = error.stack;
    } finally {
        clearTimeout(timer);
    }
    const ran = peer.effects.take();
    if (options.show) console.error(`  ${Date.now() - began} ms  ${question[0]}: ${brief({ said, ran })}`);
    if (more.unordered) ran.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
    return peer.names.plain(essence({ said, ran: more.loose ? [] : ran }));
}

/** All questions to one side, one after the other. */
async function interview(peer, questions) {
    await peer.open();
    const answers = new Map();
    for (const question of questions) answers.set(question[0], await answer(peer, question));
    await peer.close();
    return answers;
}

async function directly(era) {
    const effects = join(folder('effects'), 'log');
    const upstream = await startUpstream({ args: [...PAGE, '--effects', effects] });
    return { peer: new Peer(upstream.url, era, new Effects(effects), own), stop: () => upstream.stop() };
}

async function throughPortway({ client, upstream: era, transport, shared }) {
    const effects = join(folder('effects'), 'log');
    const args = [...PAGE, '--effects', effects];
    const upstream = transport === 'stdio' ? undefined : await startUpstream({ era, args });
    const up = { stdio: () => stdioUpstream({ era, args }), http: () => ({ type: 'http', url: upstream.url }), sse: () => ({ type: 'sse', url: upstream.sse }) };
    // Lists are compared whole: nothing but the server's is in them.
    const env = { PORTWAY_SELF_CONTROL: 'off' };
    const portway = await startPortway(options.portway, { up: up[transport]() }, { env });
    const url = `${portway.url}${shared ? '/mcp' : '/servers/up/mcp'}`;
    const peer = new Peer(url, client, new Effects(effects), shared ? new Shared('up') : own);
    return { peer, log: portway.stderr, stop: () => portway.stop().then(() => upstream?.stop()) };
}

const references = new Map();
function reference(era, questions) {
    const ask = async () => {
        const { peer, stop } = await directly(era);
        const answers = await interview(peer, questions);
        await stop();
        return answers;
    };
    if (!references.has(era)) references.set(era, ask());
    return references.get(era);
}

function parse(name) {
    const [client, upstream, transport, shared] = name.split('-');
    if (client === 'direct') return { name, direct: true, client: upstream, upstream: 'both', transport: 'http' };
    return { name, client, upstream, transport, shared: shared === 'shared' };
}

async function compare(cell) {
    const began = Date.now();
    const all = [...LISTS, ...CALLS, ...ASKING, ...WATCHING].filter(([name]) => !options.only || new RegExp(options.only).test(name));
    const left = all.filter(([, , more]) => more?.unless?.(cell));
    const questions = all.filter(question => !left.includes(question));
    const through = async () => {
        const side = await (cell.direct ? directly(cell.client) : throughPortway(cell));
        return { ...side, answers: await interview(side.peer, questions) };
    };
    const [expected, { answers, log, stop }] = await Promise.all([reference(cell.client, all), through()]);
    const differ = questions
        .map(([name]) => ({ question: name, direct: expected.get(name), through: answers.get(name) }))
        .filter(({ direct, through }) => direct.said?.error?.stack || !isDeepStrictEqual(direct, through));
    const said = differ.length > 0 ? log?.() : undefined;
    await stop();
    return {
        row: { cell: cell.name, same: questions.length - differ.length, of: questions.length, left: left.map(([name]) => name), differ },
        seconds: (Date.now() - began) / 1000,
        said
    };
}

function show({ row, seconds, said }) {
    const { cell, same, of, left, differ } = row;
    console.error(`${cell.padEnd(24)} ${same}/${of} the same, ${left.length} left out  ${seconds.toFixed(1)} s`);
    for (const { question, direct, through } of differ) {
        console.error(`  ${question}\n    direct:  ${brief(direct)}\n    through: ${brief(through)}`);
    }
    if (said) console.error(said.split('\n').slice(-40).join('\n').replace(/^/gm, '      > '));
}

const CELLS = [
    'direct-legacy', 'direct-modern',
    ...['http', 'stdio'].flatMap(transport => ['legacy-2025', 'legacy-2026', 'modern-2025', 'modern-2026'].map(eras => `${eras}-${transport}`)),
    'legacy-2025-sse', 'modern-2025-sse',
    ...['legacy-2025', 'legacy-2026', 'modern-2025', 'modern-2026'].map(eras => `${eras}-http-shared`)
];
const summary = [];
try {
    // An interview is mostly waiting: cells do it side by side, a few at a time.
    const cells = (positionals.length > 0 ? positionals : CELLS).map(parse);
    while (cells.length > 0) {
        for (const outcome of await Promise.all(cells.splice(0, AT_ONCE).map(compare))) {
            show(outcome);
            summary.push(outcome.row);
        }
    }
} finally {
    await clean();
}
console.log(JSON.stringify(summary));
process.exitCode = summary.some(row => row.differ.length > 0) ? 1 : 0;
