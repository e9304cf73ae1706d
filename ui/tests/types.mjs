// The shapes of the API as TypeScript, from its own description:
// `node tests/types.mjs BINARY` writes `src/api/generated.ts`.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startPortway } from './portway.mjs';

const FILE = new URL('../src/api/generated.ts', import.meta.url);
const PLAIN = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' };

export function typesOf(document) {
  const shapes = Object.entries(document.components.schemas).sort(([a], [b]) => a.localeCompare(b));
  const lines = shapes.map(([name, schema]) => `export type ${name} = ${spell(schema, '')};\n`);
  return `// Made by \`node tests/types.mjs\` from /api/openapi.json; not to be edited.\n\n${lines.join('\n')}`;
}

function spell(schema, indent) {
  if (schema === true || schema === undefined) {
    return 'unknown';
  }
  if (schema.$ref) {
    return schema.$ref.split('/').at(-1);
  }
  if (schema.const !== undefined || schema.enum) {
    return (schema.enum ?? [schema.const]).map((value) => JSON.stringify(value)).join(' | ');
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && !schema.properties) {
    return union(choices.map((choice) => spell(choice, indent)));
  }
  const kinds = [schema.type ?? []].flat();
  return union(kinds.map((kind) => PLAIN[kind] ?? compound(kind, schema, indent)));
}

function union(parts) {
  return parts.length === 0 || parts.includes('unknown') ? 'unknown' : [...new Set(parts)].join(' | ');
}

function compound(kind, schema, indent) {
  if (kind === 'array') {
    return `(${spell(schema.items, indent)})[]`;
  }
  if (!schema.properties) {
    const inner =
      typeof schema.additionalProperties === 'object' ? spell(schema.additionalProperties, indent) : 'unknown';
    // Not a `Record`: that could not name itself.
    return `{ [name: string]: ${inner} }`;
  }
  const fields = Object.entries(schema.properties).map(([name, property]) => {
    const mark = schema.required?.includes(name) ? '' : '?';
    return `${indent}  ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${mark}: ${spell(property, `${indent}  `)};\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const portway = await startPortway(process.argv[2], {});
  writeFileSync(FILE, typesOf(await portway.api('GET', '/api/openapi.json')));
  await portway.stop();
}
