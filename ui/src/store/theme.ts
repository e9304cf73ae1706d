import { Cell } from './cell';

export type Theme = 'system' | 'light' | 'dark';
const SAVED = 'portway.theme';

function saved(): Theme {
  const value = localStorage.getItem(SAVED);
  return value === 'light' || value === 'dark' ? value : 'system';
}

export const theme = new Cell<Theme>(saved());

function apply(): void {
  const value = theme.get();
  if (value === 'system') {
    delete document.documentElement.dataset['theme'];
  } else {
    document.documentElement.dataset['theme'] = value;
  }
}

export function setTheme(value: Theme): void {
  localStorage.setItem(SAVED, value);
  theme.set(value);
}

theme.subscribe(apply);
apply();
