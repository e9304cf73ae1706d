// Records of the REST API, as the tests need them.
import type { Binding, Entry, NewEntry, Page, ServerConfig, ServerRecord, ToolRecord } from '../src/api/types';
import type { Portway } from './portway.ts';

const ENTRIES = '/api/v1/mcp_v2';
const TOOLS = '/api/v1/tools';

export const createEntry = (portway: Portway, name: string, bindings: Binding[] = []) =>
  portway.api<NewEntry>('POST', `${ENTRIES}/with_bindings`, { name, bindings });
export const getEntry = (portway: Portway, id: number) => portway.api<Entry>('GET', `${ENTRIES}/${id}`);
export const deleteEntry = (portway: Portway, id: number) => portway.api<null>('DELETE', `${ENTRIES}/${id}`);

export async function findEntry(portway: Portway, name: string): Promise<Entry | undefined> {
  return (await portway.api<Page<Entry>>('GET', ENTRIES)).items.find((entry) => entry.name === name);
}

export async function listBindings(portway: Portway, entry: number): Promise<Binding[]> {
  return (await portway.api<Page<Binding>>('GET', `${ENTRIES}/${entry}/bindings`)).items;
}

export const addBinding = (portway: Portway, entry: number, tool: number) =>
  portway.api<Binding>('POST', `${ENTRIES}/${entry}/bindings`, { tool_id: tool });

export const createTool = (portway: Portway, name: string, server: string, tool: string) =>
  portway.api<ToolRecord>('POST', TOOLS, { name, server, tool });
export const deleteTool = (portway: Portway, id: number) => portway.api<null>('DELETE', `${TOOLS}/${id}`);

export async function findTool(portway: Portway, name: string): Promise<ToolRecord | undefined> {
  return (await portway.api<Page<ToolRecord>>('GET', `${TOOLS}?limit=200`)).items.find((tool) => tool.name === name);
}

export const listServers = (portway: Portway) => portway.api<ServerRecord[]>('GET', '/api/mcp/servers');

/** The definition of a server that can be read. */
export async function configOf(portway: Portway, name: string): Promise<ServerConfig> {
  const { config } = await portway.api<ServerRecord>('GET', `/api/mcp/servers/${name}`);
  if (!config) {
    throw new Error(`${name} has no valid definition`);
  }
  return config;
}
