import { memo, type ReactNode } from 'react';
import type { Second } from '../../api/types';
import { useLanguage, useText } from '../../i18n';
import { percent } from '../../parts/time';
import { Bars, Lines } from './chart';

function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) {
    return '–';
  }
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

function newest(seconds: Second[], key: 'p50' | 'p95' | 'p99'): number | null {
  return seconds.findLast((second) => second[key] !== null)?.[key] ?? null;
}

/** Drawn anew when there are new figures, which is more seldom than new calls. */
export const Charts = memo(function Charts({ seconds }: { seconds: Second[] }) {
  const t = useText();
  const language = useLanguage();
  const total = seconds.reduce((sum, second) => sum + second.calls, 0);
  const failed = seconds.reduce((sum, second) => sum + second.errors, 0);
  const last = seconds.at(-2) ?? seconds.at(-1);
  const rate = seconds.map((second) => (second.calls > 0 ? (second.errors / second.calls) * 100 : null));
  return (
    <div className="grid gap-3 md:grid-cols-3">
      <Card
        title={t.activity.perSecond}
        value={String(last?.calls ?? 0)}
        note={t.activity.peak(Math.max(0, ...seconds.map((second) => second.calls)))}
      >
        <Bars
          label={t.activity.perSecond}
          values={seconds.map((second) => second.calls)}
          bad={seconds.map((second) => second.errors)}
        />
      </Card>
      <Card
        title={t.activity.errors}
        value={percent(total > 0 ? failed / total : 0, language)}
        alarming={failed > 0}
        note={t.activity.lastMinutes(Math.max(1, Math.round(seconds.length / 60)))}
      >
        <Lines label={t.activity.errors} most={100} lines={[{ values: rate, className: 'text-bad' }]} />
      </Card>
      <Card
        title={t.activity.latency}
        value={ms(newest(seconds, 'p50'))}
        note={
          <>
            <Key className="bg-accent" text={`p50 ${ms(newest(seconds, 'p50'))}`} />
            <Key className="bg-warn" text={`p95 ${ms(newest(seconds, 'p95'))}`} />
            <Key className="bg-bad" text={`p99 ${ms(newest(seconds, 'p99'))}`} />
          </>
        }
      >
        <Lines
          label={t.activity.latency}
          lines={[
            { values: seconds.map((second) => second.p99), className: 'text-bad' },
            { values: seconds.map((second) => second.p95), className: 'text-warn' },
            { values: seconds.map((second) => second.p50), className: 'text-accent' },
          ]}
        />
      </Card>
    </div>
  );
});

interface CardProps {
  title: string;
  value: string;
  note?: ReactNode;
  alarming?: boolean;
  children: ReactNode;
}

function Card({ title, value, note, alarming = false, children }: CardProps) {
  return (
    <section aria-label={title} className="overflow-hidden rounded-xl border border-line bg-panel shadow-card">
      <div className="px-4 pt-3.5">
        <h2 className="text-sm text-ink-2">{title}</h2>
        <p className={`num text-xl font-semibold tracking-tight ${alarming ? 'text-bad-ink' : ''}`}>{value}</p>
        <div className="num flex h-5 gap-3 text-2xs text-ink-2">{note}</div>
      </div>
      {children}
    </section>
  );
}

function Key({ className, text }: { className: string; text: string }) {
  return (
    <span className="flex items-center gap-1 whitespace-nowrap">
      <span aria-hidden className={`size-1.5 rounded-full ${className}`} />
      {text}
    </span>
  );
}
