import { CircleAlert, Info } from 'lucide-react';
import type { ReactNode } from 'react';

interface Props {
  kind?: 'bad' | 'warn' | 'note';
  title?: string;
  className?: string;
  children?: ReactNode;
}

const KIND = {
  bad: 'border-bad-line bg-bad-soft text-bad-ink',
  warn: 'border-transparent bg-warn-soft text-warn-ink',
  note: 'border-line bg-sunken text-ink-2',
};

export function Notice({ kind = 'bad', title, className = '', children }: Props) {
  const Icon = kind === 'note' ? Info : CircleAlert;
  return (
    <div
      role={kind === 'bad' ? 'alert' : 'note'}
      className={`flex gap-2 rounded-lg border px-3 py-2.5 text-sm ${KIND[kind]} ${className}`}
    >
      <Icon size={15} aria-hidden className="mt-0.5 shrink-0" />
      <div className="min-w-0 flex-1 break-words whitespace-pre-wrap">
        {title ? <p className="font-medium">{title}</p> : null}
        {children}
      </div>
    </div>
  );
}
