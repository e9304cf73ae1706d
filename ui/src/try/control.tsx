import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import type { Schema } from '../api/types';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { IconButton } from '../parts/icon-button';
import { Toggle } from '../parts/toggle';
import { BadText } from '../store/bad-text';
import { kindOf, optionsOf, typeOf } from './values';

interface Wired {
  id?: string;
  'aria-label'?: string;
  'aria-describedby'?: string | undefined;
  'aria-invalid'?: boolean | undefined;
}

interface Props {
  wired: Wired;
  label: string;
  schema: Schema;
  value: unknown;
  required: boolean;
  onChange: (value: unknown) => void;
}

export function Control(props: Props) {
  const { wired, label, schema, value, onChange } = props;
  switch (kindOf(schema)) {
    case 'string':
      return <TextInput {...props} />;
    case 'number':
      return <NumberInput {...props} />;
    case 'boolean':
      return (
        <div>
          <Toggle {...(wired.id ? { id: wired.id } : {})} label={label} checked={value === true} onChange={onChange} />
        </div>
      );
    case 'choice':
      return <Choice {...props} />;
    case 'choices':
      return <Choices {...props} />;
    case 'list':
      return <List {...props} />;
    default:
      return <JsonInput {...props} />;
  }
}

const TYPES: Record<string, string> = { email: 'email', uri: 'url', date: 'date', 'date-time': 'text' };

function TextInput({ wired, schema, value, required, onChange }: Props) {
  const text = typeof value === 'string' ? value : '';
  const set = (next: string) => onChange(next === '' && !required ? undefined : next);
  const type = TYPES[schema.format ?? ''];
  if (type) {
    return (
      <input {...wired} type={type} value={text} onChange={(event) => set(event.target.value)} className="field h-9" />
    );
  }
  return (
    <textarea
      {...wired}
      rows={1}
      spellCheck={false}
      value={text}
      onChange={(event) => set(event.target.value)}
      className="field max-h-72 min-h-9 resize-none py-1.5 [field-sizing:content]"
    />
  );
}

function NumberInput({ wired, value, onChange }: Props) {
  const text = value instanceof BadText ? value.text : typeof value === 'number' ? String(value) : '';
  const [typed, setTyped] = useState(text);
  // The typed text stays as it is ("1.", "-") while it stands for the value.
  const shown = Number(typed) === value && typed.trim() !== '' ? typed : text;
  const set = (next: string) => {
    setTyped(next);
    const number = Number(next);
    onChange(next.trim() === '' ? undefined : Number.isFinite(number) ? number : new BadText(next));
  };
  return (
    <input
      {...wired}
      inputMode="decimal"
      value={shown}
      onChange={(event) => set(event.target.value)}
      className="field num h-9 max-w-52"
    />
  );
}

function Choice({ wired, schema, value, required, onChange }: Props) {
  const t = useText();
  const options = optionsOf(schema) ?? [];
  const at = options.findIndex((option) => option.value === value);
  return (
    <select
      {...wired}
      value={at}
      onChange={(event) => onChange(options[Number(event.target.value)]?.value)}
      className="field h-9"
    >
      <option value={-1} disabled={required}>
        {t.tryIt.unset}
      </option>
      {options.map((option, index) => (
        <option key={index} value={index}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

function Choices({ wired, label, schema, value, onChange }: Props) {
  const options = optionsOf(schema.items ?? {}) ?? [];
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  return (
    <div {...wired} role="group" aria-label={label} className="flex flex-wrap gap-x-4 gap-y-1.5">
      {options.map((option, index) => (
        <label key={index} className="flex items-center gap-2 text-base">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={chosen.includes(option.value)}
            onChange={(event) =>
              onChange(
                event.target.checked ? [...chosen, option.value] : chosen.filter((item) => item !== option.value),
              )
            }
          />
          {option.label}
        </label>
      ))}
    </div>
  );
}

function List({ wired, label, schema, value, required, onChange }: Props) {
  const t = useText();
  const items: unknown[] = Array.isArray(value) ? value : [];
  const numbers = typeOf(schema.items ?? {}) !== 'string';
  const put = (at: number, item: unknown) => onChange(items.map((old, index) => (index === at ? item : old)));
  return (
    <div {...wired} role="group" aria-label={label} className="space-y-2">
      {items.map((item, at) => (
        // Items have no names; their place is what they are.
        <div key={at} className="flex gap-2">
          <Control
            wired={{ 'aria-label': t.tryIt.item(at + 1) }}
            label={t.tryIt.item(at + 1)}
            schema={schema.items ?? {}}
            value={item}
            required
            onChange={(next) => put(at, next ?? (numbers ? new BadText('') : ''))}
          />
          <IconButton
            label={`${t.common.remove} ${t.tryIt.item(at + 1)}`}
            hint={t.common.remove}
            onClick={() =>
              onChange(items.length === 1 && !required ? undefined : items.filter((_, index) => index !== at))
            }
          >
            <X size={14} aria-hidden />
          </IconButton>
        </div>
      ))}
      <Button small onClick={() => onChange([...items, numbers ? new BadText('') : ''])}>
        <Plus size={13} aria-hidden />
        {t.tryIt.addItem}
      </Button>
    </div>
  );
}

function JsonInput({ wired, value, onChange }: Props) {
  const said = value instanceof BadText ? value.text : value === undefined ? '' : JSON.stringify(value, null, 2);
  const [text, setText] = useState(said);
  const set = (next: string) => {
    setText(next);
    if (next.trim() === '') {
      onChange(undefined);
      return;
    }
    try {
      onChange(JSON.parse(next));
    } catch {
      onChange(new BadText(next));
    }
  };
  return (
    <textarea
      {...wired}
      rows={3}
      spellCheck={false}
      placeholder="{ }"
      value={text}
      onChange={(event) => set(event.target.value)}
      className="field py-2 font-mono text-xs [field-sizing:content]"
    />
  );
}
