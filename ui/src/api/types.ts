// What the API says, in its own words.

export type Status = 'disconnected' | 'connecting' | 'connected' | 'error';
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

export interface ServerRecord {
  id: string;
  name: string;
  transport: Transport | null;
  status: Status;
  state: 'stopped' | 'running' | 'error';
  /** Milliseconds since the epoch. */
  since: number;
  error: string | null;
  enabled: boolean;
  toolCount: number;
  /** Null where the definition cannot be read; secrets are covered. */
  config: ServerConfig | null;
  source: string;
  shadows?: string[];
  problems?: Problem[];
  era: 'legacy' | 'modern' | null;
  protocolVersion: string | null;
  serverInfo: { name?: string; version?: string; title?: string } | null;
  instructions: string | null;
  pid: number | null;
  containment: string | null;
  restarts: number;
}

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

export interface LogLine {
  seq: number;
  at: number;
  stream: string;
  text: string;
}

export interface ProcessInfo {
  pid: number;
  ppid: number;
  command: string;
  rssBytes: number;
  startedAt: number;
}

export interface HistoryItem {
  at: number;
  state: string;
  reason?: string | null;
}

export type Outcome = 'ok' | 'tool_error' | 'error' | 'cancelled';

export interface Call {
  id: string | number;
  server: string;
  tool: string;
  entry?: string | null;
  at: number;
  outcome?: Outcome;
  durationMs?: number;
  error?: string | null;
}

export interface Second {
  at: number;
  calls: number;
  errors: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface Activity {
  inFlight: Call[];
  recent: Call[];
  perSecond: Second[];
}

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
  created_at: string;
}

export interface Page<T> {
  items: T[];
  total: number;
}

export interface Health {
  status: string;
  version: string;
  console: string;
}
