// Lets Node run TypeScript: `node --import ./tests/typescript.mjs FILE.ts`. Types are removed by the
// compiler that Vite brings along, and nothing else is changed: a function given to `page.evaluate` runs in the
// browser as written. (tsx wraps named functions in a helper that the browser does not have.)
import { existsSync, readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { transformSync } from 'rolldown/utils';

if (isMainThread) {
  process.setSourceMapsEnabled(true);
  register(import.meta.url);
}

/** The sources of the console name a module without its extension. */
export function resolve(specifier, context, next) {
  const isBare = /^\.{1,2}\//.test(specifier) && !/\.\w+$/.test(specifier);
  const found =
    isBare && ['.ts', '.tsx', '/index.ts'].find((end) => existsSync(new URL(specifier + end, context.parentURL)));
  return next(found ? specifier + found : specifier, context);
}

export function load(url, context, next) {
  if (!/\.tsx?$/.test(url)) {
    return next(url, context);
  }
  const file = fileURLToPath(url);
  const { code, map, errors } = transformSync(file, readFileSync(file, 'utf8'), { sourcemap: true });
  if (errors.length > 0) {
    throw new Error(errors.map(({ message }) => `${file}: ${message}`).join('\n'));
  }
  const comment = Buffer.from(JSON.stringify(map)).toString('base64');
  const source = `${code}\n//# sourceMappingURL=data:application/json;base64,${comment}`;
  return { format: 'module', source, shortCircuit: true };
}
