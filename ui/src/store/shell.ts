// What is open above the page, and who is signed in.

import type { ServerRecord } from '../api/types';
import { Cell } from './cell';

export type Overlay =
  | { kind: 'none' }
  | { kind: 'add' }
  | { kind: 'edit'; server: ServerRecord }
  | { kind: 'delete'; server: ServerRecord }
  | { kind: 'palette' };

export const overlay = new Cell<Overlay>({ kind: 'none' });
export const closeOverlay = () => overlay.set({ kind: 'none' });

export const session = new Cell<'good' | 'refused'>('good');
