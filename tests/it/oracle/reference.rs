//! The reference servers, over stdio.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ExpectedLists, check, get, npm, stop, tool, tree, with};
use crate::app::{App, PATIENCE};

/// What server-everything shows a client that can be asked things, as
/// Portway is one where it owns the process.
pub(super) const EVERYTHING: ExpectedLists = ExpectedLists {
    tools: &[
        "echo",
        "get-annotated-message",
        "get-env",
        "get-resource-links",
        "get-resource-reference",
        "get-structured-content",
        "get-sum",
        "get-tiny-image",
        "gzip-file-as-resource",
        "toggle-simulated-logging",
        "toggle-subscriber-updates",
        "trigger-long-running-operation",
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-url-elicitation",
        "trigger-sampling-request",
        "simulate-research-query",
    ],
    resources: 7,
    templates: 2,
    prompts: 4,
};

/// The same to one that cannot.
pub(super) const EVERYTHING_UNASKED: ExpectedLists = ExpectedLists {
    tools: &[
        "echo",
        "get-annotated-message",
        "get-env",
        "get-resource-links",
        "get-resource-reference",
        "get-structured-content",
        "get-sum",
        "get-tiny-image",
        "gzip-file-as-resource",
        "toggle-simulated-logging",
        "toggle-subscriber-updates",
        "trigger-long-running-operation",
        "simulate-research-query",
    ],
    resources: 7,
    templates: 2,
    prompts: 4,
};

const FILESYSTEM: ExpectedLists = ExpectedLists::tools(&[
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "create_directory",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "move_file",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
]);

const MEMORY: ExpectedLists = ExpectedLists {
    tools: &[
        "create_entities",
        "create_relations",
        "add_observations",
        "delete_entities",
        "delete_observations",
        "delete_relations",
        "read_graph",
        "search_nodes",
        "open_nodes",
    ],
    resources: 1,
    templates: 0,
    prompts: 0,
};

const SEQUENTIAL_THINKING: ExpectedLists = ExpectedLists::tools(&["sequentialthinking"]);

const TIME: ExpectedLists = ExpectedLists::tools(&["get_current_time", "convert_time"]);

const GIT: ExpectedLists = ExpectedLists::tools(&[
    "git_status",
    "git_diff_unstaged",
    "git_diff_staged",
    "git_diff",
    "git_commit",
    "git_add",
    "git_reset",
    "git_log",
    "git_create_branch",
    "git_checkout",
    "git_show",
    "git_branch",
]);

/// Connects, compares, stops: the process goes because its stdin ends, and
/// takes everything along.
async fn connects_lists_and_ends(definition: Value, era: &str, lists: ExpectedLists) {
    let app = with(&[("one".to_owned(), definition)]).start().await;
    let record = check(&app, "one", era, lists).await;
    if lists.tools == EVERYTHING.tools {
        has_its_roots(&app, "one").await;
    }
    let processes = tree::below(&app);
    let pid = record["pid"].as_i64().unwrap();
    assert!(
        processes.iter().any(|one| i64::from(one.pid) == pid),
        "{pid} in {processes:?}"
    );
    let took = stop(&app, "one").await;
    println!("{} ended in {took:?}", record["config"]["command"]);
    assert_eq!(tree::below(&app), [], "after the stop");
    assert_eq!(app.stop().await, Some(0));
}

fn server(command: String, args: &[&str]) -> Value {
    json!({ "command": command, "args": args })
}

#[tokio::test]
async fn c1_c3_a3_server_everything_over_stdio() {
    let definition = server(npm("mcp-server-everything"), &[]);
    connects_lists_and_ends(definition, "legacy", EVERYTHING).await;
}

/// server-everything asks for the roots a moment after the handshake, and
/// does not heed the end of its stdin while it waits for them.
pub(super) async fn has_its_roots(app: &App, name: &str) {
    let start = Instant::now();
    let told = |lines: &[Value]| lines.iter().any(|line| line.to_string().contains("oots"));
    while !told(&get(app, name, "logs").await) {
        assert!(
            start.elapsed() < PATIENCE,
            "{name} never asks for its roots"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn c1_c3_a3_server_filesystem_over_stdio() {
    let definition = server(npm("mcp-server-filesystem"), &["."]);
    connects_lists_and_ends(definition, "legacy", FILESYSTEM).await;
}

#[tokio::test]
async fn c1_c3_a3_server_memory_over_stdio() {
    let mut definition = server(npm("mcp-server-memory"), &[]);
    definition["env"] = json!({ "MEMORY_FILE_PATH": "/dev/null" });
    connects_lists_and_ends(definition, "legacy", MEMORY).await;
}

#[tokio::test]
async fn c1_c3_a3_server_sequential_thinking_over_stdio() {
    let definition = server(npm("mcp-server-sequential-thinking"), &[]);
    connects_lists_and_ends(definition, "legacy", SEQUENTIAL_THINKING).await;
}

#[tokio::test]
async fn c1_c2_c3_a3_mcp_server_time_over_stdio() {
    let definition = server(tool(".tools/python-2/bin/mcp-server-time"), &[]);
    connects_lists_and_ends(definition, "modern", TIME).await;
}

#[tokio::test]
async fn c1_c2_c3_a3_mcp_server_git_over_stdio() {
    let definition = server(tool(".tools/python-2/bin/mcp-server-git"), &[]);
    connects_lists_and_ends(definition, "modern", GIT).await;
}

/// All of them at once.
async fn all() -> App {
    let python = |name: &str| tool(&format!(".tools/python-2/bin/{name}"));
    let servers = [
        ("everything", npm("mcp-server-everything")),
        ("filesystem", npm("mcp-server-filesystem")),
        ("memory", npm("mcp-server-memory")),
        ("thinking", npm("mcp-server-sequential-thinking")),
        ("time", python("mcp-server-time")),
        ("git", python("mcp-server-git")),
    ];
    let servers = servers.map(|(name, command)| {
        let args: &[&str] = if name == "filesystem" { &["."] } else { &[] };
        (name.to_owned(), server(command, args))
    });
    let app = with(&servers).env("PORTWAY_STOP_GRACE", "5s").start().await;
    for (name, _) in &servers {
        app.until_status(name, "connected").await;
    }
    app
}

#[tokio::test]
async fn a11_sigterm_ends_every_real_server() {
    let app = all().await;
    let processes = tree::below(&app);
    assert!(processes.len() >= 6, "{processes:?}");
    let home = app.setup.path().to_owned();
    let start = Instant::now();
    assert_eq!(app.stop().await, Some(0));
    println!(
        "{} processes ended in {:?}",
        processes.len(),
        start.elapsed()
    );
    tree::all_gone("SIGTERM", &processes, &home).await;
}

#[tokio::test]
async fn a11_sigkill_leaves_no_real_server() {
    let mut app = all().await;
    let processes = tree::below(&app);
    let home = app.setup.path().to_owned();
    app.child.kill().await.unwrap();
    tree::all_gone("SIGKILL", &processes, &home).await;
}
