import type { ReactNode } from 'react';

const TONE = {
  plain: 'border-line bg-sunken text-ink-2',
  accent: 'border-accent-line bg-accent-soft text-accent',
  good: 'border-transparent bg-good-soft text-good-ink',
  warn: 'border-transparent bg-warn-soft text-warn-ink',
  bad: 'border-transparent bg-bad-soft text-bad-ink',
};

export function Badge({ tone = 'plain', children }: { tone?: keyof typeof TONE; children: ReactNode }) {
  return (
    <span
      className={`inline-flex h-5 items-center rounded border px-1.5 text-2xs font-medium whitespace-nowrap ${TONE[tone]}`}
    >
      {children}
    </span>
  );
}
