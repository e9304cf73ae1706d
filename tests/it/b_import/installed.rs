//! Portway in the files of seven clients.

use serde_json::{Value, json};

use super::ImportHome;

const KEY: &str = "pwk_sample0123456789sample0123456789";

/// Each client, its files in the home and the project.
pub(super) const CLIENTS: &[(&str, &str, Option<&str>)] = &[
    (
        "claude-desktop",
        "home/.config/Claude/claude_desktop_config.json",
        None,
    ),
    (
        "claude-code",
        "home/.claude.json",
        Some("home/.claude.json"),
    ),
    (
        "vscode",
        "home/.config/Code/User/mcp.json",
        Some("project/.vscode/mcp.json"),
    ),
    (
        "cursor",
        "home/.cursor/mcp.json",
        Some("project/.cursor/mcp.json"),
    ),
    (
        "opencode",
        "home/.config/opencode/opencode.json",
        Some("project/opencode.json"),
    ),
    (
        "codex",
        "home/.codex/config.toml",
        Some("project/.codex/config.toml"),
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        Some("project/.gemini/settings.json"),
    ),
];

const URL: &str = "http://127.0.0.1:7420/mcp";

fn json_of(place: &ImportHome, file: &str) -> Value {
    serde_json::from_str(&place.read(file)).unwrap()
}

#[test]
fn b8_each_client_gets_portway_in_its_own_words_and_no_key() {
    let bearer = |text: &str| json!({"Authorization": format!("Bearer {text}")});
    let variable = "PORTWAY_ENTRY_KEY";
    for (client, file, expected, said) in [
        (
            "claude-code",
            "home/.claude.json",
            json!({"mcpServers": {"portway": {"type": "http", "url": URL,
                "headers": bearer("${PORTWAY_ENTRY_KEY}")}}}),
            variable,
        ),
        (
            "vscode",
            "home/.config/Code/User/mcp.json",
            json!({"servers": {"portway": {"type": "http", "url": URL,
                "headers": bearer("${input:portway-key}")}},
                "inputs": [{"type": "promptString", "id": "portway-key",
                    "description": "Key for Portway", "password": true}]}),
            "It asks for the key",
        ),
        (
            "cursor",
            "home/.cursor/mcp.json",
            json!({"mcpServers": {"portway": {"url": URL,
                "headers": bearer("${env:PORTWAY_ENTRY_KEY}")}}}),
            variable,
        ),
        (
            "opencode",
            "home/.config/opencode/opencode.json",
            json!({"mcp": {"portway": {"type": "remote", "url": URL,
                "headers": bearer("{env:PORTWAY_ENTRY_KEY}"), "oauth": false, "enabled": true}}}),
            variable,
        ),
        (
            "gemini",
            "home/.gemini/settings.json",
            json!({"mcpServers": {"portway": {"url": URL, "type": "http",
                "headers": bearer("${PORTWAY_ENTRY_KEY}")}}}),
            variable,
        ),
    ] {
        let place = ImportHome::new();
        let ran = place.run(&["install", client, "--entry", KEY]).ok();
        ran.says(said).hides(KEY);
        assert_eq!(json_of(&place, file), expected, "{client}");
        assert!(!place.read(file).contains(KEY), "{client}");
    }
    let place = ImportHome::new();
    place
        .run(&["install", "codex", "--entry", KEY])
        .ok()
        .says(variable);
    assert_eq!(
        place.read("home/.codex/config.toml"),
        format!("[mcp_servers.portway]\nurl = \"{URL}\"\nbearer_token_env_var = \"{variable}\"\n")
    );
    let nested = "{\"mcp\": {\"servers\": {}}}";
    place.write("project/opencode.jsonc", nested);
    let args = ["opencode", "--scope", "project"];
    place
        .run(&[&["install", "--entry", KEY], &args[..]].concat())
        .ok();
    assert_eq!(
        json_of(&place, "project/opencode.jsonc")["mcp"]["servers"]["portway"],
        json!({"type": "remote", "url": URL, "headers": bearer("{env:PORTWAY_ENTRY_KEY}")})
    );
    place.run(&[&["uninstall"], &args[..]].concat()).ok();
    assert_eq!(place.read("project/opencode.jsonc"), nested);
    // It can be told no variable, only a command.
    place
        .run(&["install", "claude-desktop", "--entry", KEY])
        .ok()
        .hides(KEY);
    let file = "home/.config/Claude/claude_desktop_config.json";
    let project = place.path("project").display().to_string();
    assert_eq!(
        json_of(&place, file)["mcpServers"]["portway"],
        json!({"command": env!("CARGO_BIN_EXE_portway"), "args": ["connect", "--project", project],
               "env": {"PORTWAY_ENTRY_KEY": KEY}})
    );
    assert_eq!(mode(&place, file), 0o600);
}

fn mode(place: &ImportHome, file: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(place.path(file)).unwrap();
    metadata.permissions().mode() & 0o777
}

#[test]
fn b8_a_key_is_written_only_on_request_and_then_nobody_else_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    for (client, file, _) in CLIENTS {
        let place = ImportHome::new();
        let there = if *client == "codex" {
            "a = 1\n"
        } else {
            "{\n  \"a\": 1\n}\n"
        };
        let path = place.write(file, there);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let args = ["install", client, "--entry", KEY, "--with-key"];
        place
            .run(&[&args[..], &["--dry-run"]].concat())
            .ok()
            .says("+++")
            .hides(KEY);
        assert_eq!(place.read(file), there, "{client}");
        place
            .run(&[&args[..], &["--print"]].concat())
            .ok()
            .hides(KEY);
        place.run(&args).ok().says("only you may read").hides(KEY);
        assert!(place.read(file).contains(KEY), "{client}");
        assert_eq!(mode(&place, file), 0o600, "{client}");
        place.run(&args).ok().says("has it already");
        place.run(&["uninstall", client]).ok().hides(KEY);
        assert_eq!(place.read(file), there, "{client}");
    }
}

#[test]
fn b8_the_admin_token_is_not_handed_out_by_the_way() {
    const TOKEN: &str = "sample-admin-token-0123456789";
    let place = ImportHome::new().env("PORTWAY_ADMIN_TOKEN", TOKEN);
    for (client, file, _) in CLIENTS {
        for more in [&[][..], &["--server", "git"]] {
            let ran = place.run(&[&["install", client], more].concat()).exits(2);
            ran.says("portway entries create").says("--admin");
            assert!(!place.path(file).exists());
        }
        let ran = place
            .run(&["install", client, "--admin", "--server", "my git"])
            .ok();
        ran.hides(TOKEN);
        let text = place.read(file);
        assert!(!text.contains(TOKEN), "{text}");
        let reached = text.contains("/servers/my%20git/mcp") || text.contains("\"my git\"");
        assert!(reached, "{text}");
        place.run(&["uninstall", client]).ok();
        assert!(!place.path(file).exists(), "{client}");
    }
    place
        .run(&["install", "cursor", "--admin", "--with-key"])
        .ok()
        .hides(TOKEN);
    assert!(place.read("home/.cursor/mcp.json").contains(TOKEN));
    let place = ImportHome::new();
    let ran = place.run(&["install", "cursor", "--admin", "--with-key"]);
    ran.exits(2).says("no admin token is known here");
}

#[test]
fn b8_the_key_may_come_from_the_environment() {
    let place = ImportHome::new().env("PORTWAY_ENTRY_KEY", KEY);
    place
        .run(&["install", "cursor", "--with-key"])
        .ok()
        .hides(KEY);
    assert!(place.read("home/.cursor/mcp.json").contains(KEY));
    // It opens no single server.
    let ran = place
        .run(&["install", "gemini", "--server", "git"])
        .exits(2);
    ran.says("--admin").hides(KEY);
}

#[test]
fn b8_what_a_person_has_edited_stays_until_it_is_forced() {
    let place = ImportHome::new();
    let file = "home/.cursor/mcp.json";
    place.run(&["install", "cursor", "--entry", KEY]).ok();
    let edited = place
        .read(file)
        .replace("\"url\"", "\"timeout\": 5,\n      \"url\"");
    place.write(file, &edited);
    place
        .run(&["uninstall", "cursor"])
        .exits(1)
        .says("somebody has edited it");
    let again = ["install", "cursor", "--entry", KEY];
    place.run(&again).exits(1).says("--force replaces it");
    assert_eq!(place.read(file), edited);
    place.run(&[&again[..], &["--force"]].concat()).ok();
    assert!(!place.read(file).contains("timeout"));
    place.write(file, &edited);
    place.run(&["uninstall", "cursor", "--force"]).ok();

    let other = r#"{"mcpServers": {"portway": {"command": "other"}}}"#;
    place.write(file, other);
    place.run(&again).exits(1).says("another name with --name");
    place
        .run(&["uninstall", "cursor"])
        .exits(1)
        .says("does not look like Portway");
    place.run(&[&again[..], &["--name", "gate"]].concat()).ok();
    assert!(place.read(file).contains("\"gate\""));
    place.run(&["uninstall", "cursor", "--name", "gate"]).ok();
    assert_eq!(place.read(file), other);
}

#[test]
fn b8_what_is_forced_out_is_kept_aside_even_if_nothing_is_left() {
    for whose in [
        r#"{"mcpServers": {"portway": {"command": "other", "env": {"A": "b"}}}}"#,
        r#"{"mcpServers": {"portway": {"url": "http://h/mcp", "timeout": 5}}}"#,
    ] {
        let place = ImportHome::new();
        let file = place.write("home/.cursor/mcp.json", whose);
        place.run(&["uninstall", "cursor", "--force"]).ok();
        assert!(!file.exists());
        let [backup] = &place.backups("home/.cursor")[..] else {
            panic!("{:?}", place.backups("home/.cursor"));
        };
        assert_eq!(place.read(backup), whose);
    }
}

#[test]
fn b8_a_new_address_replaces_the_old_one() {
    for (client, file, _) in CLIENTS
        .iter()
        .filter(|(client, ..)| *client != "claude-desktop")
    {
        let place = ImportHome::new();
        let there = if *client == "codex" {
            "# mine\n"
        } else {
            "// mine\n{ }\n"
        };
        place.write(file, there);
        let install = ["install", client, "--entry", KEY];
        place.run(&install).ok();
        place
            .run(&[&install[..], &["--url", "https://gate.example"]].concat())
            .ok();
        let text = place.read(file);
        assert!(
            text.contains("https://gate.example/mcp") && !text.contains("127.0.0.1"),
            "{text}"
        );
        place.run(&["uninstall", client]).ok();
        assert_eq!(place.read(file), there, "{client}");
    }
}

#[test]
fn b8_install_names_what_is_wrong() {
    let place = ImportHome::new();
    for (args, code, said) in [
        (&["install"][..], 2, "<CLIENT>"),
        (&["install", "emacs"], 2, "possible values: claude-desktop"),
        (
            &["install", "cursor", "--entry", KEY, "--admin"],
            2,
            "cannot be used with",
        ),
        (
            &["install", "cursor", "--entry", "a b\n"],
            2,
            "this is no key",
        ),
        (
            &["install", "cursor", "--entry", KEY, "--name", "a b"],
            2,
            "--name: 1 to 64",
        ),
        (
            &["install", "cursor", "--entry", KEY, "--url", "ftp://x"],
            2,
            "--url",
        ),
        (
            &[
                "install", "claude-desktop", "--entry", KEY, "--scope", "project",
            ],
            2,
            "--scope",
        ),
        (
            &["install", "cursor", "--entry", KEY, "--project", "/nowhere"],
            2,
            "--project",
        ),
        (&["uninstall", "cursor"], 1, "has no server \"portway\""),
        (
            &["uninstall", "cursor", "--scope", "all"],
            2,
            "possible values: user, project",
        ),
    ] {
        place.run(args).exits(code).says(said);
    }
    place
        .run(&["install", "cursor", "--entry", KEY, "--scope", "project"])
        .ok();
    place
        .run(&["uninstall", "cursor"])
        .exits(1)
        .says("--scope project");
    let print = place
        .run(&["install", "gemini", "--entry", KEY, "--print"])
        .ok();
    assert_eq!(print.json()["mcpServers"]["portway"]["url"], URL);
    assert!(!place.path("home/.gemini").exists());
    for (file, content, said) in [
        (
            "home/.gemini/settings.json",
            &b"{\"mcpServers\": "[..],
            "not JSON",
        ),
        ("home/.gemini/settings.json", b"\xff\xfe", "is not UTF-8"),
        (
            "home/.gemini/settings.json",
            b"{\"mcpServers\": []}",
            "not an object",
        ),
        (
            "home/.gemini/settings.json",
            b"{\"mcpServers\":{},\"mcpServers\":{}}",
            "twice",
        ),
    ] {
        let path = place.write(file, content);
        let ran = place.run(&["install", "gemini", "--entry", KEY]);
        ran.exits(1).says(said).says("settings.json");
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    assert_eq!(place.list("home/.gemini"), ["settings.json"]);
    let place = ImportHome::new();
    std::fs::create_dir_all(place.path("home/.claude.json")).unwrap();
    let ran = place.run(&["install", "claude-code", "--entry", KEY]);
    ran.exits(1).says("is not a file");
}
