//! Servers of seven clients.

use serde_json::{Map, Value, json};

use super::ImportHome;

fn stdio(rest: Value) -> Value {
    with(json!({"type": "stdio", "transport": "stdio"}), rest)
}

fn http(rest: Value) -> Value {
    with(json!({"type": "http", "transport": "http"}), rest)
}

fn with(mut base: Value, rest: Value) -> Value {
    let fields: Map<String, Value> = rest.as_object().unwrap().clone();
    base.as_object_mut().unwrap().extend(fields);
    base
}

/// Imports a sample; what is in `.mcp.json` then, and all that was said.
#[track_caller]
fn imported(place: &ImportHome, args: &[&str], code: i32) -> (Value, String) {
    let ran = place.run(&[&["import"], args, &["--yes"]].concat());
    let ran = ran.exits(code);
    let file: Value = serde_json::from_str(&place.read("project/.mcp.json")).unwrap();
    (file["mcpServers"].clone(), ran.out + &ran.err)
}

#[test]
fn b8_claude_desktop_is_imported() {
    // The usual address may be that of a Portway beside the tests.
    let place = ImportHome::new().env("PORTWAY_LISTEN", "127.0.0.1:1");
    place.write(
        "home/.config/Claude/claude_desktop_config.json",
        include_str!("samples/claude_desktop_config.json"),
    );
    let (servers, said) = imported(&place, &["--from", "claude-desktop"], 0);
    assert_eq!(
        servers,
        json!({
            "filesystem": stdio(json!({"command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/files"]})),
            "github": stdio(json!({"command": "docker",
                "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"],
                "env": {"GITHUB_TOKEN": "ghp_sample0000000000000000000000000000"}})),
            "literal": stdio(json!({"command": "node", "args": ["server.js", "${HOME}"]})),
        })
    );
    assert!(said.contains("bridge      is Portway itself"), "{said}");
    assert!(
        said.contains("${HOME}: plain text to this client"),
        "{said}"
    );
    assert!(said.contains("env.GITHUB_TOKEN: is in the clear"), "{said}");
    assert!(said.contains("No Portway runs here"), "{said}");
    assert!(!said.contains("ghp_"), "{said}");
}

#[test]
fn b8_claude_code_is_imported_for_this_project() {
    let place = ImportHome::new();
    let project = place.path("project").display().to_string();
    let text = include_str!("samples/claude.json").replace("@PROJECT@", &project);
    place.write("home/.claude.json", text);
    let (servers, said) = imported(&place, &["--from", "claude-code"], 1);
    assert_eq!(
        servers,
        json!({
            "everywhere": stdio(json!({"command": "uvx", "args": ["mcp-server-time"],
                "env": {"TZ": "${TZ:-UTC}"}})),
            "shared": http(json!({"url": "https://local.example/mcp"})),
            "tickets": http(json!({"url": "https://${TICKETS_HOST:-tickets.example}/mcp",
                "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"}, "timeout": 45000})),
            "untyped": http(json!({"url": "https://untyped.example/mcp"})),
            "stream": {"type": "sse", "transport": "sse", "url": "https://stream.example/sse"},
            "here": stdio(json!({"command": "./server", "cwd": "tools"})),
        })
    );
    for note in [
        "type: \"ws\" is nothing",
        "headersHelper: ",
        "oauth: ",
        "type: is missing",
    ] {
        assert!(said.contains(note), "{note}: {said}");
    }
}

#[test]
fn b8_vscode_is_imported_with_its_inputs() {
    let place = ImportHome::new();
    let project = place.path("project").display().to_string();
    let home = place.path("home").display().to_string();
    place.write(
        "project/.vscode/mcp.json",
        include_str!("samples/vscode.json"),
    );
    place.write(
        "home/.config/Code/User/mcp.json",
        r#"{"servers": {"login": {"command": "shadowed"}, "mine": {"command": "m"}}}"#,
    );
    let (servers, said) = imported(&place, &["--from", "vscode"], 1);
    assert_eq!(
        servers,
        json!({
            "login": http(json!({"url": "https://login.example/mcp"})),
            "mine": stdio(json!({"command": "m"})),
            "github": http(json!({"url": "https://api.githubcopilot.com/mcp/",
                "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}", "X-Region": "${REGION:-eu}"}})),
            "local": stdio(json!({"command": format!("{home}/bin/server"),
                "args": ["--root", format!("{project}/src"), "--user", "${USER}"],
                "env": {"PORT": "8080", "NAME": "project", "LITERAL": "${LITERAL}"},
                "cwd": project})),
        })
    );
    for note in [
        "set the variable GITHUB_TOKEN where Portway runs (GitHub token)",
        "env.PORT: written as a string",
        "env.DEBUG: null",
        "envFile: is not read",
        "  ${LITERAL}: plain text",
        "unix:// is nothing",
        "uses ${command:pickProgram}, which only VS Code can fill in",
    ] {
        assert!(said.contains(note), "{note}: {said}");
    }
}

#[test]
fn b8_cursor_is_imported() {
    let place = ImportHome::new();
    let home = place.path("home").display().to_string();
    place.write("home/.cursor/mcp.json", include_str!("samples/cursor.json"));
    let (servers, said) = imported(&place, &["--from", "cursor"], 0);
    assert_eq!(
        servers,
        json!({
            "search": stdio(json!({"command": "npx",
                "args": ["-y", "search", "--cache", format!("{home}/.cache")],
                "env": {"SEARCH_KEY": "${SEARCH_KEY}"}})),
            "notes": http(json!({"url": "https://notes.example/mcp",
                "headers": {"X-Key": "${NOTES_KEY}"}})),
            "old": {"type": "sse", "transport": "sse", "url": "https://old.example/sse"},
        })
    );
    assert!(
        said.contains("auth: ") && !said.contains("sample-client-secret"),
        "{said}"
    );
}

#[test]
fn b8_opencode_is_imported_in_both_shapes() {
    let place = ImportHome::new();
    place.write(
        "project/opencode.jsonc",
        include_str!("samples/opencode.jsonc"),
    );
    place.write(
        "home/.config/opencode/opencode.json",
        r#"{"mcp": {"open": {"type": "remote", "url": "https://x.example", "timeout": 7000}}}"#,
    );
    let (servers, said) = imported(&place, &["--from", "opencode"], 0);
    assert_eq!(
        servers,
        json!({
            "open": http(json!({"url": "https://open.example/mcp", "timeout": 7000})),
            "local": stdio(json!({"command": "bun", "args": ["x", "server", "--fast"],
                "env": {"API_KEY": "${API_KEY}", "CERT": "${CERT}"},
                "cwd": "tools", "timeout": 5000})),
            "remote": http(json!({"url": "https://remote.example/mcp",
                "headers": {"Authorization": "Bearer ${REMOTE_TOKEN}", "X-Cert": "${REMOTE_X_CERT}"},
                "enabled": false})),
        })
    );
    assert!(
        said.contains("set the variable CERT to the content of ~/cert.pem"),
        "{said}"
    );

    let place = ImportHome::new();
    let file = place.write("v2.json", include_str!("samples/opencode-v2.json"));
    let (servers, said) = imported(&place, &[file.to_str().unwrap()], 0);
    assert_eq!(
        servers,
        json!({
            "local": stdio(json!({"command": "deno", "args": ["run", "server.ts"],
                "enabled": false, "timeout": 20000})),
            "remote": http(json!({"url": "https://v2.example/mcp"})),
        })
    );
    assert!(said.contains("timeout.startup"), "{said}");
}

#[test]
fn b8_codex_is_imported_from_toml() {
    let place = ImportHome::new();
    place.write(
        "home/.codex/config.toml",
        include_str!("samples/codex.toml"),
    );
    let args = ["--from", "codex", "--rename", "na/me=name"];
    let (servers, said) = imported(&place, &args, 0);
    assert_eq!(
        servers,
        json!({
            "docs": stdio(json!({"command": "npx", "args": ["-y", "docs-server"],
                "env": {"LEVEL": "info", "DOCS_TOKEN": "${DOCS_TOKEN}", "DOCS_HOME": "${DOCS_HOME}"},
                "cwd": "/srv/docs", "timeout": 12500})),
            "figma": http(json!({"url": "https://mcp.figma.example/mcp",
                "headers": {"X-Region": "eu", "X-Team": "${FIGMA_TEAM}",
                            "Authorization": "Bearer ${FIGMA_TOKEN}"},
                "enabled": false})),
            "inline": http(json!({"url": "https://inline.example/mcp",
                "headers": {"Authorization": "Bearer sample-inline-token-0123"}})),
            "name": stdio(json!({"command": "x"})),
        })
    );
    for note in [
        "enabled_tools: ",
        "search, open",
        "disabled_tools: ",
        "startup_timeout_sec: ",
    ] {
        assert!(said.contains(note), "{note}: {said}");
    }
    assert!(!said.contains("sample-inline"), "{said}");
}

#[test]
fn b8_gemini_is_imported() {
    let place = ImportHome::new();
    place.write(
        "home/.gemini/settings.json",
        include_str!("samples/gemini.json"),
    );
    let (servers, said) = imported(&place, &["--from", "gemini"], 1);
    assert_eq!(
        servers,
        json!({
            "python": stdio(json!({"command": "${PYTHON_HOME}/bin/python",
                "args": ["-m", "server", "--key=${API_KEY}", "--level=${LEVEL:-info}"],
                "env": {"DB": "${DB_URL}", "PRICE": "$5"}, "cwd": "./py", "timeout": 15000})),
            "stream": http(json!({"url": "https://gemini.example/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"}})),
            "events": {"type": "sse", "transport": "sse", "url": "https://events.example/sse"},
            "plain": http(json!({"url": "https://plain.example/mcp"})),
            "google": http(json!({"url": "https://google.example/mcp"})),
            "sleeping": stdio(json!({"command": "sleep-server", "enabled": false})),
        })
    );
    for note in [
        "tcp: a WebSocket",
        "includeTools: ",
        "trust: ",
        "mcp.excluded names it",
    ] {
        assert!(said.contains(note), "{note}: {said}");
    }
}
