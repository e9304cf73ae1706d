// The console as an MCP client of one server, in the 2026-07-28 way: every
// request stands alone, and a question of the server ends it.

import { changeHeaders, failure, reach } from './http';
import { eventsOf } from './sse';
import type { Schema } from './types';

const VERSION = '2026-07-28';
const META = 'io.modelcontextprotocol/';

export interface Content {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
  resource?: ResourceContent;
}

export interface ResourceContent {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

export interface PromptMessage {
  role: string;
  content: Content;
}

export interface InputRequest {
  method: string;
  params: { mode?: string; message?: string; url?: string; requestedSchema?: Schema };
}

export interface InputResponse {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown>;
}

export interface CallResult {
  resultType?: string;
  /** Of a tool. */
  content?: Content[];
  structuredContent?: unknown;
  isError?: boolean;
  /** Of a resource. */
  contents?: ResourceContent[];
  /** Of a prompt. */
  messages?: PromptMessage[];
  inputRequests?: Record<string, InputRequest>;
  requestState?: string;
}

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

export type McpRequest =
  /** The schema says which arguments the headers repeat. */
  | { method: 'tools/call'; params: { name: string; arguments: Record<string, unknown> }; schema: Schema | undefined }
  | { method: 'prompts/get'; params: { name: string; arguments: Record<string, unknown> } }
  | { method: 'resources/read'; params: { uri: string } };

export interface CallOptions {
  server: string;
  request: McpRequest;
  answers?: Record<string, InputResponse> | undefined;
  requestState?: string | undefined;
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
  onLog: (text: string) => void;
}

/** An error of the protocol, not of a tool. */
export class RpcFailure extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

interface Message {
  id?: string | number;
  method?: string;
  params?: Progress & { level?: string; data?: unknown };
  result?: CallResult;
  error?: { code: number; message: string; data?: unknown };
}

let lastId = 0;

export async function call(options: CallOptions): Promise<CallResult> {
  lastId += 1;
  const id = `console-${lastId}`;
  const { request } = options;
  const params = {
    ...request.params,
    ...(options.answers ? { inputResponses: options.answers } : {}),
    ...(options.requestState === undefined ? {} : { requestState: options.requestState }),
    _meta: {
      [`${META}protocolVersion`]: VERSION,
      [`${META}clientInfo`]: { name: 'portway-console', version: '0.1.0' },
      [`${META}clientCapabilities`]: { elicitation: { form: {}, url: {} } },
      [`${META}logLevel`]: 'info',
      progressToken: id,
    },
  };
  const response = await reach(`/api/mcp/servers/${encodeURIComponent(options.server)}/mcp`, {
    method: 'POST',
    signal: options.signal,
    headers: {
      ...changeHeaders(),
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': request.method,
      'mcp-name': headerValue('uri' in request.params ? request.params.uri : request.params.name),
      ...(request.method === 'tools/call' ? mirrored(request.schema, request.params.arguments) : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: request.method, params }),
  });
  const kind = response.headers.get('content-type') ?? '';
  if (kind.startsWith('text/event-stream')) {
    return streamed(response, options);
  }
  const copy = response.clone();
  const message = (await response.json().catch(() => ({}))) as Message;
  if (message.result === undefined && typeof message.error?.code !== 'number') {
    throw await failure(copy);
  }
  return outcome(message);
}

async function streamed(response: Response, options: CallOptions): Promise<CallResult> {
  for await (const text of eventsOf(response)) {
    const message = JSON.parse(text) as Message;
    if (message.method === 'notifications/progress' && message.params) {
      options.onProgress(message.params);
    } else if (message.method === 'notifications/message' && message.params) {
      const { data } = message.params;
      options.onLog(typeof data === 'string' ? data : JSON.stringify(data));
    } else if (message.result !== undefined || message.error !== undefined) {
      return outcome(message);
    }
  }
  throw new RpcFailure(-32603, 'the answer broke off', undefined);
}

function outcome(message: Message): CallResult {
  if (message.error) {
    throw new RpcFailure(message.error.code, message.error.message, message.error.data);
  }
  return message.result ?? {};
}

/** Arguments that the schema wants in the headers too. */
function mirrored(schema: Schema | undefined, values: Record<string, unknown>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const value = values[name];
    const header = property['x-mcp-header'];
    if (header && (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')) {
      headers[`Mcp-Param-${header}`] = headerValue(String(value));
    } else if (typeof value === 'object' && value !== null && property.properties) {
      Object.assign(headers, mirrored(property, value as Record<string, unknown>));
    }
  }
  return headers;
}

function headerValue(value: string): string {
  const plain = /^[\x20-\x7e]*$/.test(value) && value === value.trim() && !/^=\?base64\?.*\?=$/.test(value);
  if (plain) {
    return value;
  }
  const bytes = new TextEncoder().encode(value);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}?=`;
}
