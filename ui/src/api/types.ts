// Types of the API: generated from its description where that has the detail, written here where it says only
// "an object".

import type { Call, Server } from './generated';

export type {
  Activity,
  Call,
  ConsoleSession,
  EntryTool,
  Health,
  LogLine,
  Moment as HistoryItem,
  Process as ProcessInfo,
  Second,
} from './generated';
export type Status = Server['status'];
export type Transport = 'stdio' | 'http' | 'sse';

export interface ServerConfig {
  type?: string;
  transport?: Transport;
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  enabled?: boolean;
  timeout?: number;
  era?: string;
  containment?: string;
  privileges?: string;
  isolation?: string;
}

export interface Problem {
  server?: string;
  file?: string;
  field: string;
  message: string;
  line?: number;
  column?: number;
}

export type ServerRecord = Omit<Server, 'config' | 'serverInfo' | 'problems'> & {
  /** Null where the definition cannot be read; secrets are covered. */
  config: ServerConfig | null;
  serverInfo: { name?: string; version?: string; title?: string } | null;
  problems?: Problem[];
};

/** JSON Schema, as far as forms look into it. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  enumNames?: string[];
  oneOf?: { const?: unknown; title?: string }[];
  anyOf?: { const?: unknown; title?: string }[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  format?: string;
  'x-mcp-header'?: string;
}

export interface Tool {
  key?: string;
  name: string;
  title?: string;
  description?: string;
  inputSchema?: Schema;
  outputSchema?: Schema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  /** What Portway noticed about it, such as `invisible_chars`. */
  flags?: string[];
}

export interface Resource {
  uri?: string;
  uriTemplate?: string;
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
}

export interface Prompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
}

export type Outcome = NonNullable<Call['outcome']>;

export interface SourceReport {
  path: string;
  kind: string;
  error: string | null;
  problems: Problem[];
  servers: { name: string; shadowedBy: string | null; problems: Problem[] }[];
}

export interface Plan {
  added: string[];
  removed: string[];
  restarted: string[];
  kept: string[];
  problems: Problem[];
}

export interface Entry {
  id: number;
  mcp_instance_id: string;
  name: string;
  user_id: number | string;
  status: boolean;
  exposes?: { resources: string[]; prompts: string[] };
  /** Tools by pattern, beside the bindings. */
  filter?: { allow: string[]; deny: string[] } | null;
  key?: { hint?: string | null; created_at?: string | null; expires_at?: string | null; last_used_at?: string | null };
  created_at: string;
  updated_at?: string | null;
}

export interface NewEntry extends Entry {
  api_key: string;
}

export interface Binding {
  tool_id: number;
  status: boolean;
  name?: string;
}

export interface ToolRecord {
  id: number;
  name: string;
  description?: string | null;
  server: string;
  tool: string;
  /** Why the tool cannot be called now. */
  missing?: 'server' | 'tool' | 'closed' | null;
  created_at: string;
}

export interface Page<T> {
  items: T[];
  total: number;
}
