// Generated from /api/openapi.json by `npm run types`. Do not edit.

export type Activity = {
  inFlight: (Call)[];
  recent: (Call)[];
  perSecond: (Second)[];
  dropped: number;
};

export type AnthropicResult = {
  type: "tool_result";
  content: ({ [name: string]: unknown })[];
  is_error: boolean;
  tool_use_id?: string;
};

export type AnthropicTool = {
  name: string;
  description: string;
  input_schema: {
    type: "object";
    properties: { [name: string]: unknown };
  };
};

export type BindableServer = {
  name: string;
  connected: boolean;
  tools: number;
};

export type BindableTool = {
  server: string;
  tool: string;
  key: string;
  title: string | null;
  description: string | null;
  inputSchema: unknown;
};

export type Binding = {
  tool_id: number;
  status: boolean;
  name: string;
  description: string | null;
  server: string;
  tool: string;
  missing: "server" | "tool" | "closed" | null;
  created_at: string;
};

export type BindingChange = {
  status: true | false | 1 | 0;
};

export type Bindings = {
  items: (Binding)[];
  total: number;
};

export type Bound = Binding | Bindings;

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

export type Candidate = {
  file: string;
} | {
  mcpServers: { [name: string]: unknown } | null;
  file?: unknown;
} | NewServer;

export type Catalog = {
  items: (BindableTool)[];
  total: number;
  servers: (BindableServer)[];
};

export type ConsoleSession = {
  id: string;
  created_at: string;
  last_used_at: string;
  expires_at: string;
  agent: string;
  current: boolean;
};

export type CopilotResult = {
  textResultForLlm: string;
  resultType: "success" | "failure" | "timeout";
  error?: string;
  binaryResultsForLlm?: ({ [name: string]: unknown })[];
};

export type CopilotTool = {
  name: string;
  description: string;
  parameters: {
    type: "object";
    properties: { [name: string]: unknown };
  };
  metadata: { [name: string]: unknown };
  skipPermission?: true;
};

export type Definition = {
  type?: "stdio" | "local" | null;
  transport?: "stdio" | "local" | null;
  command: string | (string)[];
  args?: (string)[] | null;
  env?: { [name: string]: string } | null;
  environment?: { [name: string]: string } | null;
  cwd?: string | null;
  url?: null;
  headers?: null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name?: string | null;
} | {
  type?: "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" | null;
  transport?: "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" | null;
  command?: null;
  args?: null;
  env?: null;
  environment?: null;
  cwd?: null;
  url: string;
  headers?: { [name: string]: string } | null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name?: string | null;
} | {
  type?: "sse" | "remote" | null;
  transport?: "sse" | "remote" | null;
  command?: null;
  args?: null;
  env?: null;
  environment?: null;
  cwd?: null;
  url: string;
  headers?: { [name: string]: string } | null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name?: string | null;
};

export type DefinitionChange = {
  type?: "stdio" | "local" | "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "sse" | "remote" | null;
  transport?: "stdio" | "local" | "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "sse" | "remote" | null;
  command?: string | (string)[] | null;
  args?: (string)[] | null;
  env?: { [name: string]: string | null } | null;
  environment?: { [name: string]: string | null } | null;
  cwd?: string | null;
  url?: string | null;
  headers?: { [name: string]: string | null } | null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name?: string | null;
};

export type DefinitionReport = {
  name: string;
  shadowedBy: string | null;
  problems: (Problem)[];
};

export type Document = { [name: string]: unknown };

export type Entries = {
  items: (Entry)[];
  total: number;
};

export type Entry = {
  id: number;
  mcp_instance_id: string;
  name: string;
  user_id: string;
  key: Key;
  created_at: string;
  updated_at: string;
  status: boolean;
  exposes: {
    resources: (string)[];
    prompts: (string)[];
  };
  filter: {
    allow: (string)[];
    deny: (string)[];
  } | null;
};

export type EntryChange = {
  name?: string;
  status?: true | false | 1 | 0;
  expires_at?: string | null;
  exposes?: GivenExposes | null;
  filter?: GivenFilter | null;
  allow_missing?: boolean | null;
};

export type EntryTool = {
  tool_id: number | null;
  status: boolean;
  name: string;
  description: string | null;
  server: string;
  tool: string;
  missing: "server" | "tool" | "closed" | null;
  created_at: string | null;
};

export type EntryTools = {
  items: (EntryTool)[];
  total: number;
};

export type Error = {
  error: {
    code: string;
    message: string;
    details?: unknown;
  };
};

export type Fault = {
  file: string;
  field: string;
  message: string;
  server?: string;
  line?: number;
  column?: number;
};

export type FieldProblem = {
  field: string;
  message: string;
};

export type FormattedTool = McpTool | OpenAiTool | AnthropicTool | CopilotTool;

export type GivenExposes = {
  resources?: (string)[];
  prompts?: (string)[];
};

export type GivenFilter = {
  allow: (string)[];
  deny?: (string)[];
} | {
  deny: (string)[];
  allow?: (string)[];
};

export type Health = {
  status: "ok" | "degraded";
  version: string;
  console: "embedded" | "missing";
  reasons?: (string)[];
};

export type Invalid = {
  error: {
    code: string;
    message: string;
    details?: (FieldProblem)[];
  };
};

export type Json = null | boolean | number | string | (Json)[] | { [name: string]: Json };

export type JsonSchema = { [name: string]: unknown };

export type Key = {
  hint: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
};

export type ListedServer = {
  id: string;
  name: string;
  transport: "stdio" | "http" | "sse" | null;
  status: "disconnected" | "connecting" | "connected" | "error";
  state: "stopped" | "running" | "error";
  since: number;
  error: string | null;
  enabled: boolean;
  toolCount: number;
  config: ServerConfig | null;
  source: string;
  era: "legacy" | "modern" | null;
  protocolVersion: string | null;
  serverInfo: { [name: string]: unknown } | null;
  instructions: string | null;
  pid: number | null;
  containment: string | null;
  isolation: "shared" | "principal" | "session" | null;
  restarts: number;
  retryAt: number | null;
  shadows?: (string)[];
  problems?: (Problem)[];
  warnings?: (string)[];
  containmentGaps?: (string)[];
  tools?: (ServerTool)[];
};

export type LogLine = {
  seq: number;
  at: number;
  stream: string;
  text: string;
};

export type McpResult = {
  content: ({ [name: string]: unknown })[];
};

export type McpTool = {
  name: string;
  inputSchema: { [name: string]: unknown };
};

export type Message = { [name: string]: unknown } | (unknown)[];

export type Moment = {
  at: number;
  state: "disconnected" | "connecting" | "connected" | "error";
  reason: string | null;
};

export type NewBinding = {
  tool_id: number | string;
  status?: true | false | 1 | 0;
};

export type NewBindings = NewBinding | {
  bindings: (NewBinding)[];
};

export type NewBoundEntry = {
  name: string;
  bindings: (NewBinding)[];
  status?: true | false | 1 | 0 | null;
  expires_at?: string | null;
  exposes?: GivenExposes | null;
  filter?: GivenFilter | null;
  allow_missing?: boolean | null;
};

export type NewEntry = {
  name: string;
  status?: true | false | 1 | 0 | null;
  expires_at?: string | null;
  exposes?: GivenExposes | null;
  filter?: GivenFilter | null;
  allow_missing?: boolean | null;
};

export type NewKey = {
  expires_at?: string | null;
};

export type NewOld = {
  name: string;
  status?: true | false | 1 | 0 | null;
  id?: unknown;
  mcp_instance_id?: unknown;
  key?: unknown;
  created_at?: unknown;
  updated_at?: unknown;
  user_id?: number | string | null;
  api_key?: string;
};

export type NewServer = {
  type?: "stdio" | "local" | null;
  transport?: "stdio" | "local" | null;
  command: string | (string)[];
  args?: (string)[] | null;
  env?: { [name: string]: string } | null;
  environment?: { [name: string]: string } | null;
  cwd?: string | null;
  url?: null;
  headers?: null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name: string;
} | {
  type?: "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" | null;
  transport?: "http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote" | null;
  command?: null;
  args?: null;
  env?: null;
  environment?: null;
  cwd?: null;
  url: string;
  headers?: { [name: string]: string } | null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name: string;
} | {
  type?: "sse" | "remote" | null;
  transport?: "sse" | "remote" | null;
  command?: null;
  args?: null;
  env?: null;
  environment?: null;
  cwd?: null;
  url: string;
  headers?: { [name: string]: string } | null;
  enabled?: boolean | null;
  disabled?: boolean | null;
  timeout?: number | null;
  era?: "auto" | "legacy" | "modern" | null;
  containment?: "auto" | "namespace" | "cgroup" | "subreaper" | "group" | null;
  privileges?: "drop" | "keep" | null;
  isolation?: "auto" | "shared" | "principal" | "session" | null;
  autoStart?: boolean | null;
  name: string;
};

export type NewToken = {
  token: string;
};

export type NewTool = {
  name: string;
  server: string;
  tool: string;
  description?: string | null;
  allow_missing?: boolean | null;
};

export type OldChange = {
  name?: string;
  status?: true | false | 1 | 0;
  id?: Json;
  mcp_instance_id?: Json;
  key?: Json;
  created_at?: Json;
  updated_at?: Json;
  user_id?: number | string | null;
  api_key?: string;
};

export type OldRecord = {
  id: number;
  mcp_instance_id: string;
  name: string;
  user_id: string;
  key: Key;
  created_at: string;
  updated_at: string;
  status: 0 | 1;
  api_key?: string;
};

export type OldRecords = {
  items: (OldRecord)[];
  total: number;
};

export type OpenAiResult = {
  role: "tool";
  content: string;
  tool_call_id?: string;
};

export type OpenAiTool = {
  type: "function";
  function: {
    name: string;
    description: string;
    parameters: {
      type: "object";
      properties: { [name: string]: unknown };
    };
  };
};

export type OpenedEntry = {
  id: number;
  mcp_instance_id: string;
  name: string;
  user_id: string;
  key: Key;
  created_at: string;
  updated_at: string;
  status: boolean;
  exposes: {
    resources: (string)[];
    prompts: (string)[];
  };
  filter: {
    allow: (string)[];
    deny: (string)[];
  } | null;
  api_key?: string;
  url?: string;
};

export type Plan = {
  added: (string)[];
  removed: (string)[];
  restarted: (string)[];
  kept: (string)[];
  problems: (Fault)[];
};

export type Problem = {
  field: string;
  message: string;
  server?: string;
  line?: number;
  column?: number;
};

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

export type PromptMessages = {
  messages: ({ [name: string]: unknown })[];
};

export type Ready = {
  status: "ready";
};

export type ResourceContents = {
  contents: ({ [name: string]: unknown })[];
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
  config: ServerConfig | null;
  source: string;
  era: "legacy" | "modern" | null;
  protocolVersion: string | null;
  serverInfo: { [name: string]: unknown } | null;
  instructions: string | null;
  pid: number | null;
  containment: string | null;
  isolation: "shared" | "principal" | "session" | null;
  restarts: number;
  retryAt: number | null;
  shadows?: (string)[];
  problems?: (Problem)[];
  warnings?: (string)[];
  containmentGaps?: (string)[];
};

export type ServerConfig = {
  type: "stdio" | "http" | "sse";
  transport: "stdio" | "http" | "sse";
  enabled: boolean;
  timeout: number;
  era: "auto" | "legacy" | "modern";
  isolation: "auto" | "shared" | "principal" | "session";
  command?: string;
  args?: (string)[];
  env?: { [name: string]: string };
  cwd?: string;
  containment?: string;
  privileges?: "drop" | "keep";
  url?: string;
  headers?: { [name: string]: string };
};

export type ServerPrompt = {
  name: string;
};

export type ServerResource = unknown;

export type ServerTool = {
  name: string;
  key: string;
};

export type Source = {
  path: string;
  kind: string;
  error: string | null;
  problems: (Problem)[];
  servers: (DefinitionReport)[];
};

export type Tool = {
  id: number;
  name: string;
  description: string | null;
  server: string;
  tool: string;
  missing: "server" | "tool" | "closed" | null;
  user_id: string;
  created_at: string;
  updated_at: string;
};

export type ToolAnswer = McpResult | OpenAiResult | AnthropicResult | CopilotResult;

export type ToolCall = {
  arguments?: { [name: string]: unknown } | null;
  id?: string | null;
  name?: string | null;
} | {
  id?: string | null;
  type?: "function";
  function: {
    name?: string | null;
    arguments?: string | { [name: string]: unknown };
  };
} | {
  id?: string | null;
  type?: "tool_use";
  name?: string | null;
  input: { [name: string]: unknown };
  function?: unknown;
};

export type ToolChange = {
  name?: string;
  description?: string | null;
  server?: string;
  tool?: string;
  allow_missing?: boolean | null;
};

export type ToolList = {
  format: "mcp" | "openai" | "anthropic" | "copilot";
  hash: string;
  tools: (FormattedTool)[];
};

export type Tools = {
  items: (Tool)[];
  total: number;
};

export type WantedPrompt = {
  name: string;
  arguments?: { [name: string]: string };
};

export type WantedResource = {
  uri: string;
};
