// The element that had the focus before a dialog or a menu opened, so that it gets the focus back.

import { useCallback, useState, type RefObject } from 'react';
import { Cell } from '../store/cell';

/** By the content of a dialog: the element that had the focus before. */
const origins = new WeakMap<Element, Element | null>();

/** The contents of open dialogs, in the order in which they opened. */
let open: readonly Element[] = [];
/** The topmost dialog. Notices are rendered into it, because the keyboard reaches nothing outside. */
export const topmost = new Cell<Element | undefined>(undefined);

function setOpen(next: readonly Element[]): void {
  open = next;
  topmost.set(next.at(-1));
}

interface Origin {
  ref: (content: Element | null) => void;
  onCloseAutoFocus: (event: Event) => void;
  onInteractOutside: (event: Event) => void;
}

/** For the content of a dialog that has no trigger of its own. */
export function useOrigin(): Origin {
  const [before] = useState(() => document.activeElement);
  const ref = useCallback(
    (content: Element | null) => {
      if (!content) {
        return undefined;
      }
      origins.set(content, before);
      setOpen([...open, content]);
      return () => setOpen(open.filter((one) => one !== content));
    },
    [before],
  );
  return {
    ref,
    onCloseAutoFocus: (event) => {
      event.preventDefault();
      focus(before);
    },
    onInteractOutside: (event) => {
      if (event.target instanceof Element && event.target.closest('[data-above]')) {
        event.preventDefault();
      }
    },
  };
}

function focus(before: Element | null): void {
  const place = present(before) ?? document.getElementById('main');
  if (place instanceof HTMLElement) {
    place.focus({ preventScroll: place.id === 'main' });
  }
}

/** The element may be gone by now: then the one that opened it, and so on. */
function present(element: Element | null | undefined): Element | undefined {
  let found = element;
  while (found && found !== document.body) {
    if (found.isConnected && !found.closest('[role=menu]')) {
      return found;
    }
    const menu = found.closest('[role=menu]');
    const dialog = found.closest('[role=dialog]');
    found = menu
      ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '')
      : dialog
        ? origins.get(dialog)
        : undefined;
  }
  return undefined;
}

/** For an element that comes and goes: if it has the focus when it goes, `next` gets it. */
export function useHandOver(next: RefObject<HTMLElement | null>): (element: HTMLElement | null) => () => void {
  return useCallback(
    (element) => () => {
      if (element === document.activeElement) {
        next.current?.focus();
      }
    },
    [next],
  );
}
