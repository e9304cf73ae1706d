// Trying a tool: values from a schema and back, URI templates.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Schema } from '../../src/api/types';
import en from '../../src/i18n/en';
import { BadText } from '../../src/store/bad-text';
import { promptSubject, resourceSubject } from '../../src/try/subject';
import { expand, schemaOf } from '../../src/try/template';
import { check, initial, isValues, kindOf, optionsOf, toText } from '../../src/try/values';

const t = en;

test('h5 a schema decides which control a field has', () => {
  const cases: [schema: Schema, kind: string][] = [
    [{ type: 'string' }, 'string'],
    [{ type: ['null', 'integer'] }, 'number'],
    [{ enum: ['a', 1] }, 'choice'],
    [{ oneOf: [{ const: 'a', title: 'A' }] }, 'choice'],
    [{ type: 'array', items: { enum: ['a'] } }, 'choices'],
    [{ type: 'array', items: { type: 'string' } }, 'list'],
    [{ type: 'array', items: { type: 'object' } }, 'json'],
    [{ type: 'object', properties: { a: {} } }, 'object'],
    [{ type: 'object' }, 'json'],
    [{}, 'json'],
  ];
  for (const [schema, kind] of cases) {
    assert.equal(kindOf(schema), kind, JSON.stringify(schema));
  }
  assert.deepEqual(optionsOf({ enum: ['a', 'b'], enumNames: ['A'] }), [
    { value: 'a', label: 'A' },
    { value: 'b', label: 'b' },
  ]);
});

test('h5 a form begins with defaults, and with nothing where nothing is a value', () => {
  const schema = {
    required: ['flag', 'list', 'text', 'inner'],
    properties: {
      flag: { type: 'boolean' },
      list: { type: 'array', items: { type: 'string' } },
      text: { type: 'string' },
      inner: { type: 'object', required: ['x'], properties: { x: { type: 'boolean' } } },
      other: { type: 'number', default: 3 },
      not: { type: 'boolean' },
    },
  };
  assert.deepEqual(initial(schema), { flag: false, list: [], inner: { x: false }, other: 3 });
  assert.deepEqual(initial(undefined), {});
});

test('h5 what is missing or no value is named by its path', () => {
  const schema = {
    required: ['text', 'inner'],
    properties: {
      text: { type: 'string' },
      count: { type: 'integer' },
      numbers: { type: 'array', items: { type: 'number' } },
      inner: { type: 'object', required: ['x'], properties: { x: { type: 'string' } } },
      raw: {},
    },
  };
  const values = { count: 1.5, numbers: [1, new BadText('x')], raw: new BadText('{') };
  assert.deepEqual(check(schema, values, t), {
    text: t.tryIt.needed,
    count: t.tryIt.notInteger,
    numbers: t.tryIt.notNumber,
    'inner.x': t.tryIt.needed,
    raw: t.tryIt.badJson,
  });
  assert.deepEqual(check(schema, { text: '', inner: { x: '' } }, t), {});
});

test('h5 what is no value is left out of the JSON', () => {
  assert.equal(toText({ a: 1, b: new BadText('x') }), '{\n  "a": 1\n}');
  assert.deepEqual([{}, [], null, new BadText('x'), 'x'].map(isValues), [true, false, false, false, false]);
});

test('h9 a URI template is filled in as RFC 6570 says', () => {
  const values = {
    var: 'value',
    hello: 'Hello World!',
    path: '/foo/bar',
    empty: '',
    list: ['red', 'green'],
    x: '1024',
  };
  for (const [template, uri] of [
    ['{var}', 'value'],
    ['{hello}', 'Hello%20World%21'],
    ['{+path}/here', '/foo/bar/here'],
    ['{#hello}', '#Hello%20World!'],
    ['{.list*}', '.red.green'],
    ['{/list}', '/red,green'],
    ['{/var:1,var}', '/v/value'],
    ['{;x,empty}', ';x=1024;empty'],
    ['{?x,empty,none}', '?x=1024&empty='],
    ['{?list*}', '?list=red&list=green'],
    ['{&x}', '&x=1024'],
    ['a{none}b', 'ab'],
  ] as const) {
    assert.equal(expand(template, values), uri, template);
  }
  assert.deepEqual(schemaOf('x://{a}/{list*}{?q}'), {
    properties: { a: { type: 'string' }, list: { type: 'array', items: { type: 'string' } }, q: { type: 'string' } },
    required: ['a', 'list'],
  });
  assert.equal(schemaOf('x://plain'), undefined);
});

test('h9 tools, resources and prompts become requests', () => {
  assert.deepEqual(resourceSubject('s', { uri: 'x://1' }).request({}), {
    method: 'resources/read',
    params: { uri: 'x://1' },
  });
  assert.deepEqual(resourceSubject('s', { uriTemplate: 'x://{id}' }).request({ id: 'a b' }).params, {
    uri: 'x://a%20b',
  });
  const prompt = promptSubject('s', { name: 'p', arguments: [{ name: 'a', required: true }, { name: 'b' }] });
  assert.deepEqual(prompt.schema, { properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['a'] });
  assert.deepEqual(prompt.request({ a: '1' }), { method: 'prompts/get', params: { name: 'p', arguments: { a: '1' } } });
  assert.equal(promptSubject('s', { name: 'p' }).schema, undefined);
});
