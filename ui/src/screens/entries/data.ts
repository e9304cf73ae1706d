import { createToolRecord } from '../../api/entries';
import type { Binding, Entry, ToolRecord } from '../../api/types';
import type { CatalogTool } from '../../store/tools';

export interface EntryData {
  entries: Entry[];
  records: ToolRecord[];
  bindings: Map<number, Binding[]>;
}

/**
 * The record of each tool, made where there is none. Two tools of one name
 * cannot be in one entry: those get their server's name in front.
 */
export async function recordsFor(tools: CatalogTool[], known: ToolRecord[], inFull = false): Promise<ToolRecord[]> {
  const counted = new Map<string, number>();
  tools.forEach((tool) => counted.set(tool.name, (counted.get(tool.name) ?? 0) + 1));
  const found: ToolRecord[] = [];
  for (const tool of tools) {
    const name = inFull || (counted.get(tool.name) ?? 0) > 1 ? `${tool.server}_${tool.name}` : tool.name;
    const same = known.filter((record) => record.server === tool.server && record.tool === tool.name);
    const record = same.find((one) => one.name === name);
    found.push(record ?? (await createToolRecord({ name, server: tool.server, tool: tool.name })));
  }
  return found;
}
