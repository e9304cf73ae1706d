// Made by `node tests/types.mjs` from /api/openapi.json; not to be edited.

export type Activity = {
  inFlight: (Call)[];
  recent: (Call)[];
  perSecond: (Second)[];
  dropped: number;
};

export type Binding = {
  tool_id: number;
};

export type Call = {
  id: number;
  server: string;
  tool: string;
  entry: number | null;
  principal: string;
  at: number;
  durationMs?: number;
  outcome?: "ok" | "tool_error" | "error" | "cancelled";
  error?: string;
};

export type Candidate = Record<string, unknown>;

export type Definition = Record<string, unknown>;

export type Error = {
  error: {
    code: string;
    message: string;
    details?: unknown;
  };
};

export type Health = {
  status: string;
  version: string;
  console: "embedded" | "missing";
};

export type LogLine = {
  seq: number;
  at: number;
  stream: string;
  text: string;
};

export type Message = Record<string, unknown> | (unknown)[];

export type Moment = {
  at: number;
  state: "disconnected" | "connecting" | "connected" | "error";
  reason: string | null;
};

export type NewBoundEntry = {
  name: string;
  bindings: (Binding)[];
};

export type NewEntry = {
  name: string;
};

export type NewServer = {
  name: string;
  autoStart?: boolean;
};

export type NewTool = {
  name: string;
  server: string;
  tool: string;
};

export type Object = Record<string, unknown>;

export type Process = {
  pid: number;
  ppid: number;
  command: string;
  rssBytes: number;
  startedAt: number;
};

export type Processes = {
  processes: (Process)[];
};

export type Ready = {
  status: string;
};

export type Second = {
  at: number;
  calls: number;
  errors: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
};

export type Server = {
  id: string;
  name: string;
  transport: "stdio" | "http" | "sse" | null;
  status: "disconnected" | "connecting" | "connected" | "error";
  state: "stopped" | "running" | "error";
  since: number;
  error: string | null;
  enabled: boolean;
  toolCount: number;
  config: Record<string, unknown> | null;
  source: string;
  era: "legacy" | "modern" | null;
  protocolVersion: string | null;
  serverInfo: Record<string, unknown> | null;
  instructions: string | null;
  pid: number | null;
  containment: string | null;
  restarts: number;
  shadows?: (string)[];
  problems?: (Record<string, unknown>)[];
};

export type Switch = {
  status: boolean;
};
