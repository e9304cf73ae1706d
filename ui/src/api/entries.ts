import { get, patch, post, remove } from './http';
import type { Binding, Entry, EntryTool, NewEntry, Page, ToolRecord } from './types';

const ENTRIES = '/api/v1/mcp_v2';
const TOOLS = '/api/v1/tools';
const PAGE = 200;
/** A bound on the number of requests, beyond any real list. */
const MOST_PAGES = 100;

async function all<T>(path: string, signal?: AbortSignal): Promise<T[]> {
  const items: T[] = [];
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found = await get<Page<T> | T[]>(`${path}?skip=${items.length}&limit=${PAGE}`, signal);
    const more = Array.isArray(found) ? found : found.items;
    items.push(...more);
    const total = Array.isArray(found) ? items.length : found.total;
    if (more.length === 0 || items.length >= total) {
      break;
    }
  }
  return items;
}

export const listEntries = (signal?: AbortSignal) => all<Entry>(ENTRIES, signal);
export const listToolRecords = (signal?: AbortSignal) => all<ToolRecord>(TOOLS, signal);
export interface ToolRecordChange {
  name?: string;
  /** Null: the server's own. */
  description?: string | null;
  server?: string;
  tool?: string;
  /** Take it even where the server does not offer the tool. */
  allow_missing?: boolean;
}
export const createToolRecord = (record: ToolRecordChange & { name: string; server: string; tool: string }) =>
  post<ToolRecord>(TOOLS, record);
export const changeToolRecord = (id: number, change: ToolRecordChange) => patch<ToolRecord>(`${TOOLS}/${id}`, change);
export const deleteToolRecord = (id: number) => remove(`${TOOLS}/${id}`);

export const createEntry = (name: string, bindings: Binding[]) =>
  post<NewEntry>(`${ENTRIES}/with_bindings`, { name, bindings });
export interface EntryChange {
  name?: string;
  status?: boolean;
  expires_at?: string | null;
  filter?: { allow: string[]; deny: string[] } | null;
  exposes?: { resources: string[]; prompts: string[] };
  /** Take servers to expose that are not there. */
  allow_missing?: boolean;
}
export const changeEntry = (id: number, change: EntryChange) => patch<Entry>(`${ENTRIES}/${id}`, change);
export const deleteEntry = (id: number) => remove(`${ENTRIES}/${id}`);
export const rotateKey = (id: number) => post<NewEntry>(`${ENTRIES}/${id}/rotate_key`);

/** The tools that clients of an entry see now, by bindings and by patterns. */
export const listEntryTools = async (id: number, signal?: AbortSignal) =>
  (await get<Page<EntryTool>>(`${ENTRIES}/${id}/tools`, signal)).items;

export async function listBindings(id: number, signal?: AbortSignal): Promise<Binding[]> {
  const found = await get<Binding[] | Page<Binding>>(`${ENTRIES}/${id}/bindings`, signal);
  return Array.isArray(found) ? found : found.items;
}
export const addBinding = (id: number, tool: number) =>
  post<Binding>(`${ENTRIES}/${id}/bindings`, { tool_id: tool, status: true });
export const changeBinding = (id: number, tool: number, status: boolean) =>
  patch<Binding>(`${ENTRIES}/${id}/bindings/${tool}`, { status });
export const deleteBinding = (id: number, tool: number) => remove(`${ENTRIES}/${id}/bindings/${tool}`);
