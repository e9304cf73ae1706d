import { useRef, useState } from 'react';
import type { Entry, NewEntry } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Copy } from '../../parts/copy';
import { Dialog } from '../../parts/dialog';
import { Notice } from '../../parts/notice';
import { clients } from './clients';

const UNKNOWN = 'YOUR_KEY';

/** How a client gets to an entry; with the key, if it was just made. */
export default function Connect({ entry, onClose }: { entry: Entry | NewEntry; onClose: () => void }) {
  const t = useText();
  const [at, setAt] = useState(0);
  const [copied, setCopied] = useState(false);
  const settings = useRef<HTMLPreElement>(null);
  const key = 'api_key' in entry ? entry.api_key : undefined;
  const origin = location.origin;
  const all = clients({ name: entry.name, origin, key: key ?? UNKNOWN });
  const client = all[at];
  const took = (text: string) => setCopied(copied || (key !== undefined && text.includes(key)));
  return (
    <Dialog
      wide
      onClose={onClose}
      loses={key !== undefined && !copied ? t.entries.keyLost : undefined}
      title={key ? t.entries.createdTitle(entry.name) : t.entries.connectTitle(entry.name)}
      footer={(close) => (
        <Button kind="solid" onClick={close}>
          {t.common.done}
        </Button>
      )}
    >
      <div className="space-y-5" onCopy={() => took(window.getSelection()?.toString() ?? '')}>
        {key ? (
          <>
            <Notice kind="warn">{t.entries.keyOnce}</Notice>
            <Line label={t.entries.key} text={key} onCopied={took} />
          </>
        ) : (
          <Notice kind="note">{t.entries.placeholderNote}</Notice>
        )}
        <Line label={t.entries.urlWithKey} text={`${origin}/mcp`} onCopied={took} />
        <Line label={t.entries.url} text={`${origin}/api/v1/mcp_v2/server/${key ?? UNKNOWN}`} onCopied={took} />
        <section>
          <h3 className="mb-2 text-sm font-semibold">{t.entries.settings}</h3>
          <div role="group" aria-label={t.entries.client} className="mb-3 flex flex-wrap gap-1.5">
            {all.map((one, index) => (
              <button
                key={one.name}
                type="button"
                aria-pressed={index === at}
                onClick={() => setAt(index)}
                className="h-7 rounded-full border border-line-strong px-3 text-sm text-ink-2 hover:bg-hover hover:text-ink aria-pressed:border-accent aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent"
              >
                {one.name}
              </button>
            ))}
          </div>
          {client ? (
            <div className="overflow-hidden rounded-lg border border-line">
              <div className="flex items-center justify-between gap-3 border-b border-line bg-sunken py-1.5 pr-1.5 pl-3 text-xs text-ink-2">
                <span className="min-w-0 truncate">
                  {t.entries.file} <span className="font-mono">{client.file}</span>
                </span>
                <Copy
                  text={client.text}
                  label={`${t.common.copy}: ${client.name}`}
                  shown={settings}
                  onCopied={() => took(client.text)}
                />
              </div>
              <pre
                ref={settings}
                tabIndex={0}
                data-settings
                className="overflow-x-auto p-3 font-mono text-xs leading-5"
              >
                {client.text}
              </pre>
            </div>
          ) : null}
        </section>
      </div>
    </Dialog>
  );
}

function Line({ label, text, onCopied }: { label: string; text: string; onCopied: (text: string) => void }) {
  const t = useText();
  const shown = useRef<HTMLElement>(null);
  return (
    <div>
      <p className="mb-1.5 text-sm font-medium">{label}</p>
      <div className="flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3">
        <code ref={shown} className="min-w-0 flex-1 font-mono text-xs break-all">
          {text}
        </code>
        <Copy text={text} label={`${t.common.copy}: ${label}`} shown={shown} onCopied={() => onCopied(text)} />
      </div>
    </div>
  );
}
