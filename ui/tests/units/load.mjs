// Modules of the console, without a browser.
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

const vite = await createServer({
  root: fileURLToPath(new URL('../../src', import.meta.url)),
  configFile: false,
  logLevel: 'error',
  appType: 'custom',
  server: { middlewareMode: true, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
});
after(() => vite.close());

/** `path`: below `src`. */
export const load = (path) => vite.ssrLoadModule(`/${path}`);
