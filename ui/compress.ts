// The last step of the build: what compresses well is kept as `.br` and `.gz`,
// and its plain form is left out. The program embeds these files, and inflates
// one for the rare client that accepts neither.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const assets = new URL('dist/assets/', import.meta.url);
const best = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };

for (const name of readdirSync(assets).filter((one) => /\.(js|css|svg)$/.test(one))) {
  const file = new URL(name, assets);
  const plain = readFileSync(file);
  writeFileSync(new URL(`${name}.br`, assets), brotliCompressSync(plain, best));
  writeFileSync(new URL(`${name}.gz`, assets), gzipSync(plain, { level: constants.Z_BEST_COMPRESSION }));
  rmSync(file);
}
