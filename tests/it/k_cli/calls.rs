use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{NOWHERE, command, run, running};
use crate::app::{App, PATIENCE};

#[tokio::test]
async fn k7_call_takes_arguments_in_every_form() {
    let app = running().await;
    std::fs::write(app.path("args.json"), r#"{"a": 1, "b": 2}"#).unwrap();
    for (args, said) in [
        (
            &["call", "one:add", r#"{"a": 2, "b": 40}"#][..],
            "{\"sum\":42.0}\n",
        ),
        (&["call", "two:add", "a=2", "b=0.5"], "{\"sum\":2.5}\n"),
        (&["call", "one:add", "@args.json"], "{\"sum\":3.0}\n"),
        (&["call", "one:echo", "text=12"], "12\n"),
        (
            &["call", "mcp_one_echo", "text=by its other name"],
            "by its other name\n",
        ),
        // Mirrored into headers, where it needs encoding.
        (&["call", "one:region", "region=東京 "], "東京 \n"),
        (&["call", "two:cwd"], ""),
    ] {
        let out = run(&app, args).await.ok();
        assert!(said.is_empty() || out == said, "{args:?}: {out:?}");
    }
    let mut command = command(app.setup.path(), &["call", "one:add", "-"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(br#"{"a": 3, "b": 4}"#).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"sum\":7.0}\n");

    for (args, code, told) in [
        (&["call"][..], 2, "SERVER:TOOL"),
        (&["call", "echo"], 2, "one:echo, two:echo"),
        (&["call", "one:"], 2, "is not server:tool"),
        (&["call", "one:add", "{\"a\":"], 2, "not JSON"),
        (&["call", "one:add", "[1]"], 2, "JSON object"),
        (&["call", "one:add", "@nowhere.json"], 2, "nowhere.json"),
        (&["call", "one:add", "a=x"], 2, "a: must be a number"),
        (&["call", "one:add", "a"], 2, "NAME=VALUE"),
        (&["call", "one:ad"], 1, "did you mean add"),
        (&["call", "nobody:x"], 1, "nobody"),
        (&["call", "nothing"], 1, "portway tools"),
        (&["call", "broken:x"], 1, NOWHERE),
    ] {
        run(&app, args).await.fails(code, told);
    }
}

#[tokio::test]
async fn k7_call_prints_text_and_describes_the_rest() {
    let app = running().await;
    let out = run(&app, &["call", "one:content"]).await.ok();
    let wanted = "text\n\
                  [image image/png, 69 bytes]\n\
                  [audio audio/wav, 12 bytes]\n\
                  [resource link fixture://text]\n\
                  [resource fixture://embedded text/plain, 8 bytes]\n";
    assert_eq!(out, wanted);
    run(&app, &["call", "one:content", "--output", "kept"])
        .await
        .ok();
    let image = std::fs::read(app.path("kept/image-2.png")).unwrap();
    assert!(image.starts_with(b"\x89PNG"), "{image:?}");
    assert_eq!(
        std::fs::read(app.path("kept/resource-5.txt")).unwrap(),
        b"embedded"
    );

    let whole = run(&app, &["call", "one:content", "--json"]).await;
    assert_eq!(whole.out.lines().count(), 1);
    let whole = whole.json();
    assert_eq!(whole["content"].as_array().unwrap().len(), 5);
    assert_eq!(
        whole["_meta"]["example.org/big"],
        json!(9_007_199_254_740_993_u64)
    );
    // Another program gets what the server said.
    let raw = run(&app, &["call", "one:echo", r#"{"text": "\u001b[31m"}"#]).await;
    assert_eq!(raw.ok(), "\u{1b}[31m\n");
}

#[tokio::test]
async fn k7_a_tool_that_fails_is_told_and_exits_with_1() {
    let app = running().await;
    for server in ["one", "two"] {
        let tool = |tool: &str| format!("{server}:{tool}");
        run(&app, &["call", &tool("fail"), "text=out of ink"])
            .await
            .fails(1, "out of ink");
        run(&app, &["call", &tool("error"), "code=-32099"])
            .await
            .fails(1, "an error as told");
        let json = run(&app, &["call", &tool("fail"), "--json"]).await;
        assert_eq!(json.code, Some(1), "{json:?}");
        assert_eq!(json.json()["isError"], true);
        let late = ["call", &tool("sleep"), "ms=60000", "--timeout", "200ms"];
        run(&app, &late).await.fails(1, "--timeout");
        until_cancelled(&app, server).await;
    }
    let logged = run(&app, &["call", "one:log", "message=by the way", "-v"]).await;
    assert!(logged.err.contains("by the way"), "{logged:?}");
    assert_eq!(logged.ok(), "logged\n");
    let quiet = run(&app, &["call", "one:log", "message=by the way"]).await;
    assert_eq!(quiet.err, "");
}

async fn until_cancelled(app: &App, server: &str) {
    let tool = format!("{server}:cancelled");
    let started = tokio::time::Instant::now();
    loop {
        let out = run(app, &["call", &tool]).await.ok();
        if out.contains("sleep") {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "never cancelled: {out}");
    }
}

#[tokio::test]
async fn k7_an_interrupt_cancels_the_call_upstream() {
    let app = running().await;
    let child = command(app.setup.path(), &["call", "one:sleep", "ms=600000"])
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id().unwrap() as i32);
    let started = tokio::time::Instant::now();
    loop {
        let activity = app.get("/api/mcp/activity").await.body;
        if !activity["inFlight"].as_array().is_none_or(Vec::is_empty) {
            break;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "never in flight: {activity:#}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    kill(pid, Signal::SIGINT).unwrap();
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "portway: cancelled\n"
    );
    until_cancelled(&app, "one").await;
}

#[tokio::test]
async fn k7_tools_are_listed_searched_and_handed_over() {
    let app = running().await;
    let all = run(&app, &["tools"]).await.ok();
    for key in ["one:echo", "two:echo", "one:add"] {
        assert!(
            all.lines().any(|line| line.split(' ').next() == Some(key)),
            "{key}: {all}"
        );
    }
    let found = run(
        &app,
        &["tools", "--search", "NUMBERS adds", "--server", "one"],
    )
    .await;
    assert_eq!(
        found.ok().lines().skip(1).collect::<Vec<_>>(),
        ["one:add  Adds two numbers"]
    );
    let none = run(&app, &["tools", "--search", "zebra"]).await;
    assert!(none.err.contains("no tools"), "{none:?}");
    assert_eq!(none.ok(), "");
    let json = run(&app, &["tools", "--search", "one:add", "--json"])
        .await
        .json();
    assert_eq!(json["tools"].as_array().unwrap().len(), 1, "{json}");
    let json = run(&app, &["tools", "--server", "one", "--json"])
        .await
        .json();
    let servers = json["tools"].as_array().unwrap().iter();
    assert!(servers.clone().count() > 20);
    assert!(
        servers
            .clone()
            .all(|tool| tool["_meta"]["portway/server"] == "one"),
        "{json}"
    );
    for (format, name, schema) in [
        ("openai", "/function/name", "/function/parameters"),
        ("anthropic", "/name", "/input_schema"),
        ("copilot", "/name", "/parameters"),
        ("mcp", "/name", "/inputSchema"),
    ] {
        let args = ["tools", "--search", "one:add", "--format", format];
        let list = run(&app, &args).await.json();
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list[0].pointer(name), Some(&json!("mcp_one_add")), "{list}");
        assert!(list[0].pointer(schema).is_some(), "{list}");
        let whole = run(&app, &[&args[..], &["--json"]].concat()).await.json();
        assert_eq!(whole["format"], format);
        assert_eq!(whole["tools"], list);
    }
    run(&app, &["tools", "--server", "nobody"])
        .await
        .fails(1, "nobody");
    run(&app, &["tools", "--format", "xml"])
        .await
        .fails(2, "openai");
}
