import type { ReactNode } from 'react';
import { readHealth } from '../../api/servers';
import { LANGUAGES, speak, useLanguage, useText, type Language } from '../../i18n';
import { useLoad } from '../../parts/load';
import { Segmented } from '../../parts/segmented';
import { useCell } from '../../store/cell';
import { setTheme, theme } from '../../store/theme';
import { PlanFile } from './plan';
import { Sessions } from './sessions';
import { Sources } from './sources';

export default function Settings() {
  const t = useText();
  return (
    <div className="max-w-3xl space-y-9">
      <h1 className="text-xl font-semibold tracking-tight">{t.settings.title}</h1>
      <Appearance />
      <Sources />
      <PlanFile />
      <Sessions />
      <Keyboard />
      <About />
    </div>
  );
}

export function Section({ title, text, children }: { title: string; text?: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className="text-lg font-semibold tracking-tight">{title}</h2>
      {text ? <p className="mt-0.5 text-base text-ink-2">{text}</p> : null}
      <div className="mt-3">{children}</div>
    </section>
  );
}

function Rows({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="divide-y divide-line rounded-xl border border-line bg-panel shadow-card">
      {rows.map(([name, value]) => (
        <div key={name} className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 px-4 py-3">
          <dt className="text-base">{name}</dt>
          <dd className="max-w-full text-base text-ink-2">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Appearance() {
  const t = useText();
  const shown = useCell(theme);
  const language = useLanguage();
  return (
    <Section title={t.settings.appearance}>
      <Rows
        rows={[
          [
            t.settings.theme,
            <Segmented
              key="theme"
              label={t.settings.theme}
              value={shown}
              onChange={setTheme}
              options={(['system', 'light', 'dark'] as const).map((value) => ({ value, label: t.settings[value] }))}
            />,
          ],
          [
            t.settings.language,
            <Segmented
              key="language"
              label={t.settings.language}
              value={language}
              onChange={(next) => void speak(next, true)}
              options={(Object.entries(LANGUAGES) as [Language, string][]).map(([value, label]) => ({ value, label }))}
            />,
          ],
        ]}
      />
    </Section>
  );
}

function Keyboard() {
  const t = useText();
  const key = (text: string) => (
    <kbd key={text} className="rounded border border-line-strong bg-sunken px-1.5 py-0.5 font-sans text-xs">
      {text}
    </kbd>
  );
  return (
    <Section title={t.settings.shortcuts}>
      <Rows
        rows={[
          [t.settings.shortcutPalette, key('Ctrl K / ⌘ K')],
          [t.settings.shortcutSearch, key('/')],
          [t.settings.shortcutAdd, key('n')],
          [t.settings.shortcutGo, key('g 1 … 5')],
          [t.settings.shortcutClose, key('Esc')],
        ]}
      />
    </Section>
  );
}

function About() {
  const t = useText();
  const { data } = useLoad(readHealth, []);
  return (
    <Section title={t.settings.about}>
      <Rows
        rows={[
          [
            'Portway',
            <span key="v" className="num">
              {data?.version ?? '…'}
            </span>,
          ],
          [
            t.settings.api,
            <a key="a" href="/api/openapi.json" className="font-mono text-sm text-accent underline underline-offset-2">
              /api/openapi.json
            </a>,
          ],
        ]}
      />
    </Section>
  );
}
