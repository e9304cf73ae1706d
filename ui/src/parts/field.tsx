import { useId, type ReactNode } from 'react';
import { useText } from '../i18n';

interface Wired {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean | undefined;
}

interface Props {
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  optional?: boolean;
  children: (wired: Wired) => ReactNode;
}

/** A label, its control, and the error below it. */
export function Field({ label, hint, error, optional = false, children }: Props) {
  const t = useText();
  const id = useId();
  const note = error ?? hint;
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 flex items-baseline gap-1.5 text-sm font-medium">
        {label}
        {optional ? <span className="font-normal text-ink-3">{t.common.optional}</span> : null}
      </label>
      {children({ id, 'aria-describedby': note ? `${id}-note` : undefined, 'aria-invalid': error ? true : undefined })}
      {note ? (
        <p
          id={`${id}-note`}
          className={`mt-1.5 text-xs break-words whitespace-pre-wrap ${error ? 'text-bad-ink' : 'text-ink-3'}`}
        >
          {note}
        </p>
      ) : null}
    </div>
  );
}
