import { useEffect } from 'react';
import { overlay } from '../store/shell';
import { go, SECTIONS } from './route';

const WAIT = 900;

/** Ctrl/⌘ K, `n` for a new server, `g` and a digit for a section. */
export function useShortcuts(): void {
  useEffect(() => {
    let going = 0;
    const press = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        const open = overlay.get().kind;
        if (open === 'none' || open === 'palette') {
          overlay.set({ kind: open === 'none' ? 'palette' : 'none' });
        }
        return;
      }
      const typing =
        event.target instanceof HTMLElement && event.target.matches('input, textarea, select, [contenteditable]');
      if (typing || event.metaKey || event.ctrlKey || event.altKey || document.querySelector('[role=dialog]')) {
        return;
      }
      const section = SECTIONS[Number(event.key) - 1];
      if (event.key === 'g') {
        going = event.timeStamp;
      } else if (section && event.timeStamp - going < WAIT) {
        go(section);
      } else if (event.key === 'n') {
        event.preventDefault();
        overlay.set({ kind: 'add' });
      }
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  }, []);
}
