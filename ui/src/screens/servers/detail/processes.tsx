import type { ProcessInfo } from '../../../api/types';
import { useText } from '../../../i18n';
import { bytes } from '../../../parts/time';

interface Row {
  process: ProcessInfo;
  depth: number;
}

/** Children under their parents. */
function rows(processes: ProcessInfo[]): Row[] {
  const known = new Set(processes.map((process) => process.pid));
  const found: Row[] = [];
  const add = (process: ProcessInfo, depth: number) => {
    // A pid that was used again must not make a circle.
    if (found.some((row) => row.process.pid === process.pid)) {
      return;
    }
    found.push({ process, depth });
    processes.filter((child) => child.ppid === process.pid).forEach((child) => add(child, depth + 1));
  };
  processes.filter((process) => !known.has(process.ppid)).forEach((root) => add(root, 0));
  return found;
}

export function ProcessTree({ processes }: { processes: ProcessInfo[] }) {
  const t = useText();
  const total = processes.reduce((sum, process) => sum + process.rssBytes, 0);
  return (
    <div className="overflow-x-auto rounded-xl border border-line">
      <table className="w-full text-left text-sm">
        <thead className="bg-sunken text-xs text-ink-2">
          <tr>
            <th className="px-3 py-1.5 font-medium">PID</th>
            <th className="px-3 py-1.5 font-medium">{t.form.command}</th>
            <th className="px-3 py-1.5 text-right font-medium">{t.detail.memory}</th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows(processes).map(({ process, depth }) => (
            <tr key={process.pid}>
              <td className="num px-3 py-1.5 text-ink-2">{process.pid}</td>
              <td className="max-w-64 px-3 py-1.5 font-mono text-xs">
                <span className="block truncate" title={process.command} style={{ paddingLeft: depth * 14 }}>
                  {depth > 0 ? (
                    <span aria-hidden className="text-ink-3">
                      └{' '}
                    </span>
                  ) : null}
                  {process.command}
                </span>
              </td>
              <td className="num px-3 py-1.5 text-right whitespace-nowrap">{bytes(process.rssBytes)}</td>
            </tr>
          ))}
        </tbody>
        {processes.length > 1 ? (
          <tfoot className="border-t border-line font-medium">
            <tr>
              <td colSpan={3} className="num px-3 py-1.5 text-right">
                {bytes(total)}
              </td>
            </tr>
          </tfoot>
        ) : null}
      </table>
    </div>
  );
}
