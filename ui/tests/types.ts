// The types of the API from its own description: `npm run types -- BINARY` writes `src/api/generated.ts`.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startPortway } from './portway.ts';

const FILE = new URL('../src/api/generated.ts', import.meta.url);
const PLAIN: Record<string, string> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
};

/** JSON Schema, as far as OpenAPI documents of Portway use it. */
interface ApiSchema {
  $ref?: string;
  const?: unknown;
  enum?: unknown[];
  oneOf?: ApiSchema[];
  anyOf?: ApiSchema[];
  type?: string | string[];
  items?: ApiSchema | true;
  properties?: Record<string, ApiSchema | true>;
  required?: string[];
  additionalProperties?: ApiSchema | boolean;
}

export interface ApiDocument {
  components: { schemas: Record<string, ApiSchema> };
}

export function typesOf(document: ApiDocument): string {
  const schemas = Object.entries(document.components.schemas).sort(([a], [b]) => a.localeCompare(b));
  const lines = schemas.map(([name, schema]) => `export type ${name} = ${typeOf(schema, '')};\n`);
  return `// Generated from /api/openapi.json by \`npm run types\`. Do not edit.\n\n${lines.join('\n')}`;
}

function typeOf(schema: ApiSchema | true | undefined, indent: string): string {
  if (schema === true || schema === undefined) {
    return 'unknown';
  }
  if (schema.$ref) {
    return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  }
  if (schema.const !== undefined || schema.enum) {
    return (schema.enum ?? [schema.const]).map((value) => JSON.stringify(value)).join(' | ');
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && !schema.properties) {
    return union(choices.map((choice) => typeOf(choice, indent)));
  }
  const kinds = [schema.type ?? []].flat();
  return union(kinds.map((kind) => PLAIN[kind] ?? compound(kind, schema, indent)));
}

function union(parts: string[]): string {
  return parts.length === 0 || parts.includes('unknown') ? 'unknown' : [...new Set(parts)].join(' | ');
}

function compound(kind: string, schema: ApiSchema, indent: string): string {
  if (kind === 'array') {
    return `(${typeOf(schema.items, indent)})[]`;
  }
  if (!schema.properties) {
    const { additionalProperties } = schema;
    const inner = typeof additionalProperties === 'object' ? typeOf(additionalProperties, indent) : 'unknown';
    // Not a `Record`: that could not name itself.
    return `{ [name: string]: ${inner} }`;
  }
  const fields = Object.entries(schema.properties).map(([name, property]) => {
    const mark = schema.required?.includes(name) ? '' : '?';
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    return `${indent}  ${key}${mark}: ${typeOf(property, `${indent}  `)};\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

const [, script, binary] = process.argv;
if (script === fileURLToPath(import.meta.url) && binary) {
  const portway = await startPortway(binary, {});
  writeFileSync(FILE, typesOf(await portway.api<ApiDocument>('GET', '/api/openapi.json')));
  await portway.stop();
}
