import { useState } from 'react';
import { changeEntry, type EntryChange } from '../../api/entries';
import type { FieldProblem } from '../../api/http';
import type { Entry } from '../../api/types';
import { formProblems, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Notice } from '../../parts/notice';
import { toast } from '../../parts/toast';
import { forget, useKept } from '../../store/kept';
import { touchEntries } from '../../store/live';
import { AllowMissing } from './allow-missing';

/** Lists are one item per line: neither patterns nor names of servers have line breaks. */
interface EntryInput {
  name: string;
  expires: string;
  allow: string;
  deny: string;
  resources: string;
  prompts: string;
  allowMissing?: boolean;
}

const LISTS = [
  ['allow', 'filter.allow'],
  ['deny', 'filter.deny'],
  ['resources', 'exposes.resources'],
  ['prompts', 'exposes.prompts'],
] as const;
const SHOWN = /^(name|expires_at|filter\.(allow|deny)|exposes\.(resources|prompts))\b/;

const lines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
const text = (list: string[] | undefined) => (list ?? []).join('\n');

function workOf(entry: Entry): EntryInput {
  return {
    name: entry.name,
    expires: local(entry.key?.expires_at),
    allow: text(entry.filter?.allow),
    deny: text(entry.filter?.deny),
    resources: text(entry.exposes?.resources),
    prompts: text(entry.exposes?.prompts),
  };
}

/** A moment as the browser's field for one has it, in the reader's own time. */
function local(moment: string | null | undefined): string {
  if (!moment) {
    return '';
  }
  const at = new Date(moment);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** Only what was changed: the rest may have been changed elsewhere meanwhile. */
function changes(work: EntryInput, entry: Entry): EntryChange {
  const before = workOf(entry);
  const differs = (...fields: (keyof EntryInput)[]) => fields.some((field) => work[field] !== before[field]);
  const [allow, deny] = [lines(work.allow), lines(work.deny)];
  return {
    ...(differs('name') ? { name: work.name.trim() } : {}),
    ...(differs('expires') ? { expires_at: work.expires ? new Date(work.expires).toISOString() : null } : {}),
    ...(differs('allow', 'deny') ? { filter: allow.length + deny.length > 0 ? { allow, deny } : null } : {}),
    ...(differs('resources', 'prompts')
      ? {
          exposes: { resources: lines(work.resources), prompts: lines(work.prompts) },
          ...(work.allowMissing ? { allow_missing: true } : {}),
        }
      : {}),
  };
}

/** All of an entry but its bindings and its key. */
export default function EditEntry({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const t = useText();
  const key = `entry ${entry.id}`;
  const [work, setWork] = useKept(key, () => workOf(entry));
  const [problems, setProblems] = useState<FieldProblem[]>([]);
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const change = changes(work, entry);
  const changed = Object.keys(change).length > 0;
  const wrong = (field: string) =>
    problems
      .filter((one) => one.field === field || one.field.startsWith(`${field}[`))
      .map(({ message }) => message)
      .join('\n') || undefined;
  const close = () => {
    forget(key);
    onClose();
  };
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await changeEntry(entry.id, change);
      touchEntries();
      toast('good', t.servers.saved(work.name.trim()));
      close();
    } catch (failure) {
      const { fields, message } = formProblems(failure, SHOWN);
      setProblems(fields);
      setError(message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      onClose={close}
      loses={changed ? t.form.loses : undefined}
      title={t.form.editTitle(entry.name)}
      footer={(cancel) => (
        <>
          <Button onClick={cancel}>{t.common.cancel}</Button>
          <Button kind="solid" type="submit" form="entry-form" busy={busy} disabled={!changed}>
            {t.common.save}
          </Button>
        </>
      )}
    >
      <form
        id="entry-form"
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Field label={t.entries.name} error={wrong('name')}>
          {(wired) => (
            <input
              {...wired}
              autoFocus
              autoComplete="off"
              value={work.name}
              onChange={(event) => setWork({ ...work, name: event.target.value })}
              className="field h-9"
            />
          )}
        </Field>
        <Field label={t.entries.expires} error={wrong('expires_at')} optional>
          {(wired) => (
            <input
              {...wired}
              type="datetime-local"
              step={1}
              value={work.expires}
              onChange={(event) => setWork({ ...work, expires: event.target.value })}
              className="field h-9 w-auto"
            />
          )}
        </Field>
        {LISTS.map(([name, field]) => (
          <Field
            key={name}
            label={t.entries[name]}
            hint={name === 'allow' ? t.entries.allowHint : name === 'resources' ? t.entries.exposesHint : undefined}
            error={wrong(field)}
            optional
          >
            {(wired) => (
              <textarea
                {...wired}
                rows={1}
                spellCheck={false}
                placeholder={name === 'deny' ? '*:delete*' : name === 'allow' ? 'files:*' : ''}
                value={work[name]}
                onChange={(event) => setWork({ ...work, [name]: event.target.value })}
                className="field max-h-48 min-h-9 py-1.5 font-mono text-sm [field-sizing:content]"
              />
            )}
          </Field>
        ))}
        <AllowMissing
          checked={work.allowMissing ?? false}
          onChange={(allowMissing) => setWork({ ...work, allowMissing })}
        />
        {error ? <Notice>{error}</Notice> : null}
      </form>
    </Dialog>
  );
}
