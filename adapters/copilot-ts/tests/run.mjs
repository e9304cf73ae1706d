// Runs the tests: `node tests/run.mjs [PORTWAY FIXTURE]`. Without the two programs only those that
// need none.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';

const [binary, fixture] = process.argv.slice(2).map((path) => resolve(path));
const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.mjs'));
const args = ['--test', '--test-reporter=spec', ...files.map((name) => resolve(import.meta.dirname, name))];
const env = { ...process.env, ...(binary && { PORTWAY_BINARY: binary }), ...(fixture && { PORTWAY_FIXTURE: fixture }) };
process.exit(spawnSync(process.execPath, args, { stdio: 'inherit', env }).status ?? 1);
