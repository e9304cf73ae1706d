import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'tests/shots'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}', 'vite.config.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json' } },
    plugins: { 'react-hooks': hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      // The React compiler, which it is for, is not used.
      'react-hooks/incompatible-library': 'off',
      'max-lines': ['error', 300],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
    },
  },
  // Generated types, and dictionaries with one line per text.
  { files: ['src/api/generated.ts', 'src/i18n/*.ts'], rules: { 'max-lines': 'off' } },
  {
    files: ['tests/**/*.mjs', '*.mjs'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'process',
          'console',
          'fetch',
          'URL',
          'setTimeout',
          'clearTimeout',
          'setInterval',
          'clearInterval',
          'Buffer',
          'document',
          'window',
          'performance',
          'requestAnimationFrame',
          'getComputedStyle',
          'localStorage',
          'navigator',
          'PerformanceObserver',
          'MutationObserver',
          'AbortSignal',
          'TextDecoder',
          'CSS',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
