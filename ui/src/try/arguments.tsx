import type { Schema } from '../api/types';
import { useText } from '../i18n';
import { Field } from '../parts/field';
import { SchemaForm } from './schema-form';
import type { Values } from './values';

export type Mode = 'form' | 'json';

interface Props {
  mode: Mode;
  schema: Schema | undefined;
  values: Values;
  onValues: (values: Values) => void;
  text: string;
  onText: (text: string) => void;
  problems: Record<string, string>;
  onRun: () => void;
}

export function Arguments({ mode, schema, values, onValues, text, onText, problems, onRun }: Props) {
  const t = useText();
  if (mode === 'json') {
    return (
      <Field label={t.tryIt.jsonArgument} error={problems['']}>
        {(wired) => (
          <textarea
            {...wired}
            rows={6}
            spellCheck={false}
            value={text}
            onChange={(event) => onText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
                event.preventDefault();
                onRun();
              }
            }}
            className="field max-h-96 min-h-28 py-2 font-mono text-xs leading-5 [field-sizing:content]"
          />
        )}
      </Field>
    );
  }
  if (Object.keys(schema?.properties ?? {}).length === 0) {
    return <p className="text-sm text-ink-3">{t.tryIt.noArgs}</p>;
  }
  return <SchemaForm schema={schema} values={values} onChange={onValues} problems={problems} />;
}
