import { X } from 'lucide-react';
import { useState } from 'react';
import { ApiFailure } from '../../api/http';
import { createServer } from '../../api/servers';
import { explained, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Field } from '../../parts/field';
import { IconButton } from '../../parts/icon-button';
import { toast } from '../../parts/toast';
import { asking } from '../../store/servers';
import { definition, registration, type Draft } from './draft';
import { targetOf } from './status';

interface Props {
  drafts: Draft[];
  onChange: (drafts: Draft[]) => void;
  /** All have been added. */
  onDone: () => void;
}

/** More than one pasted server: each is added by itself, and one that fails stays. */
export function Several({ drafts, onChange, onDone }: Props) {
  const t = useText();
  const [errors, setErrors] = useState<Record<number, string>>({});
  const [busy, setBusy] = useState(false);
  const add = async () => {
    setBusy(true);
    const left: Draft[] = [];
    const failed: Record<number, string> = {};
    for (const draft of drafts) {
      try {
        const { one } = asking();
        one(await createServer(registration(draft)));
        toast('good', t.servers.added(draft.name.trim()));
      } catch (error) {
        const fields = error instanceof ApiFailure ? error.fields : [];
        failed[left.length] = fields.map(({ field, message }) => `${field}: ${message}`).join('\n') || explained(error);
        left.push(draft);
      }
    }
    setBusy(false);
    if (left.length === 0) {
      onDone();
    } else {
      setErrors(failed);
      onChange(left);
    }
  };
  return (
    <div>
      <ul className="space-y-3">
        {drafts.map((draft, at) => (
          // Servers may have the same name; their place is what they are.
          <li key={at} className="flex items-start gap-2">
            <div className="min-w-0 flex-1">
              <Field label={`${t.form.name} ${at + 1}`} hint={targetOf(definition(draft))} error={errors[at]}>
                {(wired) => (
                  <input
                    {...wired}
                    autoComplete="off"
                    spellCheck={false}
                    value={draft.name}
                    onChange={(event) =>
                      onChange(drafts.map((one, index) => (index === at ? { ...one, name: event.target.value } : one)))
                    }
                    className="field h-9"
                  />
                )}
              </Field>
            </div>
            <IconButton
              label={`${t.common.remove} ${draft.name}`}
              hint={t.common.remove}
              className="mt-6.5"
              onClick={() => {
                setErrors({});
                onChange(drafts.filter((_, index) => index !== at));
              }}
            >
              <X size={14} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      <Button kind="solid" className="mt-4" busy={busy} disabled={drafts.length === 0} onClick={add}>
        {t.form.addSeveral(drafts.length)}
      </Button>
    </div>
  );
}
