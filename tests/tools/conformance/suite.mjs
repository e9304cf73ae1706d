// One run of the official suite, and what it comes to. The suite calls a scenario passed
// when nothing failed, even if nothing listened; here it passes only with a success of its
// own, without failure or warning.
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { folder, run } from '../processes.mjs';

const PACKAGE = dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'));
const SUITE = join(PACKAGE, 'dist/index.js');
const LIMIT = 240_000;
const AT_ONCE = 4;

/** The scenarios of a revision on one leg, extensions left out. */
export function scenarios(leg, revision) {
    const required = parse(readFileSync(join(PACKAGE, `requirements/${revision}.yaml`), 'utf8'));
    const extra = required.not_scored.filter(entry => entry.leg === leg && entry.reason !== 'extension');
    return [...required[leg], ...extra.map(entry => entry.scenario)].filter(name => !name.startsWith('auth/'));
}

/** What the suite wrote for each scenario it ran: name to checks. */
function checksIn(directory, prefix) {
    const found = new Map();
    for (const entry of readdirSync(directory, { recursive: true })) {
        const [, name] = entry.match(/^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z[/\\]checks\.json$/) ?? [];
        if (name?.startsWith(prefix)) found.set(name.slice(prefix.length), JSON.parse(readFileSync(join(directory, entry), 'utf8')));
    }
    return found;
}

/** A scenario's verdict: `{ scenario, passed, successes, failures: [{ check, why, seen }] }`. */
function judge(scenario, checks = []) {
    const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
    const good = checks.filter(({ status }) => status === 'SUCCESS');
    const real = good.filter(({ id }) => !id.startsWith('wire-schema'));
    const failures = bad.map(({ id, status, errorMessage, description, details }) => ({
        check: id,
        why: `${status}: ${errorMessage ?? description}`,
        seen: JSON.stringify(details ?? null).slice(0, 1500)
    }));
    if (bad.length === 0 && real.length === 0) failures.push({ check: '-', why: 'nothing but noise: no check of its own succeeded', seen: '' });
    return { scenario, passed: failures.length === 0, successes: good.length, failures };
}

/** The server leg against one URL. */
export async function serverLeg(url, revision) {
    const output = folder('suite');
    const ran = await run(process.execPath, [SUITE, 'server', '--url', url, '--requirements', revision, '-o', output], { limit: LIMIT, cwd: output });
    const found = checksIn(output, 'server-');
    rmSync(output, { recursive: true, force: true });
    if (found.size === 0) throw new Error(`the suite did not run: ${ran.stdout.slice(-2000)} ${ran.stderr.slice(-2000)}`);
    return scenarios('server', revision).map(name => judge(name, found.get(name)));
}

let walled;
/** Runs a command in a network of its own where the system lets us: the suite's mocks
 *  listen on every address. */
async function aloneOnTheNet(command, args, options) {
    const wall = ['-rn', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
    walled ??= run('unshare', [...wall, 'true'], { limit: 10_000 }).then(({ code }) => code === 0);
    return await walled ? run('unshare', [...wall, command, ...args], options) : run(command, args, options);
}

/** One scenario of the client leg: the suite starts `command` for it. */
async function clientScenario(command, revision, env, scenario) {
    const output = folder('suite');
    const args = [SUITE, 'client', '--command', command, '--scenario', scenario, '--spec-version', revision, '--timeout', '60000', '-o', output];
    const ran = await aloneOnTheNet(process.execPath, args, { limit: 90_000, cwd: output, env: { ...process.env, ...env } });
    const verdict = judge(scenario, checksIn(output, '').get(scenario));
    if (verdict.passed && ran.code !== 0) {
        verdict.passed = false;
        verdict.failures.push({ check: '-', why: 'the suite is not content', seen: '' });
    }
    if (!verdict.passed) verdict.said = ran.stderr.slice(-3000);
    rmSync(output, { recursive: true, force: true });
    return verdict;
}

/** The client leg, a few scenarios at a time: each has a mock and a client of its own. */
export async function clientLeg(command, revision, env) {
    const names = scenarios('client', revision);
    const verdicts = [];
    while (names.length > 0) {
        const some = names.splice(0, AT_ONCE).map(name => clientScenario(command, revision, env, name));
        verdicts.push(...await Promise.all(some));
    }
    return verdicts;
}
