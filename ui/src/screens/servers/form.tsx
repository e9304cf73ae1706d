import { ClipboardPaste } from 'lucide-react';
import { useState } from 'react';
import { ApiFailure, messageOf, type FieldProblem } from '../../api/http';
import { createServer, getServer, replaceServer } from '../../api/servers';
import type { ServerConfig, ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import type { Dictionary } from '../../i18n/en';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Notice } from '../../parts/notice';
import { toast } from '../../parts/toast';
import { go } from '../../shell/route';
import { asking, drop } from '../../store/servers';
import { definition, draftOfServer, emptyDraft, registration, type Draft } from './draft';
import { FormFields } from './form-fields';
import { Paste } from './paste';
import { Stale } from './stale';

interface Props {
  /** The one to edit; none: a new one. */
  server?: ServerRecord;
  onClose: () => void;
}

export default function ServerForm({ server, onClose }: Props) {
  const t = useText();
  const [base, setBase] = useState(server);
  const [draft, setDraft] = useState<Draft>(() => (server ? draftOfServer(server) : emptyDraft()));
  const [problems, setProblems] = useState<FieldProblem[]>([]);
  const [general, setGeneral] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [pasting, setPasting] = useState(false);
  const [theirs, setTheirs] = useState<ServerRecord>();

  const save = async (over?: ServerRecord) => {
    const missing = missingFields(draft, t);
    setProblems(missing);
    setGeneral(undefined);
    if (missing.length > 0) {
      return;
    }
    setBusy(true);
    const { one } = asking();
    try {
      const saved = base ? await update(base, draft, over) : await createServer(registration(draft));
      if ('stale' in saved) {
        setTheirs(saved.stale);
        return;
      }
      one(saved);
      if (base && base.name !== saved.name) {
        drop(base.name);
        go('servers');
      }
      toast('good', base ? t.servers.saved(saved.name) : t.servers.added(saved.name));
      onClose();
    } catch (error) {
      const { fields, message } = explain(error, draft);
      setProblems(fields);
      setGeneral(message);
    } finally {
      setBusy(false);
    }
  };

  if (theirs) {
    return (
      <Stale
        theirs={theirs}
        mine={definition(draft)}
        onClose={() => setTheirs(undefined)}
        onOverwrite={() => {
          setTheirs(undefined);
          setBase(theirs);
          void save(theirs);
        }}
        onTakeTheirs={() => {
          setTheirs(undefined);
          setBase(theirs);
          setDraft(draftOfServer(theirs));
        }}
      />
    );
  }
  return (
    <Dialog
      open
      guarded
      onClose={onClose}
      title={base ? t.form.editTitle(base.name) : t.form.addTitle}
      footer={
        <>
          {base ? null : (
            <Button kind="ghost" className="mr-auto -ml-2" aria-expanded={pasting} onClick={() => setPasting(!pasting)}>
              <ClipboardPaste size={14} aria-hidden />
              {t.form.paste}
            </Button>
          )}
          <Button onClick={onClose}>{t.common.cancel}</Button>
          <Button kind="solid" type="submit" form="server-form" disabled={busy}>
            {base ? t.form.submitEdit : t.form.submitAdd}
          </Button>
        </>
      }
    >
      {pasting ? (
        <Paste
          onUse={(found) => {
            setDraft({ ...found, name: found.name || draft.name });
            setPasting(false);
          }}
        />
      ) : null}
      <form
        id="server-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <FormFields draft={draft} change={(part) => setDraft({ ...draft, ...part })} problems={problems} isNew={!base} />
        {general ? <Notice className="mt-4">{general}</Notice> : null}
        {base?.state === 'running' ? <p className="mt-4 text-xs text-ink-3">{t.form.restartNote}</p> : null}
      </form>
    </Dialog>
  );
}

/**
 * Saves, unless the server is no longer what the form began with. The tag makes
 * sure that nothing slips in between looking and writing.
 */
async function update(base: ServerRecord, draft: Draft, over?: ServerRecord): Promise<ServerRecord | { stale: ServerRecord }> {
  const now = await getServer(base.id);
  if (!sameConfig(now.value.config, (over ?? base).config)) {
    return { stale: now.value };
  }
  const name = draft.name.trim();
  try {
    return await replaceServer(base.id, { ...definition(draft), ...(name === now.value.name ? {} : { name }) }, now.tag);
  } catch (error) {
    if (error instanceof ApiFailure && isStale(error)) {
      return { stale: (await getServer(base.id)).value };
    }
    throw error;
  }
}

/** The answer to an edit of what has changed carries what is there now. */
function isStale(error: ApiFailure): boolean {
  return error.status === 409 && typeof error.details === 'object' && error.details !== null && 'etag' in error.details;
}

function sameConfig(a: ServerConfig | null, b: ServerConfig | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function missingFields(draft: Draft, t: Dictionary): FieldProblem[] {
  const stdio = draft.transport === 'stdio';
  return [
    ...(draft.name.trim() ? [] : [{ field: 'name', message: t.form.needName }]),
    ...(stdio && !draft.command.trim() ? [{ field: 'command', message: t.form.needCommand }] : []),
    ...(!stdio && !draft.url.trim() ? [{ field: 'url', message: t.form.needUrl }] : []),
  ];
}

/** What belongs beside a field goes there; the rest stands below. */
function explain(error: unknown, draft: Draft): { fields: FieldProblem[]; message: string | undefined } {
  if (error instanceof ApiFailure) {
    const clash = error.status === 409 && error.message.includes(JSON.stringify(draft.name.trim()));
    if (clash) {
      return { fields: [{ field: 'name', message: error.message }], message: undefined };
    }
    const shown = /^(name|command|args|env|url|headers|cwd|timeout|era|isolation)\b/;
    if (error.fields.length > 0 && error.fields.every(({ field }) => shown.test(field))) {
      return { fields: error.fields, message: undefined };
    }
    return { fields: error.fields, message: error.message };
  }
  return { fields: [], message: messageOf(error) };
}
