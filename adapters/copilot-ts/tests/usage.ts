// What a program writes: only compiled, with the types that are published.

import { approveAll, CopilotClient, defineTool } from '@github/copilot-sdk';

import { mergeTools, NameClash, PortwayError, portwayTools } from '../dist/index.js';

const word = defineTool<{ word: string }>('word', {
  parameters: { type: 'object' },
  handler: ({ word }) => word,
});

export async function program(client: CopilotClient, url: string, key: string): Promise<string> {
  const onPermissionRequest = approveAll;
  let stale = false;
  const portway = await portwayTools({ url, key, own: [word], permission: 'ask', onChange: () => (stale = true) });
  let session = await client.createSession({ tools: portway.tools, onPermissionRequest });
  if (stale || (await portway.refresh())) {
    await session.disconnect();
    session = await client.resumeSession(session.sessionId, { tools: portway.tools, onPermissionRequest });
  }
  portway.close();
  return session.sessionId;
}

export function reason(error: unknown): string {
  if (error instanceof NameClash) return error.toolName;
  return error instanceof PortwayError && error.code === 'denied' ? 'the key' : 'another';
}

export const merged = mergeTools([word], []).length;
