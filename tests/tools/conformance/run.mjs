#!/usr/bin/env node
// The official conformance suite, directly and through Portway.
//
//   run.mjs [--portway BINARY] [CELL...]     all cells without a name; BINARY for all but direct ones
//
// Prints a table on stderr and a JSON summary on stdout; exits with 1 if a scenario fails
// that expected-failures.yaml does not list, or passes although it is listed.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { clean, startPortway, startUpstream, stdioUpstream } from '../processes.mjs';
import { clientLeg, serverLeg } from './suite.mjs';

const OLD = '2025-11-25';
const NEW = '2026-07-28';
const here = name => fileURLToPath(new URL(name, import.meta.url));

/** Name to: which suites, and what stands between them and which upstream. */
const CELLS = {
    'direct': { suites: [OLD, NEW], era: 'both' },
    'both-http': { suites: [OLD, NEW], era: 'both', through: 'http' },
    'both-stdio': { suites: [OLD, NEW], era: 'both', through: 'stdio' },
    'modern-to-legacy-http': { suites: [NEW], era: '2025', through: 'http' },
    'modern-to-legacy-stdio': { suites: [NEW], era: '2025', through: 'stdio' },
    'legacy-to-modern-http': { suites: [OLD], era: '2026', through: 'http' },
    'legacy-to-modern-stdio': { suites: [OLD], era: '2026', through: 'stdio' },
    'client-direct': { suites: [OLD, NEW], leg: 'client' },
    'client': { suites: [OLD, NEW], leg: 'client', through: 'http' }
};

const { values: options, positionals } = parseArgs({ options: { portway: { type: 'string' } }, allowPositionals: true });
const expected = parse(readFileSync(here('expected-failures.yaml'), 'utf8')) ?? [];

async function atServer({ suites, era, through }) {
    const upstream = through === 'stdio' ? undefined : await startUpstream({ era });
    const up = through === 'stdio' ? stdioUpstream({ era }) : { type: 'http', url: upstream.url };
    const portway = through && await startPortway(options.portway, { up });
    const results = [];
    for (const suite of suites) results.push([suite, await serverLeg(portway ? `${portway.url}/servers/up/mcp` : upstream.url, suite)]);
    const said = portway?.stderr();
    await portway?.stop();
    await upstream?.stop();
    return { results, said };
}

async function atClient({ suites, through }) {
    const env = through ? { PORTWAY_UNDER_TEST: resolve(options.portway) } : {};
    const results = [];
    for (const suite of suites) results.push([suite, await clientLeg(`'${process.execPath}' '${here('client.mjs')}'`, suite, env)]);
    return { results };
}

async function judge(cell) {
    const began = Date.now();
    const { results, said } = await (CELLS[cell].leg === 'client' ? atClient : atServer)(CELLS[cell]);
    const rows = results.map(([suite, verdicts]) => {
        const known = name => expected.find(entry => entry.cell === cell && entry.suite === suite && entry.scenario === name);
        return {
            cell,
            suite,
            passed: verdicts.filter(one => one.passed).length,
            of: verdicts.length,
            checks: verdicts.reduce((sum, one) => sum + one.successes, 0),
            scenarios: Object.fromEntries(verdicts.map(one => [one.scenario, one.successes])),
            failed: verdicts.filter(one => !one.passed).map(one => ({ ...one, expected: known(one.scenario)?.reason })),
            surprises: verdicts.filter(one => one.passed !== !known(one.scenario)).map(one => one.scenario)
        };
    });
    return { rows, seconds: (Date.now() - began) / 1000, said };
}

function show(row, seconds, said) {
    const { cell, suite, passed, of, checks, failed } = row;
    console.error(`${cell.padEnd(24)} ${suite}  ${String(passed).padStart(2)}/${of}  ${String(checks).padStart(3)} checks  ${seconds.toFixed(1)} s`);
    for (const { scenario, failures, said: why, expected } of failed) {
        console.error(`  ${scenario}${expected ? ` (expected: ${expected})` : ''}`);
        for (const failure of failures) console.error(`    ${failure.check}: ${failure.why}\n      ${failure.seen}`);
        if (why) console.error(why.replace(/^/gm, '      | '));
    }
    if (failed.length > 0 && said) console.error(said.split('\n').slice(-40).join('\n').replace(/^/gm, '      > '));
}

const cells = positionals.length > 0 ? positionals : Object.keys(CELLS);
const unknown = cells.find(cell => !CELLS[cell] || (CELLS[cell].through && !options.portway));
if (unknown) {
    console.error(`run.mjs: ${CELLS[unknown] ? `${unknown} needs --portway` : `no cell ${unknown}; there are ${Object.keys(CELLS).join(', ')}`}`);
    process.exit(2);
}
const summary = [];
try {
    for (const cell of cells) {
        const { rows, seconds, said } = await judge(cell);
        for (const row of rows) show(row, seconds, said);
        summary.push(...rows);
    }
} finally {
    await clean();
}
console.log(JSON.stringify(summary));
process.exitCode = summary.some(row => row.surprises.length > 0) ? 1 : 0;
