//! SPEC U1: the first minute: what an empty folder says, and a first call that
//! needs nothing but the program.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::app::{PATIENCE, Setup, eventually, setup};

async fn run(setup: &Setup, args: &[&str]) -> (Option<i32>, String, String) {
    let output = setup.command().args(args).output();
    let output = timeout(PATIENCE, output).await.expect("it ends").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[tokio::test]
async fn u1_demo_makes_a_first_call_without_anything_else() {
    let setup = setup().quietly().env("PATH", "/nonexistent");
    let mut command = setup.command();
    command.args(["demo", "--listen", "127.0.0.1:0"]);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    let until_answer = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            said.push(line);
            if said.last().is_some_and(|line| line == "5") {
                return;
            }
        }
    };
    timeout(PATIENCE, until_answer).await.expect("a first call");
    let said = said.join("\n");
    assert!(said.contains("demo    connected  3"), "{said}");
    assert!(said.contains("notes   connected  3"), "{said}");
    assert!(said.contains("portway call demo:add a=2 b=3"), "{said}");

    // Another terminal, as the docs have it.
    let call = async |tool: &str, arguments: &[&str]| {
        let args = [&["call", "--project", "portway-demo", tool], arguments].concat();
        run(&setup, &args).await
    };
    let (code, _, _) = call("notes:write", &["title=a", "text=hello"]).await;
    assert_eq!(code, Some(0));
    let (_, text, _) = call("notes:read", &["title=a"]).await;
    assert_eq!(text.trim(), "hello");
    let (code, _, text) = call("notes:read", &["title=b"]).await;
    assert!(
        code == Some(1) && text.contains("there is no note b"),
        "{text}"
    );
    let (_, text, _) = call("demo:echo", &["text=äöü"]).await;
    assert_eq!(text.trim(), "äöü");
    let (_, text, _) = call("demo:time", &[]).await;
    assert!(text.trim().ends_with('Z'), "{text}");
    child.kill().await.unwrap();
    eventually("all processes end", || setup.processes().is_empty()).await;

    // A second time: the project is used as it is.
    let file = setup.path().join("portway-demo/.mcp.json");
    let own = json!({ "mcpServers": {} }).to_string();
    std::fs::write(&file, &own).unwrap();
    let mut child = setup.command().arg("demo").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), own);
    child.kill().await.unwrap();
}

#[tokio::test]
async fn u1_an_empty_folder_says_what_to_do_next() {
    let cursor = json!({ "mcpServers": { "a": { "command": "a" }, "b": { "command": "b" } } });
    let setup = setup();
    std::fs::create_dir(setup.path().join(".cursor")).unwrap();
    let app = setup
        .file(".cursor/mcp.json", cursor.to_string())
        .start()
        .await;
    eventually("the next steps are said", || {
        app.said().contains("console ")
    })
    .await;
    let said = app.said();
    for words in [
        "portway import --from cursor",
        "(2 servers of Cursor)",
        "portway add NAME",
        "portway demo",
        "portway install",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn u1_the_version_names_commit_and_date() {
    let (code, text, _) = run(&setup().quietly(), &["--version"]).await;
    let git = std::process::Command::new("git")
        .args(["log", "-1", "--format= (%h %cs)", "--abbrev=9"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    // Sources without a history have no commit to name.
    let history = Path::new(env!("CARGO_MANIFEST_DIR")).join(".git").exists();
    let commit = git.ok().filter(|_| history).map(|output| output.stdout);
    let commit = commit.unwrap_or_default();
    let commit = String::from_utf8_lossy(&commit);
    let expected = format!("portway {}{}", env!("CARGO_PKG_VERSION"), commit.trim_end());
    assert_eq!((code, text.trim_end()), (Some(0), &*expected));
}

#[tokio::test]
async fn u2_upgrade_compares_with_the_index_that_is_named_and_asks_nobody_else() {
    let setup = setup().quietly();
    let own = env!("CARGO_PKG_VERSION");
    for (version, code, words) in [
        ("99.1.0", Some(1), "99.1.0 is newer than"),
        (own, Some(0), "is the newest version"),
        ("0.0.1", Some(0), "is the newest version"),
        ("soon", Some(1), "version"),
    ] {
        let index = json!({ "version": version, "date": "2026-12-01", "url": "" });
        let file = setup.path().join("index.json");
        std::fs::write(&file, index.to_string()).unwrap();
        let args = ["upgrade", "--check", "--index", file.to_str().unwrap()];
        let (found, out, err) = run(&setup, &args).await;
        assert_eq!(found, code, "{version}: {out} {err}");
        assert!(out.contains(words) || err.contains(words), "{out} {err}");
    }
    let (code, _, text) = run(&setup, &["upgrade", "--check"]).await;
    assert!(code == Some(2) && text.contains("--index"), "{text}");
}
