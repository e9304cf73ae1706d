//! Servers behind `npx`, which starts a shell, which starts node: what most
//! people's files say.

use std::time::Duration;

use serde_json::{Value, json};

use super::reference::{EVERYTHING, has_its_roots};
use super::{GRACE, check, npm, stop, tool, tree, with};
use crate::app::App;

/// From what is installed; never from the network.
fn npx() -> Value {
    // Says what to do where nothing is installed.
    npm("mcp-server-everything");
    json!({
        "command": "npx",
        "args": ["--no-install", "mcp-server-everything"],
        "cwd": tool(".tools/node"),
        "env": { "npm_config_offline": "true", "npm_config_update_notifier": "false" },
    })
}

async fn start(count: usize, grace: &str) -> App {
    let servers: Vec<_> = (0..count).map(|n| (format!("npx-{n}"), npx())).collect();
    with(&servers)
        .env("PORTWAY_STOP_GRACE", grace)
        .start()
        .await
}

/// The names of what runs for one server, the helper that holds it aside.
fn names(app: &App) -> Vec<String> {
    let all = tree::below(app).into_iter().map(|one| one.name);
    all.filter(|name| !name.starts_with("portway")).collect()
}

#[tokio::test]
async fn c1_a3_an_npx_tree_connects_and_goes() {
    let app = start(1, GRACE).await;
    check(&app, "npx-0", "legacy", EVERYTHING).await;
    has_its_roots(&app, "npx-0").await;
    let names = names(&app);
    assert_eq!(names.len(), 3, "npx, sh and node: {names:?}");
    assert!(names[0].starts_with("npm exec"), "{names:?}");
    assert_eq!(names[1], "sh");
    println!("{names:?} ended in {:?}", stop(&app, "npx-0").await);
    assert_eq!(tree::below(&app), [], "after the stop");
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn a11_sigterm_ends_npx_trees() {
    let app = start(2, "5s").await;
    for n in 0..2 {
        app.until_status(&format!("npx-{n}"), "connected").await;
    }
    let processes = tree::below(&app);
    let home = app.setup.path().to_owned();
    assert_eq!(app.stop().await, Some(0));
    tree::all_gone("SIGTERM", &processes, &home).await;
}

#[tokio::test]
async fn a11_sigkill_leaves_nothing_of_an_npx_tree() {
    for _ in 0..crate::process::rounds(1, 100) {
        let mut app = start(2, "5s").await;
        for n in 0..2 {
            app.until_status(&format!("npx-{n}"), "connected").await;
        }
        kill(&mut app).await;
    }
}

#[tokio::test]
async fn a11_sigkill_while_npx_starts_leaves_nothing() {
    for _ in 0..crate::process::rounds(4, 100) {
        let mut app = start(2, "5s").await;
        // Any moment of the start is as good as another.
        let moment = Duration::from_millis(fastrand::u64(0..2000));
        tokio::time::sleep(moment).await;
        kill(&mut app).await;
    }
}

async fn kill(app: &mut App) {
    let processes = tree::below(app);
    let home = app.setup.path().to_owned();
    app.child.kill().await.unwrap();
    tree::all_gone("SIGKILL", &processes, &home).await;
}
