import { Languages, Monitor, Moon, Search, Sun } from 'lucide-react';
import icon from '../icon.svg';
import { LANGUAGES, speak, useLanguage, useText, type Language } from '../i18n';
import { IconButton } from '../parts/icon-button';
import { useCell } from '../store/cell';
import { overlay } from '../store/shell';
import { setTheme, theme, type Theme } from '../store/theme';
import { LinkState } from './link-state';
import { TabBar } from './tab-bar';

export function Header() {
  return (
    <header className="sticky top-0 z-30 border-b border-line bg-canvas/85 backdrop-blur-md">
      <div className="mx-auto flex h-13 w-full max-w-6xl items-center gap-2 px-4 sm:px-6">
        <a href="#/servers" className="flex items-center gap-2.5 rounded-md text-lg font-semibold tracking-tight">
          <img src={icon} alt="" className="size-6" />
          Portway
        </a>
        <LinkState />
        <div className="flex-1" />
        <PaletteButton />
        <LanguageChoice />
        <ThemeButton />
      </div>
      <TabBar />
    </header>
  );
}

const KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K';

function PaletteButton() {
  const t = useText();
  const open = () => overlay.set({ kind: 'palette' });
  return (
    <>
      <button
        type="button"
        onClick={open}
        data-tip={t.palette.open}
        className="hidden h-8 w-52 items-center gap-2 rounded-md border border-line-strong bg-panel px-2.5 text-sm text-ink-3 shadow-card hover:border-control md:flex"
      >
        <Search size={13} aria-hidden />
        <span className="flex-1 text-left">{t.common.search}</span>
        <kbd aria-hidden className="rounded border border-line bg-sunken px-1 font-sans text-2xs">
          {KEYS}
        </kbd>
      </button>
      <IconButton label={t.palette.open} onClick={open} className="md:hidden">
        <Search size={16} aria-hidden />
      </IconButton>
    </>
  );
}

function LanguageChoice() {
  const t = useText();
  const current = useLanguage();
  return (
    <div
      data-tip={t.settings.language}
      className="relative grid size-8 place-items-center rounded-md text-ink-2 hover:bg-hover hover:text-ink has-focus-visible:outline-2 has-focus-visible:outline-accent"
    >
      <Languages size={16} aria-hidden />
      <select
        aria-label={t.settings.language}
        value={current}
        onChange={(event) => void speak(event.target.value as Language, true)}
        className="absolute inset-0 cursor-pointer opacity-0 [&>option]:bg-raised [&>option]:text-ink"
      >
        {Object.entries(LANGUAGES).map(([language, name]) => (
          <option key={language} value={language}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

const THEMES: Theme[] = ['system', 'light', 'dark'];
const ICONS = { system: Monitor, light: Sun, dark: Moon };

function ThemeButton() {
  const t = useText();
  const current = useCell(theme);
  const next = THEMES[(THEMES.indexOf(current) + 1) % THEMES.length] ?? 'system';
  const Icon = ICONS[current];
  return (
    <IconButton label={`${t.settings.theme}: ${t.settings[current]}`} onClick={() => setTheme(next)}>
      <Icon size={16} aria-hidden />
    </IconButton>
  );
}
