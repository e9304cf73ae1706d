import { useRef } from 'react';
import { Copy } from './copy';

/** Text to look at or take along, as it is. */
export function Code({ text, className = '' }: { text: string; className?: string }) {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <div className={`group relative rounded-lg border border-line bg-sunken ${className}`}>
      <pre
        ref={shown}
        tabIndex={0}
        className="overflow-x-auto p-3 font-mono text-xs leading-5 whitespace-pre-wrap break-words"
      >
        {text}
      </pre>
      <div className="absolute top-1.5 right-1.5 opacity-0 transition-opacity group-hover:opacity-100 focus-within:opacity-100">
        <Copy text={text} shown={shown} />
      </div>
    </div>
  );
}
