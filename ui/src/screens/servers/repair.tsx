import { useState } from 'react';
import { ApiFailure } from '../../api/http';
import { patchServer } from '../../api/servers';
import type { ServerRecord } from '../../api/types';
import { explained, useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Field } from '../../parts/field';
import { Notice } from '../../parts/notice';
import { toast } from '../../parts/toast';
import { go } from '../../shell/route';
import { forget, useKept } from '../../store/kept';
import { asking, drop } from '../../store/servers';

/** A definition that cannot be read. Where that is for its name, it gets another. */
export function Repair({ server, onClose }: { server: ServerRecord; onClose: () => void }) {
  const t = useText();
  const key = `server ${server.id}`;
  const [name, setName] = useKept(key, () => server.name);
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const problems = server.problems ?? [];
  const misnamed = problems.length > 0 && problems.every(({ field }) => field === 'name');
  const close = () => {
    forget(key);
    onClose();
  };
  const save = async () => {
    setBusy(true);
    const { one } = asking();
    try {
      const saved = await patchServer(server.id, { name: name.trim() });
      one(saved);
      drop(server.name);
      go('servers');
      toast('good', t.servers.saved(saved.name));
      close();
    } catch (failure) {
      const field = failure instanceof ApiFailure ? failure.fields.find((one) => one.field === 'name') : undefined;
      setError(field?.message ?? explained(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog
      onClose={close}
      loses={name === server.name ? undefined : t.form.loses}
      title={t.form.editTitle(server.name)}
      footer={(cancel) => (
        <>
          <Button onClick={cancel}>{misnamed ? t.common.cancel : t.common.close}</Button>
          {misnamed ? (
            <Button kind="solid" type="submit" form="server-form" busy={busy} disabled={name.trim() === server.name}>
              {t.form.submitEdit}
            </Button>
          ) : null}
        </>
      )}
    >
      <Notice title={t.detail.problems} className="mb-4">
        {problems.map((problem) => `${problem.field}: ${problem.message}`).join('\n')}
      </Notice>
      <p className="mb-4 text-sm break-all text-ink-2">
        {t.detail.source} <span className="font-mono text-xs">{server.source}</span>
      </p>
      {misnamed ? (
        <form
          id="server-form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <Field label={t.form.name} hint={t.form.repairHint} error={error}>
            {(wired) => (
              <input
                {...wired}
                autoFocus
                autoComplete="off"
                spellCheck={false}
                value={name}
                onChange={(event) => setName(event.target.value)}
                className="field h-9"
              />
            )}
          </Field>
        </form>
      ) : (
        <p className="text-sm text-ink-2">{t.form.repairFile}</p>
      )}
    </Dialog>
  );
}
