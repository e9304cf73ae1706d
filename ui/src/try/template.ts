// URI templates (RFC 6570), as far as a form fills them in: a value is a text,
// or a list of texts where the template repeats the variable.

import type { Schema } from '../api/types';
import type { Values } from './values';

interface Variable {
  name: string;
  /** `{name*}`: one part for each item. */
  repeated: boolean;
  /** `{name:3}`: so many characters of it. */
  most: number | undefined;
}

interface Operator {
  first: string;
  between: string;
  /** `name=value` instead of the value; what stands after the name of an empty one. */
  named?: { empty: string };
  /** Reserved characters stay as they are. */
  reserved?: boolean;
  /** The URI makes sense without its variables. */
  optional?: boolean;
}

const SIMPLE: Operator = { first: '', between: ',' };
const OPERATORS: Record<string, Operator> = {
  '+': { first: '', between: ',', reserved: true },
  '#': { first: '#', between: ',', reserved: true, optional: true },
  '.': { first: '.', between: '.' },
  '/': { first: '/', between: '/' },
  ';': { first: ';', between: ';', named: { empty: '' }, optional: true },
  '?': { first: '?', between: '&', named: { empty: '=' }, optional: true },
  '&': { first: '&', between: '&', named: { empty: '=' }, optional: true },
};
const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

function variablesOf(list: string): Variable[] {
  return list.split(',').map((text) => {
    const [, name = text, mark = ''] = /^(.*?)(\*|:\d+)?$/.exec(text.trim()) ?? [];
    return { name, repeated: mark === '*', most: mark.startsWith(':') ? Number(mark.slice(1)) : undefined };
  });
}

/** The form that fills a template in; none where it has no variables. */
export function schemaOf(template: string): Schema | undefined {
  const properties: Record<string, Schema> = {};
  const required = new Set<string>();
  for (const [, sign = '', list = ''] of template.matchAll(EXPRESSION)) {
    for (const { name, repeated } of variablesOf(list)) {
      properties[name] = repeated ? { type: 'array', items: { type: 'string' } } : { type: 'string' };
      if (!OPERATORS[sign]?.optional) {
        required.add(name);
      }
    }
  }
  return Object.keys(properties).length === 0 ? undefined : { properties, required: [...required] };
}

export function expand(template: string, values: Values): string {
  return template.replaceAll(EXPRESSION, (_, sign: string, list: string) => {
    const operator = OPERATORS[sign] ?? SIMPLE;
    const parts = variablesOf(list).flatMap((variable) => partsOf(variable, values[variable.name], operator));
    return parts.length === 0 ? '' : `${operator.first}${parts.join(operator.between)}`;
  });
}

function partsOf({ name, repeated, most }: Variable, value: unknown, { named, reserved }: Operator): string[] {
  const items = (Array.isArray(value) ? value : value === undefined ? [] : [value]).map((item) => {
    const text = String(item);
    return encoded(most === undefined ? text : Array.from(text).slice(0, most).join(''), reserved ?? false);
  });
  const texts = repeated || items.length === 0 ? items : [items.join(',')];
  return texts.map((text) => (named ? `${name}${text === '' ? named.empty : `=${text}`}` : text));
}

/** Text that no URI can hold, half of a pair of surrogates, is replaced. */
function encoded(text: string, reserved: boolean): string {
  const whole = text.toWellFormed();
  if (reserved) {
    return encodeURI(whole)
      .replaceAll(/%25([0-9a-f]{2})/gi, '%$1')
      .replaceAll('%5B', '[')
      .replaceAll('%5D', ']');
  }
  return encodeURIComponent(whole).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
