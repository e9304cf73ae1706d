import { ClipboardPaste } from 'lucide-react';
import { useState } from 'react';
import { ApiFailure, type FieldProblem } from '../../api/http';
import { createServer, getServer, replaceServer } from '../../api/servers';
import type { ServerConfig, ServerRecord } from '../../api/types';
import { formProblems, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Notice } from '../../parts/notice';
import { toast } from '../../parts/toast';
import { go } from '../../shell/route';
import { forget, useKept } from '../../store/kept';
import { asking, drop } from '../../store/servers';
import { definition, draftOfServer, emptyDraft, missingFields, registration, spread, type Draft } from './draft';
import { FormFields } from './form-fields';
import { Paste } from './paste';
import { Repair } from './repair';
import { Several } from './several';
import { Stale } from './stale';

/** Fields of a definition that the form has a place for. */
const SHOWN = /^(name|command|args|env|url|headers|cwd|timeout|era|isolation)\b/;

interface Props {
  /** The one to edit; none: a new one. */
  server?: ServerRecord;
  onClose: () => void;
}

/** All that a person has put into the form. */
interface FormInput {
  base: ServerRecord | undefined;
  draft: Draft;
  /** Whether the field for pasted JSON is shown, and its text. */
  pasting: boolean;
  paste: string;
  /** More than one pasted server. */
  several: Draft[];
}

export default function ServerForm({ server, onClose }: Props) {
  return server && !server.config ? (
    <Repair server={server} onClose={onClose} />
  ) : (
    <Form {...(server ? { server } : {})} onClose={onClose} />
  );
}

function Form({ server, onClose }: Props) {
  const t = useText();
  const key = server ? `server ${server.id}` : 'server';
  const [work, setWork] = useKept<FormInput>(key, () => ({
    base: server,
    draft: server ? draftOfServer(server) : emptyDraft(),
    pasting: false,
    paste: '',
    several: [],
  }));
  const [problems, setProblems] = useState<FieldProblem[]>([]);
  const [general, setGeneral] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [theirs, setTheirs] = useState<ServerRecord>();
  const { base, draft, pasting, paste, several } = work;
  const change = (part: Partial<FormInput>) => setWork({ ...work, ...part });
  const close = () => {
    forget(key);
    onClose();
  };

  /** `from`: what the edit is held against, the saved one where it may be replaced. */
  const save = async (from = base) => {
    const whole =
      draft.command === base?.config?.command || draft.command.trim().startsWith('/') ? draft : spread(draft);
    const missing = missingFields(whole, t);
    change({ base: from, draft: whole });
    setProblems(missing);
    setGeneral(undefined);
    if (missing.length > 0) {
      return;
    }
    setBusy(true);
    const { one } = asking();
    try {
      const saved = from ? await update(from, whole) : await createServer(registration(whole));
      if ('stale' in saved) {
        setTheirs(saved.stale);
        return;
      }
      one(saved);
      if (from && from.name !== saved.name) {
        drop(from.name);
        go('servers');
      }
      toast('good', from ? t.servers.saved(saved.name) : t.servers.added(saved.name));
      close();
    } catch (error) {
      const { fields, message } = formProblems(error, SHOWN);
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
          void save(theirs);
        }}
        onTakeTheirs={() => {
          setTheirs(undefined);
          change({ base: theirs, draft: draftOfServer(theirs) });
        }}
      />
    );
  }
  return (
    <Dialog
      onClose={close}
      loses={touched(work) ? t.form.loses : undefined}
      title={base ? t.form.editTitle(base.name) : t.form.addTitle}
      footer={(cancel) => (
        <>
          {base ? null : (
            <Button
              kind="ghost"
              className="mr-auto -ml-2"
              aria-expanded={pasting}
              onClick={() => change({ pasting: !pasting })}
            >
              <ClipboardPaste size={14} aria-hidden />
              {t.form.paste}
            </Button>
          )}
          <Button onClick={cancel}>{t.common.cancel}</Button>
          {several.length > 0 ? null : (
            <Button kind="solid" type="submit" form="server-form" busy={busy}>
              {base ? t.form.submitEdit : t.form.submitAdd}
            </Button>
          )}
        </>
      )}
    >
      {pasting ? (
        <Paste
          text={paste}
          onText={(text) => change({ paste: text })}
          replaces={(found) =>
            several.length > 0 ||
            differs({ ...draft, name: found.length === 1 && !found[0]?.name ? '' : draft.name }, emptyDraft())
          }
          onUse={(found) => {
            const [only] = found;
            if (only && found.length === 1) {
              change({ draft: { ...only, name: only.name || draft.name }, pasting: false, paste: '', several: [] });
            } else {
              change({ several: found });
            }
          }}
        />
      ) : null}
      {several.length > 0 ? (
        <Several drafts={several} onChange={(left) => change({ several: left })} onDone={close} />
      ) : (
        <form
          id="server-form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <FormFields
            draft={draft}
            base={base?.config ?? undefined}
            change={(part) => change({ draft: { ...draft, ...part } })}
            problems={problems}
            isNew={!base}
          />
          {general ? <Notice className="mt-4">{general}</Notice> : null}
          {base?.state === 'running' ? <p className="mt-4 text-xs text-ink-3">{t.form.restartNote}</p> : null}
        </form>
      )}
    </Dialog>
  );
}

/** Whether there is something in the form that closing it would lose. */
function touched({ base, draft, paste, several }: FormInput): boolean {
  return paste.trim() !== '' || several.length > 0 || differs(draft, base ? draftOfServer(base) : emptyDraft());
}

function differs(a: Draft, b: Draft): boolean {
  const text = (one: Draft) =>
    JSON.stringify(
      [one.name, definition(one), one.env, one.headers].map((part) =>
        Array.isArray(part) ? part.map(({ name, value }) => [name, value]) : part,
      ),
    );
  return text(a) !== text(b);
}

/**
 * Saves, unless the server is no longer what the form began with. The tag makes
 * sure that nothing slips in between looking and writing.
 */
async function update(base: ServerRecord, draft: Draft): Promise<ServerRecord | { stale: ServerRecord }> {
  const now = await getServer(base.id);
  if (!sameConfig(now.value.config, base.config)) {
    return { stale: now.value };
  }
  const name = draft.name.trim();
  try {
    return await replaceServer(
      base.id,
      { ...definition(draft), ...(name === now.value.name ? {} : { name }) },
      now.tag,
    );
  } catch (error) {
    if (error instanceof ApiFailure && isStale(error)) {
      return { stale: (await getServer(base.id)).value };
    }
    throw error;
  }
}

/** The answer to an outdated edit carries the current definition and its tag. */
function isStale(error: ApiFailure): boolean {
  return error.status === 409 && typeof error.details === 'object' && error.details !== null && 'etag' in error.details;
}

function sameConfig(a: ServerConfig | null, b: ServerConfig | null): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
