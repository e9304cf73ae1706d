import { Plus, X } from 'lucide-react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { IconButton } from '../../parts/icon-button';
import { pair, type Pair } from './draft';

interface Props {
  label: string;
  nameLabel: string;
  addLabel: string;
  pairs: Pair[];
  onChange: (pairs: Pair[]) => void;
  error: string | undefined;
  /** Values may have many lines. */
  lines?: boolean;
}

/** Names and values, one row each. */
export function Pairs({ label, nameLabel, addLabel, pairs, onChange, error, lines = false }: Props) {
  const t = useText();
  const set = (id: number, part: Partial<Pair>) =>
    onChange(pairs.map((one) => (one.id === id ? { ...one, ...part } : one)));
  // An input would remove the line breaks from pasted text.
  const Value = lines ? 'textarea' : 'input';
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">
        {label} <span className="font-normal text-ink-3">{t.common.optional}</span>
      </legend>
      <div className="space-y-2">
        {pairs.map((one, at) => (
          <div key={one.id} className="flex gap-2">
            <input
              aria-label={`${nameLabel} ${at + 1}`}
              placeholder={nameLabel}
              autoFocus={one.name === '' && one.value === ''}
              spellCheck={false}
              value={one.name}
              onChange={(event) => set(one.id, { name: event.target.value })}
              className="field h-9 w-2/5 font-mono text-sm"
            />
            <Value
              aria-label={`${t.form.value} ${at + 1}`}
              placeholder="${VAR}"
              spellCheck={false}
              autoComplete="off"
              value={one.value}
              onChange={(event) => set(one.id, { value: event.target.value })}
              {...(lines ? { rows: 1 } : {})}
              className="field max-h-48 min-h-9 flex-1 resize-none py-1.5 font-mono text-sm [field-sizing:content]"
            />
            <IconButton
              label={`${t.common.remove} ${one.name}`}
              hint={t.common.remove}
              onClick={() => onChange(pairs.filter((other) => other.id !== one.id))}
              className="mt-0.5"
            >
              <X size={14} aria-hidden />
            </IconButton>
          </div>
        ))}
      </div>
      {error ? (
        <p role="alert" className="mt-1.5 text-xs text-bad-ink">
          {error}
        </p>
      ) : null}
      {pairs.length > 0 ? <p className="mt-1.5 text-xs text-ink-3">{t.form.secretHint}</p> : null}
      <Button small kind="ghost" className="mt-1 -ml-2" onClick={() => onChange([...pairs, pair()])}>
        <Plus size={13} aria-hidden />
        {addLabel}
      </Button>
    </fieldset>
  );
}
