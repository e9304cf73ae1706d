import { listEntryTools } from '../../api/entries';
import type { Entry } from '../../api/types';
import { useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { useLoad } from '../../parts/load';
import { Notice } from '../../parts/notice';

/** The tools of an entry under the names that clients see, by bindings and by patterns. */
export function EntryTools({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const t = useText();
  const { data, error } = useLoad((signal) => listEntryTools(entry.id, signal), [entry.id]);
  return (
    <Dialog
      onClose={onClose}
      title={t.entries.toolsTitle(entry.name)}
      footer={(close) => (
        <Button kind="solid" onClick={close}>
          {t.common.done}
        </Button>
      )}
    >
      {error ? <Notice>{error}</Notice> : null}
      {data?.length === 0 ? <p className="text-base text-ink-3">{t.entries.toolsNone}</p> : null}
      {data?.length ? (
        <ul className="divide-y divide-line rounded-lg border border-line">
          {data.map((tool) => (
            <li key={`${tool.tool_id} ${tool.name}`} className="flex flex-wrap items-center gap-x-2 gap-y-1 px-3 py-2">
              <span className="font-mono text-sm font-medium break-all">{tool.name}</span>
              <span className="font-mono text-xs break-all text-ink-3">
                {tool.server}:{tool.tool}
              </span>
              <span className="ml-auto flex gap-1.5">
                {tool.missing ? <Badge tone="warn">{t.entries.stale}</Badge> : null}
                <Badge>{tool.tool_id === null ? t.entries.byPattern : t.entries.byBinding}</Badge>
              </span>
            </li>
          ))}
        </ul>
      ) : null}
    </Dialog>
  );
}
