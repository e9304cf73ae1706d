// Starts what a judge needs (Portway, the upstream, a suite) and ends it again. Every
// process is ended by its own id, and none outlives the judge.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const UPSTREAM = fileURLToPath(new URL('conformance-upstream/server.mjs', import.meta.url));
/** The machine may be busy: what comes at all comes by then. */
export const PATIENCE = 60_000;

const running = new Set();
const folders = new Set();
const tail = text => text.slice(-4000);

export const pause = ms => new Promise(done => setTimeout(done, ms));

/** Waits until `probe` gives something; `what` is for the complaint. */
export async function until(what, probe, limit = PATIENCE) {
    const end = Date.now() + limit;
    for (;;) {
        const found = await probe();
        if (found) return found;
        if (Date.now() > end) throw new Error(`never: ${typeof what === 'function' ? what() : what}`);
        await pause(20);
    }
}

/** A child with its output kept: `{ pid, stdout(), stderr(), ended, stop() }`. */
export function launch(command, args, options = {}) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr']) child[stream].on('data', chunk => { said[stream] += chunk; });
    const one = {
        pid: child.pid,
        stdout: () => said.stdout,
        stderr: () => said.stderr,
        ended: new Promise(done => {
            child.on('error', error => done({ error: error.message }));
            child.on('close', (code, signal) => done({ code, signal }));
        }),
        async stop(grace = 10_000) {
            if (running.has(one)) child.kill('SIGTERM');
            const late = setTimeout(() => child.kill('SIGKILL'), grace);
            await one.ended;
            clearTimeout(late);
        }
    };
    one.ended.then(() => running.delete(one));
    running.add(one);
    return one;
}

/** Runs a command to its end, at most `limit` ms. */
export async function run(command, args, { limit = PATIENCE, ...options } = {}) {
    const one = launch(command, args, options);
    const late = setTimeout(() => one.stop(1000), limit);
    const end = await one.ended;
    clearTimeout(late);
    return { ...end, stdout: one.stdout(), stderr: one.stderr() };
}

/** Waits for a pattern in what a process says. */
async function says(one, stream, pattern, name) {
    let over;
    one.ended.then(end => { over = end; });
    const complaint = () => `${name} says ${pattern}; ${JSON.stringify(over ?? 'it runs')}, stderr: ${tail(one.stderr())}`;
    return until(complaint, () => {
        const found = one[stream]().match(pattern);
        if (!found && over) throw new Error(complaint());
        return found;
    });
}

export function folder(name) {
    const path = mkdtempSync(join(tmpdir(), `portway-${name}-`));
    folders.add(path);
    return path;
}

/** The upstream over HTTP: `{ url, sse, pid, stderr(), stop() }`. */
export async function startUpstream({ era = 'both', args = [] } = {}) {
    const one = launch(process.execPath, [UPSTREAM, '--port', '0', '--sse', '--era', era, ...args]);
    const [, url] = await says(one, 'stderr', /upstream: (http:\S+)/, 'the upstream');
    return { ...one, url, sse: url.replace(/mcp$/, 'sse') };
}

/** The same upstream as an `.mcp.json` entry that starts it over stdio. */
export const stdioUpstream = ({ era = 'both', args = [] } = {}) => ({
    type: 'stdio', command: process.execPath, args: [UPSTREAM, '--stdio', '--era', era, ...args]
});

/** Portway with these servers, once they have settled: `{ url, pid, stderr(), stop() }`. */
export async function startPortway(binary, servers, { env = {} } = {}) {
    const project = folder('project');
    writeFileSync(join(project, '.mcp.json'), JSON.stringify({ mcpServers: servers }));
    const one = launch(resolve(binary), ['--listen', '127.0.0.1:0', '--no-auth', '--project', project], {
        cwd: project,
        env: { PATH: process.env.PATH, HOME: project, RUST_LOG: process.env.RUST_LOG ?? 'info', ...env }
    });
    const [, url] = await says(one, 'stdout', /portway listening on (\S+)/, 'Portway');
    let last;
    await until(() => `Portway is ready: ${last}; ${tail(one.stderr())}`, async () => {
        const answer = await fetch(`${url}/readyz`).catch(error => ({ status: error.message }));
        last = answer.status;
        await answer.body?.cancel();
        return answer.ok;
    });
    return { ...one, url, project };
}

/** Ends what is still running and removes the folders made here. */
export async function clean() {
    await Promise.all([...running].map(one => one.stop()));
    for (const path of folders) rmSync(path, { recursive: true, force: true });
    folders.clear();
}

for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => clean().finally(() => process.exit(130)));
}
process.on('exit', () => {
    for (const { pid } of running) {
        try {
            process.kill(pid, 'SIGKILL');
        } catch { /* gone already */ }
    }
    for (const path of folders) rmSync(path, { recursive: true, force: true });
});
