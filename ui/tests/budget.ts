// The script of the first load stays small: what index.html loads, and what
// that loads at once, zipped.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const LIMIT = 130 * 1000;
const dist = new URL('../dist/', import.meta.url);
const html = readFileSync(new URL('index.html', dist), 'utf8');
const seen = new Set<string>();

function add(name: string | undefined): void {
  if (name === undefined || seen.has(name)) {
    return;
  }
  seen.add(name);
  const text = readFileSync(new URL(`assets/${name}`, dist), 'utf8');
  for (const [, found] of text.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) {
    add(found);
  }
}

for (const [, name] of html.matchAll(/(?:src|href)="\/assets\/([\w.-]+\.js)"/g)) {
  add(name);
}
// One dictionary is loaded before anything is shown; the largest, then.
const size = (name: string) => gzipSync(readFileSync(new URL(`assets/${name}`, dist))).length;
const words = readdirSync(new URL('assets/', dist)).filter((name) => /^(en|zh-CN|zh-TW)-.*\.js$/.test(name));
add(words.sort((a, b) => size(b) - size(a))[0]);
const total = [...seen].reduce((sum, name) => sum + size(name), 0);
console.log(`first load: ${(total / 1000).toFixed(1)} kB of script, gzipped, in ${seen.size} files`);
if (total > LIMIT) {
  console.error(`that is more than ${LIMIT / 1000} kB`);
  process.exit(1);
}
