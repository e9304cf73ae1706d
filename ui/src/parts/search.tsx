import { Search as Glass } from 'lucide-react';
import { useEffect, useRef } from 'react';

interface Props {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** The page's own search: `/` goes there. */
  main?: boolean;
  autoFocus?: boolean;
}

export function Search({ label, value, onChange, main = false, autoFocus = false }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!main) {
      return undefined;
    }
    const go = (event: KeyboardEvent) => {
      const typing =
        event.target instanceof HTMLElement && event.target.matches('input, textarea, select, [contenteditable]');
      if (
        event.key === '/' &&
        !typing &&
        !event.metaKey &&
        !event.ctrlKey &&
        !document.querySelector('[role=dialog]')
      ) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    window.addEventListener('keydown', go);
    return () => window.removeEventListener('keydown', go);
  }, [main]);
  return (
    <div className="relative min-w-0 flex-1">
      <Glass
        size={14}
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2.5 -translate-y-1/2 text-ink-3"
      />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        autoFocus={autoFocus}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape' && value) {
            event.stopPropagation();
            onChange('');
          }
        }}
        className="field h-8.5 pl-8 [&::-webkit-search-cancel-button]:hidden"
      />
    </div>
  );
}
