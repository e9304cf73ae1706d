/** One listed tool as a tool of a session. */

import type { Tool, ToolInvocation, ToolResultObject } from '@github/copilot-sdk';

import { NameClash, PortwayError, reason } from './error.js';
import { isObject, type Portway } from './portway.js';

/**
 * Which tools are called without `onPermissionRequest` being asked: none; those whose server says
 * that they change nothing, which is the server's word; all.
 */
export type Permission = 'ask' | 'readOnlyHint' | 'skip';

/** A tool with arguments of any type, as a session takes them. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the SDK's own choice: no other type takes every handler.
export type AnyTool = Tool<any>;

export interface Calling {
  portway: Portway;
  timeoutMs: number;
  permission: Permission;
}

/** Other names fail the whole session, or the request to the model. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const RESULTS = new Set<unknown>(['success', 'failure', 'rejected', 'denied', 'timeout']);

/** The tools of a list from Portway. Names that a session would reject are passed to `left`. */
export function toolsOf(list: unknown, calling: Calling, left: (name: string) => void): Tool[] {
  if (!isObject(list) || !Array.isArray(list['tools'])) {
    throw new PortwayError('unexpected', 'the answer is not a list of tools');
  }
  const tools: Tool[] = [];
  for (const listed of list['tools'] as unknown[]) {
    const name = isObject(listed) ? listed['name'] : undefined;
    if (isObject(listed) && typeof name === 'string' && NAME.test(name)) {
      tools.push(toolOf(name, listed, calling));
    } else {
      left(String(name));
    }
  }
  return tools;
}

function toolOf(name: string, listed: Record<string, unknown>, calling: Calling): Tool {
  const { description, parameters, metadata, skipPermission } = listed;
  const { permission } = calling;
  const skip = permission === 'skip' || (permission === 'readOnlyHint' && skipPermission === true);
  return {
    name,
    description: typeof description === 'string' ? description : '',
    parameters: isObject(parameters) ? parameters : { type: 'object' },
    ...(isObject(metadata) && { metadata }),
    ...(skip && { skipPermission: true }),
    handler: (args, invocation) => call(name, args, invocation, calling),
  };
}

/** Never throws: the model does not see an exception of a handler. */
async function call(
  name: string,
  args: unknown,
  invocation: ToolInvocation | undefined,
  { portway, timeoutMs }: Calling,
): Promise<ToolResultObject> {
  try {
    const answer = await portway.ask({
      path: ['tools', name, 'call'],
      body: { arguments: args ?? {} },
      timeoutMs,
      signal: invocation?.signal,
    });
    return resultOf(answer.body);
  } catch (error) {
    const timedOut = error instanceof PortwayError && error.code === 'timeout';
    const text = timedOut ? `${name} timed out: ${error.message}` : `${name} could not be called: ${reason(error)}`;
    return { textResultForLlm: text, resultType: timedOut ? 'timeout' : 'failure', error: text };
  }
}

function resultOf(body: unknown): ToolResultObject {
  if (isObject(body) && typeof body['textResultForLlm'] === 'string' && RESULTS.has(body['resultType'])) {
    return body as ToolResultObject;
  }
  throw new PortwayError('unexpected', 'the answer is not a result');
}

/**
 * Your own tools, then those of Portway. None is replaced: where two have the same name it throws
 * a `NameClash`. (A session would silently take the last.)
 */
export function mergeTools(own: readonly AnyTool[], mcp: readonly AnyTool[]): AnyTool[] {
  const all = [...own, ...mcp];
  const seen = new Set<string>();
  for (const { name } of all) {
    if (seen.has(name)) throw new NameClash(name);
    seen.add(name);
  }
  return all;
}
