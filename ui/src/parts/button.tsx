import type { ButtonHTMLAttributes, MouseEvent, Ref } from 'react';

type Kind = 'solid' | 'plain' | 'ghost' | 'danger';

const KIND: Record<Kind, string> = {
  solid: 'bg-solid text-on-ink hover:bg-solid-hover shadow-card',
  plain: 'border border-line-strong bg-panel text-ink hover:bg-hover shadow-card',
  ghost: 'text-ink-2 hover:bg-hover hover:text-ink',
  danger: 'bg-bad-ink text-panel hover:opacity-90 shadow-card',
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  small?: boolean;
  /** At work: it does nothing, and keeps the focus, which a disabled one would lose. */
  busy?: boolean;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  kind = 'plain',
  small = false,
  className = '',
  type = 'button',
  busy = false,
  onClick,
  ...rest
}: ButtonProps) {
  const size = small ? 'h-7 gap-1.5 px-2 text-sm' : 'h-8.5 gap-2 px-3 text-base';
  return (
    <button
      type={type}
      className={`inline-flex shrink-0 items-center justify-center rounded-md font-medium whitespace-nowrap transition-colors select-none disabled:pointer-events-none disabled:opacity-50 aria-disabled:opacity-50 ${size} ${KIND[kind]} ${className}`}
      {...rest}
      {...(busy ? { 'aria-disabled': true, onClick: nothing } : { onClick })}
    />
  );
}

/** Nor does a busy button submit its form, whether by a click or by Enter in a field. */
function nothing(event: MouseEvent): void {
  event.preventDefault();
}
