import { useText } from '../i18n';
import { useCell } from '../store/cell';
import { counts } from '../store/servers';
import { href, SECTIONS, useRoute, type Section } from './route';

export function TabBar() {
  const t = useText();
  const { section } = useRoute();
  return (
    <nav
      aria-label={t.nav.label}
      className="mx-auto w-full max-w-6xl overflow-x-auto px-2 [scrollbar-width:none] sm:px-4"
    >
      <ul className="flex">
        {SECTIONS.map((name) => (
          <li key={name}>
            <a
              href={href(name)}
              aria-current={name === section ? 'page' : undefined}
              className="group relative flex h-10 items-center gap-1.5 px-2 text-base whitespace-nowrap text-ink-2 hover:text-ink focus-visible:outline-offset-[-3px] aria-[current]:font-medium aria-[current]:text-ink sm:px-3"
            >
              {t.nav[name]}
              <Count section={name} />
              <span
                aria-hidden
                className="absolute inset-x-2 bottom-0 h-0.5 rounded-full group-aria-[current]:bg-ink sm:inset-x-3"
              />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Count({ section }: { section: Section }) {
  const { all, tools, error } = useCell(counts);
  const n = section === 'servers' ? all : section === 'tools' ? tools : 0;
  if (n === 0) {
    return null;
  }
  const alarming = section === 'servers' && error > 0;
  return (
    <span className="num flex items-center gap-1 rounded-full bg-hover px-1.5 text-2xs font-medium text-ink-2">
      {alarming ? <span aria-hidden className="size-1.5 rounded-full bg-bad" /> : null}
      {n.toLocaleString('en')}
    </span>
  );
}
