import { Cell, useCell } from '../store/cell';

// After the hash: the program serves one page, and an address can be shared.

export const SECTIONS = ['servers', 'tools', 'entries', 'activity', 'settings'] as const;
export type Section = (typeof SECTIONS)[number];

export interface Route {
  section: Section;
  rest: string[];
}

function parse(hash: string): Route {
  const [first, ...rest] = hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decode);
  const section = SECTIONS.find((name) => name === first) ?? 'servers';
  return { section, rest };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const route = new Cell<Route>(parse(location.hash));
window.addEventListener('hashchange', () => route.set(parse(location.hash)));

export function href(section: Section, ...rest: string[]): string {
  return `#/${[section, ...rest].map(encodeURIComponent).join('/')}`;
}

export function go(section: Section, ...rest: string[]): void {
  location.hash = href(section, ...rest);
}

export function useRoute(): Route {
  return useCell(route);
}
