import { Check, CircleAlert } from 'lucide-react';
import { Cell, useCell } from '../store/cell';

interface Message {
  id: number;
  kind: 'good' | 'bad';
  title: string;
  text?: string | undefined;
}

const messages = new Cell<readonly Message[]>([]);
const STAY = 3_500;
const STAY_BAD = 9_000;
let last = 0;

export function toast(kind: Message['kind'], title: string, text?: string): void {
  last += 1;
  const id = last;
  messages.set([...messages.get(), { id, kind, title, text }].slice(-3));
  window.setTimeout(
    () => messages.set(messages.get().filter((message) => message.id !== id)),
    kind === 'bad' ? STAY_BAD : STAY,
  );
}

export function Toasts() {
  const shown = useCell(messages);
  return (
    <div
      data-above
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed right-0 bottom-0 z-70 flex w-full max-w-sm flex-col gap-2 p-4"
    >
      {shown.map((message) => (
        <div
          key={message.id}
          className="pointer-events-auto flex animate-rise gap-2.5 rounded-lg border border-line bg-raised px-3.5 py-3 shadow-pop"
        >
          {message.kind === 'good' ? (
            <Check size={16} aria-hidden className="mt-0.5 shrink-0 text-good" />
          ) : (
            <CircleAlert size={16} aria-hidden className="mt-0.5 shrink-0 text-bad" />
          )}
          <div className="min-w-0 text-base">
            <p className="font-medium">{message.title}</p>
            {message.text ? <p className="line-clamp-4 text-sm break-words text-ink-2">{message.text}</p> : null}
          </div>
        </div>
      ))}
    </div>
  );
}
