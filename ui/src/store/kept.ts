// What a person has typed, by the name of the form. It outlives the form: a
// changed section, a new sign-in, and a reload of the page that the console
// itself asks for, by a button or on the sign-in page.

import { useMemo } from 'react';
import { BadText } from './bad-text';
import { Cell, useCell } from './cell';

const SAVED = 'portway.kept';
const BAD = '$portway.badText';
/** The address after the hash: the printed link has none. */
const PLACE = '$portway.place';

const cells = new Map<string, Cell<unknown>>();
const saved = new Map(Object.entries(takeSaved()));

/** `initial` is used where nothing is kept under that key. */
export function kept<T>(key: string, initial: () => T): Cell<T> {
  let cell = cells.get(key) as Cell<T> | undefined;
  if (!cell) {
    cell = new Cell(saved.has(key) ? (saved.get(key) as T) : initial());
    cells.set(key, cell);
  }
  return cell;
}

export function useKept<T>(key: string, initial: () => T): [T, (value: T) => void] {
  // The key alone decides which cell it is.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const cell = useMemo(() => kept(key, initial), [key]);
  return [useCell(cell), (value) => cell.set(value)];
}

/** The form is done with: the next one of that name starts anew. */
export function forget(key: string): void {
  cells.delete(key);
  saved.delete(key);
}

/** Forms that hold something which leaving the page would lose. */
const unsaved = new Set<string>();

export function setUnsaved(key: string, is: boolean): void {
  if (is) {
    unsaved.add(key);
  } else if (!hidden) {
    unsaved.delete(key);
  }
}

/** Without a session no form is shown, but its input is still unsaved. */
let hidden = false;

export function hideForms(is: boolean): void {
  hidden = is;
  if (!is) {
    // The forms that are shown again say so themselves.
    unsaved.clear();
  }
}

let reloading = false;
window.addEventListener('beforeunload', (event) => {
  if (unsaved.size > 0 && !reloading) {
    event.preventDefault();
  }
});

// Signing in by the link that Portway printed loads the page anew.
window.addEventListener('pagehide', () => hidden && save());
// A page that comes back as it was left needs nothing of what was saved.
window.addEventListener('pageshow', (event) => event.persisted && sessionStorage.removeItem(SAVED));

/** Loads the page anew, such as after an upgrade; what was typed comes back. */
export function reloadPage(): void {
  reloading = save();
  location.reload();
}

/** False: there was no room for it, and the browser asks before it throws anything away. */
function save(): boolean {
  const values = {
    ...Object.fromEntries(saved),
    ...Object.fromEntries([...cells].map(([key, cell]) => [key, cell.get()])),
    [PLACE]: location.hash,
  };
  const text = JSON.stringify(values, (_, value: unknown) =>
    value instanceof BadText ? { [BAD]: value.text } : value,
  );
  try {
    sessionStorage.setItem(SAVED, text);
    return true;
  } catch {
    return false;
  }
}

/** Read once: nothing of it stays in the browser's storage. */
function takeSaved(): Record<string, unknown> {
  try {
    const text = sessionStorage.getItem(SAVED) ?? '{}';
    sessionStorage.removeItem(SAVED);
    const { [PLACE]: place, ...values } = JSON.parse(text, (_, value: unknown) => {
      const bad = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[BAD] : undefined;
      return typeof bad === 'string' ? new BadText(bad) : value;
    }) as Record<string, unknown>;
    if (location.hash === '' && typeof place === 'string') {
      location.hash = place;
    }
    return values;
  } catch {
    return {};
  }
}
