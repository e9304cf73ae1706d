// A server's form: splitting a command line, drafts, pasted definitions.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  definition,
  type Draft,
  draftOf,
  emptyDraft,
  missingFields,
  type Pair,
  registration,
  spread,
} from '../../src/screens/servers/draft';
import en from '../../src/i18n/en';
import type { ServerConfig } from '../../src/api/types';
import { pasted } from '../../src/screens/servers/pasted';
import { fileName, targetOf } from '../../src/screens/servers/status';
import { commandLine, quoted, words } from '../../src/screens/servers/words';

const args = (draft: Draft | undefined) => draft?.args.map(({ value }) => value);
const pairs = (list: Pair[] | undefined) => Object.fromEntries((list ?? []).map(({ name, value }) => [name, value]));

test('h4 a line is split as a shell would', () => {
  const cases: [line: string, words: string[] | undefined][] = [
    ['', []],
    ['  a\tb  ', ['a', 'b']],
    [`'a b' "c d"`, ['a b', 'c d']],
    [`--x='y z'w`, ['--x=y zw']],
    [`'' ""`, ['', '']],
    [String.raw`a\ b \"c\"`, ['a b', '"c"']],
    [String.raw`"\$x \n \\"`, [String.raw`$x \n \ `.trim()]],
    [String.raw`'\n'`, [String.raw`\n`]],
    ['a \\\n b', ['a', 'b']],
    ['a | b', undefined],
    ['a && b', undefined],
    [`'a | b'`, ['a | b']],
    [`'open`, undefined],
    ['"open', undefined],
  ];
  for (const [line, expected] of cases) {
    assert.deepEqual(words(line), expected, line);
  }
});

test('h4 a quoted word is split into itself', () => {
  for (const word of ['plain', '', 'a b', `it's`, '"', '$HOME', 'a\nb', '\\', '*', '世界']) {
    assert.deepEqual(words(quoted(word)), [word], word);
  }
});

test('h4 a line has variables, a command and arguments', () => {
  assert.deepEqual(commandLine(`A=1 B='x y' npx -y C=2`), {
    env: [
      ['A', '1'],
      ['B', 'x y'],
    ],
    command: 'npx',
    args: ['-y', 'C=2'],
  });
  assert.equal(commandLine('A=1'), undefined);
  assert.equal(commandLine(''), undefined);
});

test('h4 a whole line in the command field is spread over the form', () => {
  const draft = draftOf('x', { command: 'A=1 npx -y', args: ['last'], env: { B: '2' } });
  const { command, args: list, env } = spread(draft);
  assert.deepEqual([command, list.map(({ value }) => value), pairs(env)], ['npx', ['-y', 'last'], { B: '2', A: '1' }]);
  const one = draftOf('x', { command: 'npx' });
  assert.equal(spread(one), one);
});

test('h4 a draft becomes the definition it was made from', () => {
  const config: ServerConfig = {
    transport: 'stdio',
    command: 'x',
    args: ['', 'a b'],
    env: { A: '1\n2' },
    cwd: '/tmp',
    timeout: 5,
    era: 'legacy',
    isolation: 'session',
    enabled: false,
    containment: 'group',
  };
  assert.deepEqual(definition(draftOf('x', config)), config);
  const far: ServerConfig = {
    transport: 'sse',
    url: 'http://x/',
    headers: { A: 'b' },
    timeout: 5,
    era: 'auto',
    isolation: 'auto',
    enabled: true,
  };
  assert.deepEqual(definition(draftOf('x', far)), far);
});

test('h4 rows that nobody touched are not sent', () => {
  const draft = { ...emptyDraft(), name: ' x ', command: ' y ' };
  draft.args = [
    { id: 1, value: '', fresh: true },
    { id: 2, value: '', fresh: false },
  ];
  draft.env = [
    { id: 3, name: ' ', value: '' },
    { id: 4, name: ' A ', value: ' b ' },
  ];
  const sent = registration(draft);
  assert.deepEqual(
    [sent.name, sent.command, sent.args, sent.env, sent.autoStart],
    ['x', 'y', [''], { A: ' b ' }, true],
  );
});

test('h4 pasted definitions of any client are read', () => {
  const { drafts, bad } = pasted(`// all
    { "servers": { "a": { "command": ["npx", "-y"], "args": ["x",], "environment": { "P": 1 } },
      "b": { "httpUrl": "http://x/", "headers": { "H": "v" }, "disabled": true }, "c": { "url": "http://y/", "type": "sse" } } }`);
  assert.deepEqual(bad, []);
  const [a, b, c] = drafts;
  assert.deepEqual([a?.name, a?.command, args(a), pairs(a?.env)], ['a', 'npx', ['-y', 'x'], { P: '1' }]);
  assert.deepEqual(
    [b?.name, b?.transport, b?.url, pairs(b?.headers), b?.enabled],
    ['b', 'http', 'http://x/', { H: 'v' }, false],
  );
  assert.deepEqual([c?.name, c?.transport], ['c', 'sse']);
});

test('h4 pasted arguments and names come out whole', () => {
  const one = (text: string) => pasted(text).drafts[0];
  assert.deepEqual(args(one(`{ "command": "x", "args": "-y 'a b'" }`)), ['-y', 'a b']);
  assert.deepEqual(args(one('{ "command": "x", "args": ["-p", 80, true] }')), ['-p', '80', 'true']);
  assert.equal(one('{ "name": "mine", "command": "x" }')?.name, 'mine');
  assert.equal(one('"key": { "name": "mine", "command": "x" },')?.name, 'key');
  assert.deepEqual(
    pasted('[{ "name": "a", "command": "x" }, { "name": "b", "url": "http://x" }]').drafts.map(({ name }) => name),
    ['a', 'b'],
  );
  assert.deepEqual(pairs(one('{ "command": "x", "env": null }')?.env), {});
  assert.deepEqual(pasted('nothing of the kind'), { drafts: [], bad: [] });
});

test('h4 pasted fields that cannot be taken are named', () => {
  const bad = (text: string) => pasted(text).bad;
  assert.deepEqual(
    bad(`{ "a": { "command": "x", "args": "'open" }, "b": { "command": {}, "env": [1], "timeout": "soon" } }`),
    ['a.args', 'b.command', 'b.timeout', 'b.env'],
  );
  assert.deepEqual(bad('{ "command": "x", "args": [null], "enabled": "yes" }'), ['args', 'enabled']);
});

test('h4 empty fields and rows that would be lost are named', () => {
  const problems = (changes: Partial<Draft>) =>
    missingFields({ ...emptyDraft(), name: 'x', command: 'y', ...changes }, en).map(({ field }) => field);
  const [unnamed, twice] = [
    [{ id: 1, name: ' ', value: 'v' }],
    [
      { id: 1, name: 'A', value: '' },
      { id: 2, name: ' A ', value: '' },
    ],
  ];
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ name: ' ', command: '' }), ['name', 'command']);
  assert.deepEqual(problems({ transport: 'http', command: '' }), ['url']);
  assert.deepEqual(problems({ env: unnamed }), ['env']);
  assert.deepEqual(problems({ env: twice, headers: unnamed }), ['env']);
  assert.deepEqual(problems({ transport: 'sse', url: 'http://x/', headers: twice, env: unnamed }), ['headers']);
});

test('h2 a server is shown by its URL or its command line', () => {
  assert.equal(targetOf({ url: 'http://x/' }), 'http://x/');
  assert.equal(targetOf({ command: 'npx', args: ['-y', 'a b', ''] }), "npx -y 'a b' ''");
  assert.deepEqual(['/home/me/.mcp.json', 'x'].map(fileName), ['.mcp.json', 'x']);
});
