//! The lab over HTTP.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{Lab, LabOutput};
use crate::app::{PATIENCE, fixture};

/// A fixture that listens, and where.
struct ListeningFixture {
    _child: Child,
    url: String,
}

async fn site(flags: &[&str]) -> ListeningFixture {
    let sse = flags.contains(&"--sse");
    let port: &[&str] = if sse { &["0"] } else { &["--http", "0"] };
    let mut child = Command::new(fixture())
        .args(flags)
        .args(port)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let read = tokio::time::timeout(PATIENCE, stdout.read_line(&mut line)).await;
    read.unwrap().unwrap();
    let url = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .to_owned();
    ListeningFixture { _child: child, url }
}

async fn tried(flags: &[&str], lab: &[&str]) -> LabOutput {
    let site = site(flags).await;
    let mut args = vec!["--json", site.url.as_str()];
    args.extend(lab);
    Lab::new(&args).run().await
}

#[tokio::test]
async fn k7_lab_finds_a_sound_http_server_fine() {
    let told = tried(&[], &[]).await;
    assert_eq!(told.code, 0, "{}", told.text);
    for id in [
        "era.modern",
        "era.legacy",
        "tools",
        "health",
        "ids.string",
        "content types",
        "session",
        "unknown session",
        "GET",
        "origin",
        "headers",
    ] {
        told.expect(id, "ok");
    }
    assert_eq!(told.json["transport"], "http");
    let told = tried(
        &[
            "--sessionless",
            "--no-get",
            "--always-stream",
            "--era",
            "legacy",
        ],
        &[],
    )
    .await;
    assert_eq!(told.code, 0, "{}", told.text);
    assert!(told.expect("session", "note").contains("gives none"));
    assert!(told.expect("GET", "note").contains("405"));
    assert!(told.expect("content types", "ok").contains("event streams"));
}

#[tokio::test]
async fn k7_lab_finds_a_lax_http_server_out() {
    let told = tried(&["--lax", "--odd-tools"], &[]).await;
    told.expect("origin", "warn");
    told.expect("headers", "warn");
    assert!(told.expect("unknown session", "warn").contains("400"));
    assert!(told.expect("x-mcp-header", "bad").contains("odd_header"));
    assert_eq!(told.code, 1, "{}", told.text);
}

#[tokio::test]
async fn k7_lab_tells_login_page_and_nobody_apart() {
    let told = tried(
        &["--require-header", "authorization: Bearer sesame-open-now"],
        &[],
    )
    .await;
    assert!(
        told.code == 1 && told.expect("login", "bad").contains("Bearer"),
        "{}",
        told.text
    );
    assert_eq!(told.setting("headers")["Authorization"], "Bearer ${TOKEN}");
    let with = ["--header", "Authorization: Bearer sesame-open-now"];
    let told = tried(
        &["--require-header", "authorization: Bearer sesame-open-now"],
        &with,
    )
    .await;
    assert_eq!(told.code, 0, "{}", told.text);
    assert!(!told.text.contains("sesame"), "{}", told.text);
    assert_eq!(
        told.setting("headers")["Authorization"],
        "Bearer ${AUTHORIZATION_TOKEN}"
    );

    let told = tried(&["--html"], &[]).await;
    assert!(
        told.code == 1 && told.expect("start", "bad").contains("HTTP 200"),
        "{}",
        told.text
    );
    let told = tried(&["--status", "302"], &[]).await;
    assert!(
        told.code == 1 && told.expect("url", "bad").contains("redirects"),
        "{}",
        told.text
    );
    let told = Lab::new(&["--json", "http://127.0.0.1:9/mcp"]).run().await;
    assert!(
        told.code == 1 && told.expect("url", "bad").contains("refused"),
        "{}",
        told.text
    );
}

#[tokio::test]
async fn k7_lab_speaks_the_old_http_and_sse() {
    let told = tried(&["--sse"], &["--call", "sleep", "{\"ms\": 500}"]).await;
    assert_eq!(told.code, 0, "{}", told.text);
    assert_eq!(told.json["transport"], json!("sse"));
    told.expect("transport", "note");
    assert_eq!(told.setting("type"), &json!("sse"));
    told.expect("tools", "ok");
    told.expect("cancel", "ok");
    told.expect("ids.string", "ok");
}
