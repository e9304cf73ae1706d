import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { IconButton } from '../../parts/icon-button';
import { argument, type Argument } from './draft';

interface Props {
  args: Argument[];
  onChange: (args: Argument[]) => void;
  error: string | undefined;
}

/** One row per argument. Enter begins the next one, with Shift a line in it. */
export function Arguments({ args, onChange, error }: Props) {
  const t = useText();
  const [added, setAdded] = useState<number>();
  const insert = (at: number) => {
    const row = argument('', true);
    setAdded(row.id);
    onChange([...args.slice(0, at), row, ...args.slice(at)]);
  };
  const set = (id: number, value: string) =>
    onChange(args.map((one) => (one.id === id ? { id, value, fresh: false } : one)));
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">
        {t.form.args} <span className="font-normal text-ink-3">{t.common.optional}</span>
      </legend>
      <div className="space-y-1.5">
        {args.map((one, at) => (
          <div key={one.id} className="flex gap-2">
            <textarea
              aria-label={`${t.form.argument} ${at + 1}`}
              aria-invalid={error?.includes(`[${at}]`) ? true : undefined}
              rows={1}
              spellCheck={false}
              autoFocus={one.id === added}
              placeholder={one.fresh ? '' : t.form.emptyArgument}
              value={one.value}
              onChange={(event) => set(one.id, event.target.value)}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
                  event.preventDefault();
                  insert(at + 1);
                }
              }}
              className="field max-h-48 min-h-9 flex-1 resize-none py-1.5 font-mono text-sm [field-sizing:content]"
            />
            <IconButton
              label={`${t.common.remove} ${t.form.argument} ${at + 1}`}
              hint={t.common.remove}
              onClick={() => onChange(args.filter(({ id }) => id !== one.id))}
              className="mt-0.5"
            >
              <X size={14} aria-hidden />
            </IconButton>
          </div>
        ))}
      </div>
      {error ? (
        <p role="alert" className="mt-1.5 text-xs whitespace-pre-wrap text-bad-ink">
          {error}
        </p>
      ) : null}
      <Button small kind="ghost" className="mt-1 -ml-2" onClick={() => insert(args.length)}>
        <Plus size={13} aria-hidden />
        {t.form.addArgument}
      </Button>
    </fieldset>
  );
}
