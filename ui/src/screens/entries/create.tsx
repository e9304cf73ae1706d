import { useState } from 'react';
import { createEntry } from '../../api/entries';
import { ApiFailure } from '../../api/http';
import type { NewEntry, ToolRecord } from '../../api/types';
import { explained, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Notice } from '../../parts/notice';
import { forget, useKept } from '../../store/kept';
import { useCatalog } from '../../store/tools';
import { recordsFor } from './data';
import { PickTools } from './pick-tools';

interface Props {
  records: ToolRecord[];
  onClose: () => void;
  onCreated: (entry: NewEntry) => void;
}

const KEY = 'entry';

interface NewEntryInput {
  name: string;
  picked: string[];
}

/** A name and its tools, in one go. */
export function CreateEntry({ records, onClose, onCreated }: Props) {
  const t = useText();
  const { tools, complete } = useCatalog();
  const [{ name, picked }, setWork] = useKept<NewEntryInput>(KEY, () => ({ name: '', picked: [] }));
  const [nameError, setNameError] = useState<string>();
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const ticked = new Set(picked);
  const chosen = tools.filter((tool) => ticked.has(`${tool.server}:${tool.name}`));
  const clash = new Set(chosen.map((tool) => tool.name)).size < chosen.length;

  const close = () => {
    forget(KEY);
    onClose();
  };
  const save = async () => {
    if (name.trim() === '') {
      setNameError(t.entries.needName);
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const bound = await recordsFor(chosen, records);
      const made = await createEntry(
        name.trim(),
        bound.map((record) => ({ tool_id: record.id, status: true })),
      );
      forget(KEY);
      onCreated(made);
    } catch (failure) {
      const field = failure instanceof ApiFailure ? failure.fields.find((one) => one.field === 'name') : undefined;
      setNameError(field?.message);
      setError(field ? undefined : explained(failure));
      setBusy(false);
    }
  };

  return (
    <Dialog
      wide
      onClose={close}
      loses={name.trim() || picked.length > 0 ? t.form.loses : undefined}
      title={t.entries.add}
      footer={(cancel) => (
        <>
          <span role="status" className="num mr-auto text-sm text-ink-2">
            {t.entries.picked(chosen.length)}
          </span>
          <Button onClick={cancel}>{t.common.cancel}</Button>
          <Button kind="solid" type="submit" form="entry-form" busy={busy}>
            {t.entries.create}
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
        <Field label={t.entries.name} error={nameError}>
          {(wired) => (
            <input
              {...wired}
              autoFocus
              autoComplete="off"
              placeholder={t.entries.namePlaceholder}
              value={name}
              onChange={(event) => {
                setWork({ name: event.target.value, picked });
                setNameError(undefined);
              }}
              className="field h-9"
            />
          )}
        </Field>
        <PickTools
          tools={tools}
          complete={complete}
          picked={ticked}
          onChange={(next) => setWork({ name, picked: [...next] })}
        />
        {clash ? <Notice kind="note">{t.entries.clash}</Notice> : null}
        {error ? <Notice>{error}</Notice> : null}
      </form>
    </Dialog>
  );
}
