import { useState } from 'react';
import { changeToolRecord, createToolRecord, type ToolRecordChange } from '../../api/entries';
import type { FieldProblem } from '../../api/http';
import type { ToolRecord } from '../../api/types';
import { formProblems, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Notice } from '../../parts/notice';
import { toast } from '../../parts/toast';
import { useCell } from '../../store/cell';
import { forget, useKept } from '../../store/kept';
import { touchEntries } from '../../store/live';
import { names } from '../../store/servers';
import { useCatalog } from '../../store/tools';
import { AllowMissing } from './allow-missing';

interface RecordInput {
  name: string;
  description: string;
  server: string;
  tool: string;
  allowMissing: boolean;
}

const FIELDS = ['name', 'server', 'tool', 'description'] as const;
const SHOWN = /^(name|server|tool|description)$/;

function workOf(record: ToolRecord | undefined): RecordInput {
  return {
    name: record?.name ?? '',
    description: record?.description ?? '',
    server: record?.server ?? '',
    tool: record?.tool ?? '',
    allowMissing: false,
  };
}

/** Only what was changed: the rest may have been changed elsewhere meanwhile. */
function changes(work: RecordInput, record: ToolRecord | undefined): ToolRecordChange {
  const before = workOf(record);
  const moved = work.server !== before.server || work.tool !== before.tool;
  return {
    ...(work.name === before.name ? {} : { name: work.name.trim() }),
    ...(work.description === before.description ? {} : { description: work.description.trim() || null }),
    ...(work.server === before.server ? {} : { server: work.server.trim() }),
    ...(work.tool === before.tool ? {} : { tool: work.tool.trim() }),
    ...(moved && work.allowMissing ? { allow_missing: true } : {}),
  };
}

/** A tool record: a new one, or a change of one. */
export default function RecordForm({ record, onClose }: { record: ToolRecord | undefined; onClose: () => void }) {
  const t = useText();
  const key = `record ${record?.id ?? 'new'}`;
  const [work, setWork] = useKept(key, () => workOf(record));
  const [problems, setProblems] = useState<FieldProblem[]>([]);
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const servers = useCell(names);
  const { tools } = useCatalog();
  const change = changes(work, record);
  const changed = Object.keys(change).length > 0;
  const labels = {
    name: t.entries.name,
    server: t.records.server,
    tool: t.records.tool,
    description: t.records.descriptionField,
  };
  const suggestions = {
    name: [],
    server: servers,
    tool: tools.filter((tool) => tool.server === work.server).map((tool) => tool.name),
    description: [],
  };
  const close = () => {
    forget(key);
    onClose();
  };
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await (record
        ? changeToolRecord(record.id, change)
        : createToolRecord({ ...change, name: work.name.trim(), server: work.server.trim(), tool: work.tool.trim() }));
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
      title={record ? t.form.editTitle(record.name) : t.records.add}
      footer={(cancel) => (
        <>
          <Button onClick={cancel}>{t.common.cancel}</Button>
          <Button kind="solid" type="submit" form="record-form" busy={busy} disabled={!changed}>
            {t.common.save}
          </Button>
        </>
      )}
    >
      <form
        id="record-form"
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {FIELDS.map((field) => (
          <Field
            key={field}
            label={labels[field]}
            hint={field === 'description' ? t.records.descriptionHint : undefined}
            error={
              problems
                .filter((one) => one.field === field)
                .map(({ message }) => message)
                .join('\n') || undefined
            }
            optional={field === 'description'}
          >
            {(wired) =>
              field === 'description' ? (
                <textarea
                  {...wired}
                  rows={2}
                  value={work.description}
                  onChange={(event) => setWork({ ...work, description: event.target.value })}
                  className="field max-h-72 min-h-16 py-1.5 [field-sizing:content]"
                />
              ) : (
                <>
                  <input
                    {...wired}
                    autoFocus={field === 'name'}
                    autoComplete="off"
                    spellCheck={false}
                    list={`${wired.id}-list`}
                    value={work[field]}
                    onChange={(event) => setWork({ ...work, [field]: event.target.value })}
                    className="field h-9"
                  />
                  <datalist id={`${wired.id}-list`}>
                    {suggestions[field].map((name) => (
                      <option key={name} value={name} />
                    ))}
                  </datalist>
                </>
              )
            }
          </Field>
        ))}
        <AllowMissing checked={work.allowMissing} onChange={(allowMissing) => setWork({ ...work, allowMissing })} />
        {error ? <Notice>{error}</Notice> : null}
      </form>
    </Dialog>
  );
}
