import { Pencil } from 'lucide-react';
import type { ServerRecord } from '../../../api/types';
import { useText } from '../../../i18n';
import { Button } from '../../../parts/button';
import { Code } from '../../../parts/code';
import { overlay } from '../../../store/shell';

export function ConfigView({ server }: { server: ServerRecord }) {
  const t = useText();
  return (
    <div className="space-y-3">
      <div className="flex items-center justify-between gap-3">
        <p className="min-w-0 text-sm break-all text-ink-2">
          {t.detail.source} {server.source}
        </p>
        <Button small onClick={() => overlay.set({ kind: 'edit', server })}>
          <Pencil size={13} aria-hidden />
          {t.common.edit}
        </Button>
      </div>
      <Code text={JSON.stringify(server.config, null, 2)} />
      <p className="text-xs text-ink-3">{t.form.secretHint}</p>
    </div>
  );
}
