import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// `npm run dev` beside a running Portway; the token goes in once, through the
// sign-in page.
const portway = process.env['PORTWAY_URL'] ?? 'http://127.0.0.1:7420';

export default defineConfig({
  plugins: [react(), tailwindcss()],
  build: {
    target: 'es2023',
    // The page's policy allows no `data:` sources.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      '/api': portway,
      '/healthz': portway,
    },
  },
});
