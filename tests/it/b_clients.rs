//! SPEC A8, B6 from outside: clients of both eras call tools over HTTP while
//! the file is edited under them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::{App, fixture, setup};
use crate::mcp_front::{call, legacy, modern, said};

const EDITS: usize = 20;

fn file(n: usize) -> String {
    let server = |lock: &str| json!({"command": fixture(), "args": ["--exclusive", lock]});
    let mut edited = server("edited.lock");
    edited["env"] = json!({"N": format!("${{UNSET:-{n}}}")});
    let servers = json!({"steady": server("steady.lock"), "edited": edited});
    serde_json::to_string_pretty(&json!({ "mcpServers": servers })).unwrap()
}

/// One client that calls on and on; how many answers it got.
async fn client(app: &App, path: &str, tool: &str, era: &str, stop: &AtomicBool) -> usize {
    let session = match era {
        "legacy" => Some(legacy(app, path, "2025-11-25", json!({})).await),
        _ => None,
    };
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let text = format!("{path} {era} {answered}");
        let arguments = json!({ "text": text });
        let ask = match &session {
            Some(session) => session.tool(answered, tool, arguments),
            None => modern(app, path, "tools/call", call(tool, arguments)),
        };
        let answer = ask.send().await.answer().await;
        assert_eq!(said(&answer), text, "{answer:#}");
        answered += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    answered
}

#[tokio::test]
async fn a8_clients_of_both_eras_do_not_notice_that_the_file_is_edited() {
    let app = setup().file(".mcp.json", file(0)).start().await;
    let steady = app.until_status("steady", "connected").await;
    app.until_status("edited", "connected").await;
    let stop = AtomicBool::new(false);
    let edit = async {
        let mut before = app.server("edited").await;
        for n in 1..=EDITS {
            std::fs::write(app.path(".mcp.json"), file(n)).unwrap();
            let fresh =
                |record: &Value| record["status"] == "connected" && record["pid"] != before["pid"];
            before = app.until("edited", fresh).await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    let ((), a, b, c, d, e) = tokio::join!(
        edit,
        client(&app, "/servers/edited/mcp", "echo", "modern", &stop),
        client(&app, "/servers/edited/mcp", "echo", "legacy", &stop),
        client(&app, "/mcp", "mcp_edited_echo", "modern", &stop),
        client(&app, "/mcp", "mcp_edited_echo", "legacy", &stop),
        client(&app, "/mcp", "mcp_steady_echo", "modern", &stop),
    );
    println!("{EDITS} edits under {} calls, none lost", a + b + c + d + e);
    assert!([a, b, c, d, e].iter().all(|answered| *answered > EDITS));
    assert_eq!(app.server("steady").await["pid"], steady["pid"]);
    for lock in ["steady.lock", "edited.lock"] {
        assert_eq!(std::fs::read(app.path(lock)).unwrap(), b"", "no overlap");
    }
}
