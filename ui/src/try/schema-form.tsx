import type { Schema } from '../api/types';
import { Field } from '../parts/field';
import { Control } from './control';
import { isValues, kindOf, type Values } from './values';

interface Props {
  schema: Schema | undefined;
  values: Values;
  onChange: (values: Values) => void;
  problems: Record<string, string>;
  path?: string;
}

/** A form made from a schema. Required fields come first, as they stand otherwise. */
export function SchemaForm({ schema, values, onChange, problems, path = '' }: Props) {
  const required = (name: string) => schema?.required?.includes(name) ?? false;
  const properties = Object.entries(schema?.properties ?? {}).sort(
    ([a], [b]) => Number(required(b)) - Number(required(a)),
  );
  const set = (name: string, value: unknown) => {
    onChange(Object.fromEntries(Object.entries({ ...values, [name]: value }).filter(([, one]) => one !== undefined)));
  };
  return (
    <div className="space-y-3.5">
      {properties.map(([name, property]) => {
        const value = values[name];
        const place = `${path}${name}`;
        if (kindOf(property) === 'object') {
          return (
            <fieldset key={name} className="rounded-lg border border-line p-3">
              <legend className="px-1 text-sm font-medium">{property.title ?? name}</legend>
              <SchemaForm
                schema={property}
                values={isValues(value) ? value : {}}
                onChange={(inner) => set(name, inner)}
                problems={problems}
                path={`${place}.`}
              />
            </fieldset>
          );
        }
        return (
          <Field
            key={name}
            label={property.title ?? name}
            hint={property.description}
            error={problems[place]}
            optional={!required(name)}
          >
            {(wired) => (
              <Control
                wired={wired}
                label={property.title ?? name}
                schema={property}
                value={value}
                required={required(name)}
                onChange={(next) => set(name, next)}
              />
            )}
          </Field>
        );
      })}
    </div>
  );
}
