import { Ellipsis, Pencil, Plug, RotateCw, Trash2, Wrench } from 'lucide-react';
import { useState } from 'react';
import { changeEntry, deleteEntry, rotateKey } from '../../api/entries';
import type { Binding, Entry, NewEntry } from '../../api/types';
import { explained, useLanguage, useText } from '../../i18n';
import { Button } from '../../parts/button';
import Confirm from '../../parts/confirm';
import { Light } from '../../parts/light';
import { Menu, MenuItem, MenuLine } from '../../parts/menu';
import { ago, moment, useNow } from '../../parts/time';
import { toast } from '../../parts/toast';
import { Toggle } from '../../parts/toggle';
import { overlay } from '../../store/shell';
import { EntryTools } from './entry-tools';

interface Props {
  entry: Entry;
  bindings: Binding[];
  onConnect: (entry: Entry | NewEntry) => void;
  onChange: () => void;
}

export function EntryCard({ entry, bindings, onConnect, onChange }: Props) {
  const t = useText();
  const language = useLanguage();
  const now = useNow(30_000);
  const [asking, setAsking] = useState<'delete' | 'rotate' | 'tools'>();
  const active = bindings.filter((binding) => binding.status).length;
  const used = entry.key?.last_used_at;
  const expires = entry.key?.expires_at;
  const facts: [string, string][] = [
    [t.entries.expires, expires ? moment(expires, language) : ''],
    [t.entries.allow, entry.filter?.allow.join(', ') ?? ''],
    [t.entries.deny, entry.filter?.deny.join(', ') ?? ''],
    [t.entries.resources, entry.exposes?.resources.join(', ') ?? ''],
    [t.entries.prompts, entry.exposes?.prompts.join(', ') ?? ''],
  ];
  const setStatus = async (status: boolean) => {
    try {
      await changeEntry(entry.id, { status });
    } catch (error) {
      toast('bad', t.servers.failed(entry.name), explained(error));
    }
    onChange();
  };
  return (
    <article
      data-entry={entry.name}
      className="flex h-full flex-col gap-3 rounded-xl border border-line bg-panel p-4 shadow-card"
    >
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <h2 className="truncate text-base font-semibold">{entry.name}</h2>
          <p className="mt-1 flex items-center gap-1.5 text-sm text-ink-2">
            <Light shade={entry.status ? 'good' : 'idle'} />
            {entry.status ? t.entries.enabled : t.entries.disabled}
            <span aria-hidden className="text-ink-3">
              ·
            </span>
            <span className="num">{t.entries.tools(active)}</span>
          </p>
        </div>
        <Toggle label={t.entries.enable(entry.name)} checked={entry.status} onChange={setStatus} />
      </div>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1 text-sm">
        <dt className="text-ink-3">{t.entries.key}</dt>
        <dd className="truncate font-mono text-xs leading-5">
          {entry.key?.hint ? `…${entry.key.hint.replace(/^…|^\.\.\./, '')}` : '–'}
        </dd>
        <dt className="text-ink-3">{t.entries.lastUsed}</dt>
        <dd>{used ? ago(new Date(used).getTime(), now, t) : t.entries.never}</dd>
        {facts
          .filter(([, value]) => value !== '')
          .map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-ink-3">{name}</dt>
              <dd className="min-w-0 break-words">{value}</dd>
            </div>
          ))}
      </dl>
      <div className="mt-auto flex gap-2">
        <Button small onClick={() => onConnect(entry)}>
          <Plug size={13} aria-hidden />
          {t.entries.connect}
        </Button>
        <div className="flex-1" />
        <Menu
          trigger={
            <button
              type="button"
              aria-label={t.entries.moreNamed(entry.name)}
              className="grid size-7 place-items-center rounded-md text-ink-2 hover:bg-hover hover:text-ink"
            >
              <Ellipsis size={16} aria-hidden />
            </button>
          }
        >
          <MenuItem icon={<Pencil size={14} />} onSelect={() => overlay.set({ kind: 'entry', entry })}>
            {t.common.edit}
          </MenuItem>
          <MenuItem icon={<Wrench size={14} />} onSelect={() => setAsking('tools')}>
            {t.entries.showTools}
          </MenuItem>
          <MenuItem icon={<RotateCw size={14} />} onSelect={() => setAsking('rotate')}>
            {t.entries.rotate}
          </MenuItem>
          <MenuLine />
          <MenuItem icon={<Trash2 size={14} />} danger onSelect={() => setAsking('delete')}>
            {t.common.delete}
          </MenuItem>
        </Menu>
      </div>
      {asking === 'tools' ? <EntryTools entry={entry} onClose={() => setAsking(undefined)} /> : null}
      {asking === 'delete' ? (
        <Confirm
          title={t.entries.deleteTitle(entry.name)}
          text={t.entries.deleteText}
          action={t.common.delete}
          onClose={() => setAsking(undefined)}
          onConfirm={async () => {
            await deleteEntry(entry.id);
            toast('good', t.entries.deleted(entry.name));
            onChange();
          }}
        />
      ) : null}
      {asking === 'rotate' ? (
        <Confirm
          title={t.entries.rotateTitle(entry.name)}
          text={t.entries.rotateText}
          action={t.entries.rotate}
          onClose={() => setAsking(undefined)}
          onConfirm={async () => {
            const given = await rotateKey(entry.id);
            onChange();
            onConnect({ ...entry, api_key: given.api_key });
          }}
        />
      ) : null}
    </article>
  );
}
