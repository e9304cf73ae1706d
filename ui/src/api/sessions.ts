// The browsers that are signed in to the console.

import { get, remove } from './http';
import type { ConsoleSession } from './types';

const BASE = '/api/console/sessions';

export const listSessions = (signal?: AbortSignal) => get<ConsoleSession[]>(BASE, signal);
export const endSession = (id: string) => remove(`${BASE}/${encodeURIComponent(id)}`);
/** All but the session that asks. */
export const endOtherSessions = () => remove(BASE);
