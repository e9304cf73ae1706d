import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'tests/shots'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked],
    rules: {
      'max-lines': ['error', 300],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    languageOptions: { parserOptions: { project: './tsconfig.json' } },
    plugins: { 'react-hooks': hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      // The React compiler, which it is for, is not used.
      'react-hooks/incompatible-library': 'off',
    },
  },
  {
    files: ['tests/**/*.ts', '*.ts'],
    languageOptions: { parserOptions: { project: './tests/tsconfig.json' } },
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', name: 'test', package: 'node:test' }] },
      ],
    },
  },
  {
    files: ['tests/typescript.mjs'],
    languageOptions: { globals: { Buffer: 'readonly', process: 'readonly', URL: 'readonly' } },
  },
  // Generated types, and dictionaries with one line per text.
  { files: ['src/api/generated.ts', 'src/i18n/*.ts'], rules: { 'max-lines': 'off' } },
);
