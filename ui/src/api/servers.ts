import { get, getTagged, patch, post, put, remove } from './http';
import type {
  Activity,
  Health,
  HistoryItem,
  LogLine,
  Plan,
  ProcessInfo,
  Prompt,
  Resource,
  ServerConfig,
  ServerRecord,
  SourceReport,
  Tool,
} from './types';

const BASE = '/api/mcp';

export type ServerAction = 'start' | 'stop' | 'restart';
export type NewServer = ServerConfig & { name: string; autoStart?: boolean };

function one(server: string): string {
  return `${BASE}/servers/${encodeURIComponent(server)}`;
}

export const listServers = (signal?: AbortSignal) => get<ServerRecord[]>(`${BASE}/servers`, signal);
export const getServer = (server: string) => getTagged<ServerRecord>(one(server));
export const createServer = (server: NewServer) => post<ServerRecord>(`${BASE}/servers`, server);
export const replaceServer = (server: string, config: ServerConfig & { name?: string }, tag: string | undefined) =>
  put<ServerRecord>(one(server), config, tag);
export const patchServer = (server: string, change: Partial<ServerConfig> & { name?: string }) =>
  patch<ServerRecord>(one(server), change);
export const deleteServer = (server: string) => remove(one(server));
export const runAction = (server: string, what: ServerAction) => post<ServerRecord>(`${one(server)}/${what}`);

export const listTools = (server: string, signal?: AbortSignal) => get<Tool[]>(`${one(server)}/tools`, signal);
export const listResources = (server: string, signal?: AbortSignal) =>
  get<Resource[]>(`${one(server)}/resources`, signal);
export const listPrompts = (server: string, signal?: AbortSignal) => get<Prompt[]>(`${one(server)}/prompts`, signal);
export const readLog = (server: string, from: number, signal?: AbortSignal) =>
  get<LogLine[]>(`${one(server)}/logs?from=${from}&limit=1000`, signal);
export const listProcesses = async (server: string, signal?: AbortSignal) =>
  (await get<{ processes: ProcessInfo[] }>(`${one(server)}/process`, signal)).processes;
export const readHistory = (server: string, signal?: AbortSignal) =>
  get<HistoryItem[]>(`${one(server)}/history`, signal);

export const readActivity = (limit: number, signal?: AbortSignal) =>
  get<Activity>(`${BASE}/activity?limit=${limit}`, signal);
export const listSources = (signal?: AbortSignal) => get<SourceReport[]>(`${BASE}/sources`, signal);
export const planFile = (text: string) => post<Plan>(`${BASE}/plan`, { file: text });
export const readHealth = (signal?: AbortSignal) => get<Health>('/healthz', signal);
