import { useState } from 'react';
import { createEntry } from '../../api/entries';
import { ApiFailure, messageOf } from '../../api/http';
import type { NewEntry, ToolRecord } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Notice } from '../../parts/notice';
import { useCatalog } from '../../store/tools';
import { recordsFor } from './data';
import { PickTools } from './pick-tools';

interface Props {
  records: ToolRecord[];
  onClose: () => void;
  onCreated: (entry: NewEntry) => void;
}

/** A name and its tools, in one go. */
export function CreateEntry({ records, onClose, onCreated }: Props) {
  const t = useText();
  const { tools, complete } = useCatalog();
  const [name, setName] = useState('');
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [nameError, setNameError] = useState<string>();
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const chosen = tools.filter((tool) => picked.has(`${tool.server}:${tool.name}`));
  const clash = new Set(chosen.map((tool) => tool.name)).size < chosen.length;

  const save = async () => {
    if (name.trim() === '') {
      setNameError(t.entries.needName);
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const bound = await recordsFor(chosen, records);
      onCreated(await createEntry(name.trim(), bound.map((record) => ({ tool_id: record.id, status: true }))));
    } catch (failure) {
      const field = failure instanceof ApiFailure ? failure.fields.find((one) => one.field === 'name') : undefined;
      setNameError(field?.message);
      setError(field ? undefined : messageOf(failure));
      setBusy(false);
    }
  };

  return (
    <Dialog
      open
      wide
      guarded
      onClose={onClose}
      title={t.entries.add}
      footer={
        <>
          <span role="status" className="num mr-auto text-sm text-ink-2">{t.entries.picked(chosen.length)}</span>
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button kind="solid" type="submit" form="entry-form" disabled={busy}>{t.entries.create}</Button>
        </>
      }
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
                setName(event.target.value);
                setNameError(undefined);
              }}
              className="field h-9"
            />
          )}
        </Field>
        <PickTools tools={tools} complete={complete} picked={picked} onChange={setPicked} />
        {clash ? <Notice kind="note">{t.entries.clash}</Notice> : null}
        {error ? <Notice>{error}</Notice> : null}
      </form>
    </Dialog>
  );
}
