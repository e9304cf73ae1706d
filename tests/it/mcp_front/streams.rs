//! Streams of legacy sessions: one at a time, kept alive, and resumed without
//! losing the answer.

use serde_json::{Value, json};

use super::{FrontResponse, X, legacy, portway, said, until};
use crate::app::{fixtures, setup};

fn steps(steps: u64, ms: u64) -> Value {
    json!({"name": "progress", "arguments": {"steps": steps, "ms": ms}, "_meta": {"progressToken": 7}})
}

#[tokio::test]
async fn k4_one_stream_per_session() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let first = client.listen().send().await;
    assert_eq!((first.status, first.is_stream()), (200, true));
    assert_eq!(first.header("x-accel-buffering"), "no");
    let second = client.listen().send().await;
    assert_eq!(second.verdict().await.0, 409);
    let other = legacy(&app, X, "2025-11-25", json!({})).await;
    assert_eq!(other.listen().send().await.status, 200);
    drop(first);
    until("the place is free again", || async {
        client.listen().send().await.status == 200
    })
    .await;
}

#[tokio::test]
async fn k4_a_client_that_comes_back_to_its_stream_takes_it_over() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    client.notify("notifications/initialized", json!({})).await;
    let mut first = client.listen().send().await;
    let primed = first.event().await.unwrap().id.unwrap();
    let toggle = || async {
        client
            .tool("t", "toggle_tool", json!({}))
            .send()
            .await
            .answer()
            .await;
    };
    toggle().await;
    let (told, message) = first.message().await.unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    let mut second = client.resume(&told.unwrap()).send().await;
    assert!(first.event().await.is_none(), "its place is taken");
    toggle().await;
    assert!(second.message().await.is_some());
    // From the beginning: what was sent then comes again.
    let mut third = client.resume(&primed).send().await;
    for _ in 0..2 {
        let (_, message) = third.message().await.unwrap();
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
}

/// Reads until the answer; the numbers of the progress it saw.
async fn rest(mut talk: FrontResponse) -> (Vec<u64>, Value) {
    let mut seen = Vec::new();
    loop {
        let (_, message) = talk.message().await.expect("the answer comes");
        match message["params"]["progress"].as_u64() {
            Some(step) => seen.push(step),
            None => return (seen, message),
        }
    }
}

#[tokio::test]
async fn k4_resumption_keeps_the_answer() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        for version in ["2025-03-26", "2025-11-25"] {
            let client = legacy(&app, X, version, json!({})).await;
            let mut talk = client.request(5, "tools/call", steps(6, 100)).send().await;
            let (id, first) = talk.message().await.unwrap();
            assert_eq!(first["params"]["progress"], 1);
            drop(talk);
            let id = id.unwrap();
            let (seen, answer) = rest(client.resume(&id).send().await).await;
            assert_eq!(seen, [2, 3, 4, 5, 6], "{era} {version}");
            assert_eq!(answer["id"], 5);
            assert_eq!(said(&answer), "6 steps");
            // And again, after it is over.
            let (seen, _) = rest(client.resume(&id).send().await).await;
            assert_eq!(seen, [2, 3, 4, 5, 6]);
            let other = legacy(&app, X, version, json!({})).await;
            let foreign = other.resume(&id).send().await;
            assert_eq!(foreign.status, 405, "streams belong to their session");
        }
    }
}

#[tokio::test]
async fn k4_a_client_that_saw_only_the_first_id_misses_nothing() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    // One whose stream begins with a message, one that begins in silence.
    for pause in [0, 200] {
        let mut talk = client
            .request(5, "tools/call", steps(3, pause))
            .send()
            .await;
        let primed = talk.event().await.unwrap();
        assert!(primed.data.is_empty());
        drop(talk);
        let (seen, answer) = rest(client.resume(&primed.id.unwrap()).send().await).await;
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(said(&answer), "3 steps");
    }
}

#[tokio::test]
async fn k4_an_answer_given_while_nobody_listened_is_kept() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let observer = legacy(&app, X, "2025-06-18", json!({})).await;
    let mut talk = client.tool(1, "sleep", json!({"ms": 1500})).send().await;
    let primed = talk.event().await.unwrap();
    drop(talk);
    let answer = observer
        .tool(1, "sleep", json!({"ms": 2500}))
        .send()
        .await
        .answer()
        .await;
    assert_eq!(said(&answer), "slept 2500 ms");
    let mut back = client.resume(primed.id.as_deref().unwrap()).send().await;
    let (id, answer) = loop {
        let found = back.message().await.expect("the answer was kept");
        if found.1.get("id").is_some() {
            break found;
        }
    };
    assert_eq!(said(&answer), "slept 1500 ms");
    assert!(back.event().await.is_none(), "the answer is the end");
    // Nothing is left: a client that would ask for ever is stopped.
    let done = client.resume(&id.unwrap()).send().await;
    assert_eq!(done.status, 405);
    for odd in ["x", "p", "1", "p1-x", "-"] {
        assert_eq!(client.resume(odd).send().await.status, 400, "{odd}");
    }
}

#[tokio::test]
async fn k4_a_question_asked_while_nobody_listened_waits() {
    let app = portway(&["--era", "legacy"]).await;
    let client = legacy(&app, X, "2025-11-25", json!({"elicitation": {}})).await;
    let mut talk = client.tool(1, "elicit", json!({"rounds": 2})).send().await;
    let (id, question) = talk.message().await.unwrap();
    drop(talk);
    let yes = || json!({"action": "accept", "content": {"name": "Ada"}});
    client.reply(&question["id"], yes()).await;
    let mut back = client.resume(&id.unwrap()).send().await;
    let (_, second) = back.message().await.unwrap();
    assert_eq!(second["method"], "elicitation/create");
    client.reply(&second["id"], yes()).await;
    let (_, answer) = back.message().await.unwrap();
    assert_eq!(said(&answer).matches("Ada").count(), 2);
}

#[tokio::test]
async fn k4_quiet_streams_are_kept_alive_and_not_cut() {
    // Limits of the edge that a stream outlives.
    let app = setup()
        .env("PORTWAY_IDLE_TIMEOUT", "2s")
        .env("PORTWAY_WRITE_TIMEOUT", "2s")
        .env("PORTWAY_HEADER_TIMEOUT", "2s")
        .mcp(json!({"mcpServers": {"x": {"command": crate::app::fixture(), "timeout": 120_000}}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut own = client.listen().send().await;
    own.event().await.unwrap();
    let slow = || json!({"ms": 25_000});
    let mut resumable = client.tool(1, "sleep", slow()).send().await;
    resumable.event().await.unwrap();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = super::modern(&app, X, "subscriptions/listen", listen)
        .send()
        .await;
    listening.message().await.unwrap();
    let older = legacy(&app, X, "2025-06-18", json!({})).await;
    let sleep = super::call("sleep", slow());
    let (mut modern, mut older) = tokio::join!(
        super::modern(&app, X, "tools/call", sleep).send(),
        older.tool(1, "sleep", slow()).send(),
    );
    for talk in [
        &mut own, &mut resumable, &mut listening, &mut modern, &mut older,
    ] {
        assert!(talk.is_stream());
        assert_eq!(talk.bytes().await.unwrap(), ":\n\n");
    }
    for talk in [resumable, modern, older] {
        assert_eq!(said(&talk.answer().await), "slept 25000 ms");
    }
    drop(
        client
            .tool(2, "toggle_tool", json!({}))
            .send()
            .await
            .answer()
            .await,
    );
    assert!(own.message().await.is_some());
    assert!(listening.message().await.is_some());
}

#[tokio::test]
async fn t_f6_sessions_that_are_never_ended_cost_nothing() {
    let app = setup().mcp(fixtures(&[("x", &[])])).start().await;
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}}});
    let storm = |count: usize| {
        let (app, body) = (&app, body.to_string());
        async move {
            for _ in 0..count {
                let answer = app.send("POST", "/mcp", Some(body.clone())).await;
                assert_eq!(answer.status, 200);
            }
        }
    };
    storm(500).await;
    let before = resident();
    storm(5000).await;
    let after = resident();
    assert!(after < before + 4096, "{before} kB grew to {after} kB");
}
