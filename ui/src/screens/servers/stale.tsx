import type { ServerConfig, ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { quoted } from './words';

interface Props {
  theirs: ServerRecord;
  mine: ServerConfig;
  onClose: () => void;
  onOverwrite: () => void;
  onTakeTheirs: () => void;
}

/** The server changed during the edit: both versions and their differences. */
export function Stale({ theirs, mine, onClose, onOverwrite, onTakeTheirs }: Props) {
  const t = useText();
  const saved = theirs.config ?? {};
  const fields = [...new Set([...Object.keys(saved), ...Object.keys(mine)])].filter(
    (field) => field !== 'type',
  ) as (keyof ServerConfig)[];
  const different = fields.filter(
    (field) =>
      JSON.stringify(saved[field] ?? null) !== JSON.stringify(mine[field] ?? null) &&
      text(saved[field]) + text(mine[field]) !== '––',
  );
  return (
    <Dialog
      wide
      onClose={onClose}
      title={t.form.staleTitle}
      description={t.form.staleText}
      footer={() => (
        <>
          <Button className="mr-auto" onClick={onClose}>
            {t.common.back}
          </Button>
          <Button onClick={onTakeTheirs}>{t.form.takeTheirs}</Button>
          <Button kind="danger" onClick={onOverwrite}>
            {t.form.overwrite}
          </Button>
        </>
      )}
    >
      <div className="overflow-x-auto rounded-lg border border-line">
        <table className="w-full min-w-md text-left text-sm">
          <thead className="bg-sunken text-xs text-ink-2">
            <tr>
              <th className="px-3 py-2 font-medium">{t.form.field}</th>
              <th className="px-3 py-2 font-medium">{t.form.theirs}</th>
              <th className="px-3 py-2 font-medium">{t.form.mine}</th>
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {different.map((field) => (
              <tr key={field} className="align-top">
                <th className="px-3 py-2 font-medium">{field}</th>
                <td className="px-3 py-2 font-mono text-xs break-all whitespace-pre-wrap text-bad-ink">
                  {text(saved[field])}
                </td>
                <td className="px-3 py-2 font-mono text-xs break-all whitespace-pre-wrap text-good-ink">
                  {text(mine[field])}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  );
}

function text(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) {
    return '–';
  }
  if (Array.isArray(value)) {
    return value.map((word) => quoted(String(word))).join('\n');
  }
  if (typeof value === 'object' && value !== null) {
    const lines = Object.entries(value).map(([name, inner]) => `${name}=${String(inner)}`);
    return lines.join('\n') || '–';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
