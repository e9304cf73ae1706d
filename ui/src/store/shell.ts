// Dialogs above the page, and whether the browser is signed in.

import type { Entry, NewEntry, ServerRecord, ToolRecord } from '../api/types';
import { Cell } from './cell';
import { hideForms, kept } from './kept';

export type Overlay =
  | { kind: 'none' }
  | { kind: 'add' }
  | { kind: 'edit'; server: ServerRecord }
  | { kind: 'delete'; server: ServerRecord }
  | { kind: 'entry'; entry: Entry }
  /** None: a new one. */
  | { kind: 'record'; record?: ToolRecord }
  | { kind: 'connect'; entry: Entry | NewEntry }
  | { kind: 'palette' };

export const overlay = kept<Overlay>('overlay', () => ({ kind: 'none' }));
export const closeOverlay = () => overlay.set({ kind: 'none' });

export const session = new Cell<'good' | 'refused'>('good');
session.subscribe(() => hideForms(session.get() === 'refused'));
