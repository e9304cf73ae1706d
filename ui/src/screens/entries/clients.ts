// The settings of each client for one entry.

export interface Client {
  name: string;
  file: string;
  text: string;
}

interface Endpoint {
  name: string;
  origin: string;
  key: string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

/** The name reduced to characters that every client accepts. */
function plain(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9-]+/g, '-').replaceAll(/^-+|-+$/g, '') || 'portway';
}

export function clients({ name: given, origin, key }: Endpoint): Client[] {
  const name = plain(given);
  const url = `${origin}/mcp`;
  const headers = { Authorization: `Bearer ${key}` };
  return [
    {
      name: 'Claude Code',
      file: 'Terminal',
      text: `claude mcp add --transport http ${name} ${url} \\\n  --header "Authorization: Bearer ${key}"`,
    },
    {
      // It can only start a command. In an argument others could read the key.
      name: 'Claude Desktop',
      file: 'claude_desktop_config.json',
      text: json({
        mcpServers: {
          [name]: { command: 'portway', args: ['connect', '--url', origin], env: { PORTWAY_ENTRY_KEY: key } },
        },
      }),
    },
    { name: 'VS Code', file: '.vscode/mcp.json', text: json({ servers: { [name]: { type: 'http', url, headers } } }) },
    { name: 'Cursor', file: '~/.cursor/mcp.json', text: json({ mcpServers: { [name]: { url, headers } } }) },
    {
      name: 'Codex',
      file: '~/.codex/config.toml',
      text: `[mcp_servers.${name}]\nurl = "${url}"\nhttp_headers = { Authorization = "Bearer ${key}" }`,
    },
    {
      name: 'Gemini CLI',
      file: '~/.gemini/settings.json',
      text: json({ mcpServers: { [name]: { type: 'http', url, headers } } }),
    },
    {
      name: 'opencode',
      file: 'opencode.json',
      text: json({ mcp: { [name]: { type: 'remote', url, headers, enabled: true } } }),
    },
    { name: 'curl', file: 'Terminal', text: curl(url, key) },
  ];
}

function curl(url: string, key: string): string {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } });
  const lines = [
    `curl -s ${url}`,
    `-H 'Authorization: Bearer ${key}'`,
    `-H 'Content-Type: application/json'`,
    `-H 'Accept: application/json, text/event-stream'`,
    `-H 'MCP-Protocol-Version: 2026-07-28'`,
    `-H 'Mcp-Method: tools/list'`,
    `-d '${body}'`,
  ];
  return lines.join(' \\\n  ');
}
