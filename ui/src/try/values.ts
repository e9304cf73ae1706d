// Between a schema, a form and the arguments that are sent.

import type { Schema } from '../api/types';
import type { Dictionary } from '../i18n/en';
import { BadText } from '../store/bad-text';

export type Values = Record<string, unknown>;

export type Kind = 'string' | 'number' | 'boolean' | 'choice' | 'choices' | 'list' | 'object' | 'json';

export interface Option {
  value: unknown;
  label: string;
}

export function typeOf(schema: Schema): string | undefined {
  return Array.isArray(schema.type) ? schema.type.find((type) => type !== 'null') : schema.type;
}

export function optionsOf(schema: Schema): Option[] | undefined {
  if (schema.enum) {
    return schema.enum.map((value, at) => ({ value, label: schema.enumNames?.[at] ?? String(value) }));
  }
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled && titled.length > 0 && titled.every((one) => 'const' in one)) {
    return titled.map((one) => ({ value: one.const, label: one.title ?? String(one.const) }));
  }
  return undefined;
}

export function kindOf(schema: Schema): Kind {
  const type = typeOf(schema);
  if (optionsOf(schema)) {
    return 'choice';
  }
  if (type === 'string' || type === 'boolean') {
    return type;
  }
  if (type === 'number' || type === 'integer') {
    return 'number';
  }
  if (type === 'array' && schema.items) {
    if (optionsOf(schema.items)) {
      return 'choices';
    }
    return ['string', 'number', 'integer'].includes(typeOf(schema.items) ?? '') ? 'list' : 'json';
  }
  return type === 'object' && Object.keys(schema.properties ?? {}).length > 0 ? 'object' : 'json';
}

export function initial(schema: Schema | undefined): Values {
  const values: Values = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const value = property.default ?? (schema?.required?.includes(name) ? least(property) : undefined);
    if (value !== undefined) {
      values[name] = value;
    }
  }
  return values;
}

/** The value of a required field before any input: for some kinds the empty value is valid. */
function least(schema: Schema): unknown {
  switch (kindOf(schema)) {
    case 'boolean':
      return false;
    case 'list':
    case 'choices':
      return [];
    case 'object':
      return initial(schema);
    case 'json':
      return { object: {}, array: [] }[typeOf(schema) ?? ''];
    default:
      return undefined;
  }
}

/** Problems by dotted path. */
export function check(schema: Schema | undefined, values: Values, t: Dictionary, path = ''): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const value = values[name];
    const place = `${path}${name}`;
    const required = schema?.required?.includes(name) ?? false;
    if (kindOf(property) === 'object' && (required || isValues(value))) {
      // The problems are those of its own fields.
      Object.assign(problems, check(property, isValues(value) ? value : {}, t, `${place}.`));
      continue;
    }
    const problem = checkOne(property, value, required, t);
    if (problem) {
      problems[place] = problem;
    }
  }
  return problems;
}

function checkOne(schema: Schema, value: unknown, required: boolean, t: Dictionary): string | undefined {
  if (value instanceof BadText) {
    return kindOf(schema) === 'number' ? t.tryIt.notNumber : t.tryIt.badJson;
  }
  if (value === undefined) {
    return required ? t.tryIt.needed : undefined;
  }
  if (typeOf(schema) === 'integer' && typeof value === 'number' && !Number.isInteger(value)) {
    return t.tryIt.notInteger;
  }
  if (Array.isArray(value) && value.some((item) => item instanceof BadText)) {
    return t.tryIt.notNumber;
  }
  return undefined;
}

export function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof BadText);
}

/** JSON for the editor, without text that is not a value yet. */
export function toText(values: Values): string {
  return JSON.stringify(values, (_, value: unknown) => (value instanceof BadText ? undefined : value), 2);
}
