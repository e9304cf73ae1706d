import type { ReactNode } from 'react';
import type { ButtonProps } from './button';

interface Props extends Omit<ButtonProps, 'kind' | 'small' | 'busy'> {
  label: string;
  /** Shown instead of the label; the label may name the thing in full. */
  hint?: string;
  children: ReactNode;
}

export function IconButton({ label, hint, className = '', children, ...rest }: Props) {
  return (
    <button
      type="button"
      aria-label={label}
      data-tip={hint ?? label}
      className={`inline-grid size-8 shrink-0 place-items-center rounded-md text-ink-2 transition-colors hover:bg-hover hover:text-ink disabled:pointer-events-none disabled:opacity-40 ${className}`}
      {...rest}
    >
      {children}
    </button>
  );
}
