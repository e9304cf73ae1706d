import { ApiFailure, type FieldProblem, UNREACHABLE, messageOf } from '../api/http';
import { Cell, useCell } from '../store/cell';
import type { Dictionary } from './en';

export const LANGUAGES = { 'zh-CN': '简体中文', 'zh-TW': '繁體中文', en: 'English' } as const;
export type Language = keyof typeof LANGUAGES;

const SAVED = 'portway.language';
const load: Record<Language, () => Promise<{ default: Dictionary }>> = {
  en: () => import('./en'),
  'zh-CN': () => import('./zh-CN'),
  'zh-TW': () => import('./zh-TW'),
};

interface ActiveLanguage {
  language: Language;
  text: Dictionary;
}

let spoken: Cell<ActiveLanguage> | undefined;

function isLanguage(value: string | null): value is Language {
  return value !== null && value in LANGUAGES;
}

/** The saved language, else that of the address, else the browser's, else English. */
export function preferred(): Language {
  const saved = localStorage.getItem(SAVED);
  if (isLanguage(saved)) {
    return saved;
  }
  const asked = new URLSearchParams(location.search).get('lang');
  if (isLanguage(asked)) {
    return asked;
  }
  for (const tag of navigator.languages) {
    if (/^zh\b.*(Hant|TW|HK|MO)/i.test(tag)) {
      return 'zh-TW';
    }
    if (/^zh\b/i.test(tag)) {
      return 'zh-CN';
    }
    if (/^en\b/i.test(tag)) {
      return 'en';
    }
  }
  return 'en';
}

export async function speak(language: Language, save = false): Promise<void> {
  const text = (await load[language]()).default;
  if (save) {
    localStorage.setItem(SAVED, language);
  }
  document.documentElement.lang = language;
  if (spoken) {
    spoken.set({ language, text });
  } else {
    spoken = new Cell({ language, text });
  }
}

function cell(): Cell<ActiveLanguage> {
  if (!spoken) {
    throw new Error('a language is chosen before anything is shown');
  }
  return spoken;
}

export function useText(): Dictionary {
  return useCell(cell()).text;
}

export function useLanguage(): Language {
  return useCell(cell()).language;
}

/** An error for the reader: the kind in their language, the detail as the API gives it. */
export function explained(error: unknown): string {
  const t = cell().get().text;
  if (!(error instanceof ApiFailure)) {
    return messageOf(error);
  }
  if (error.code === UNREACHABLE) {
    return t.common.unreachable;
  }
  const kind = t.errors[error.code];
  return kind === undefined ? error.message : t.errorDetail(kind, error.message);
}

/**
 * What the API refused in a form. Problems stand beside the fields that they name; a text for the whole form is
 * there unless `shown` matches all of them.
 */
export function formProblems(error: unknown, shown: RegExp): { fields: FieldProblem[]; message: string | undefined } {
  const fields = error instanceof ApiFailure ? error.fields : [];
  const complete = fields.length > 0 && fields.every(({ field }) => shown.test(field));
  return { fields, message: complete ? undefined : explained(error) };
}
