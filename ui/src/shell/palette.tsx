import * as Radix from '@radix-ui/react-dialog';
import { Search } from 'lucide-react';
import { useId, useMemo, useState } from 'react';
import { useText } from '../i18n';
import { Scrim } from '../parts/dialog';
import { useOrigin } from '../parts/origin';
import { useCatalog } from '../store/tools';
import { commands, type Command } from './commands';

const MOST = 60;

export default function Palette({ onClose }: { onClose: () => void }) {
  const t = useText();
  const id = useId();
  const origin = useOrigin();
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const { tools } = useCatalog();
  const all = useMemo(() => commands(t, tools), [t, tools]);
  const found = useMemo(() => match(all, query), [all, query]);
  const chosen = Math.min(at, found.length - 1);

  const run = (command: Command | undefined) => {
    if (command) {
      onClose();
      command.run();
    }
  };
  const press = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((chosen + step + found.length) % Math.max(found.length, 1));
    } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault();
      run(found[chosen]);
    }
  };

  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Scrim />
        <Radix.Content
          {...origin}
          aria-describedby={undefined}
          className="fixed inset-x-4 top-[10dvh] z-50 mx-auto flex max-h-[70dvh] max-w-xl animate-rise flex-col overflow-hidden rounded-xl border border-line bg-raised shadow-pop focus:outline-none"
        >
          <Radix.Title className="sr-only">{t.palette.title}</Radix.Title>
          <div className="flex items-center gap-2.5 border-b border-line px-4">
            <Search size={16} aria-hidden className="text-ink-3" />
            <input
              role="combobox"
              aria-expanded
              aria-controls={`${id}-list`}
              aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
              aria-label={t.palette.placeholder}
              placeholder={t.palette.placeholder}
              autoFocus
              value={query}
              onChange={(event) => {
                setQuery(event.target.value);
                setAt(0);
              }}
              onKeyDown={press}
              className="h-12 min-w-0 flex-1 bg-transparent text-lg outline-none placeholder:text-ink-3"
            />
          </div>
          <ul
            id={`${id}-list`}
            role="listbox"
            aria-label={t.palette.title}
            className="min-h-0 flex-1 overflow-y-auto p-2"
          >
            {found.map((command, index) => (
              <li
                key={command.id}
                id={`${id}-${index}`}
                role="option"
                aria-selected={index === chosen}
                ref={index === chosen ? (node) => node?.scrollIntoView({ block: 'nearest' }) : undefined}
                onPointerMove={() => setAt(index)}
                onClick={() => run(command)}
                className="flex h-10 items-center gap-3 rounded-md px-2.5 text-base aria-selected:bg-hover"
              >
                <span className="text-ink-3">{command.icon}</span>
                <span className="min-w-0 flex-1 truncate">{command.title}</span>
                <span className="shrink-0 text-xs text-ink-3">{command.group}</span>
              </li>
            ))}
          </ul>
          {found.length === 0 ? (
            <p className="px-4 pb-6 text-center text-base text-ink-2">{t.palette.nothing}</p>
          ) : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** All words must occur; titles that begin with the query come first. */
function match(all: Command[], query: string): Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return all.filter((command) => !command.deep).slice(0, MOST);
  }
  const found = all.filter((command) => words.every((word) => command.haystack.includes(word)));
  const first = words[0] ?? '';
  const rank = (command: Command) => (command.title.toLowerCase().startsWith(first) ? 0 : 1);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
}
