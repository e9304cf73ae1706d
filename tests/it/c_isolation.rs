//! SPEC C7: who shares a process with whom, and whose question it is.

use serde_json::{Value, json};

use crate::app::{App, alive, eventually, fixture, setup};
use crate::mcp_front::{
    FrontRequest, FrontResponse, LegacyClient, X, ask, call, has_begun, legacy, modern, portway,
    said,
};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

async fn isolated(isolation: &str, era: &str) -> App {
    // Its processes have the numbers that we see.
    let server = json!({"command": fixture(), "args": ["--era", era],
        "isolation": isolation, "containment": "group"});
    let app = setup()
        .mcp(json!({"mcpServers": {"x": server}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    app
}

async fn pid(ask: FrontRequest<'_>) -> String {
    said(&ask.send().await.answer().await).to_owned()
}

fn process<'a>(client: &'a LegacyClient<'_>) -> FrontRequest<'a> {
    client.tool(1, "pid", json!({}))
}

#[tokio::test]
async fn c7_isolation_session_gives_each_session_a_process() {
    for era in ["legacy", "modern"] {
        let app = isolated("session", era).await;
        let one = legacy(&app, X, "2025-11-25", json!({})).await;
        let two = legacy(&app, X, "2025-11-25", json!({})).await;
        let first = pid(process(&one)).await;
        let second = pid(process(&two)).await;
        assert_ne!(first, second, "{era}");
        assert_eq!(pid(process(&one)).await, first);
        assert_eq!(pid(process(&two)).await, second);
        // At once, too: one process each and no more.
        let before = app.children().len();
        let many = (0..8).map(|_| pid(process(&one)));
        let many = futures_util::future::join_all(many).await;
        assert!(many.iter().all(|pid| *pid == first));
        assert_eq!(app.children().len(), before);
        // A client without a session shares with its principal's others.
        let modern_pid = || pid(modern(&app, X, "tools/call", call("pid", json!({}))));
        let third = modern_pid().await;
        assert!(third != first && third != second);
        assert_eq!(modern_pid().await, third);
        // They end with their server.
        app.act("x", "stop").await;
        eventually("nothing of it is left", || app.children().is_empty()).await;
    }
}

#[tokio::test]
async fn c7_an_ended_session_takes_its_process_along() {
    let app = isolated("session", "legacy").await;
    let one = legacy(&app, X, "2025-11-25", json!({})).await;
    let two = legacy(&app, X, "2025-11-25", json!({})).await;
    let first = pid(one.tool(1, "pid", json!({}))).await;
    let second = pid(two.tool(1, "pid", json!({}))).await;
    let gone = ask(&app, "DELETE", X).header("mcp-session-id", &one.session);
    assert_eq!(gone.send().await.status, 204);
    eventually("its process ends with the session", || {
        !alive(first.parse().unwrap())
    })
    .await;
    assert_eq!(pid(two.tool(2, "pid", json!({}))).await, second);
}

#[tokio::test]
async fn c7_isolation_principal_is_one_process_for_all_of_one_user() {
    let app = isolated("principal", "legacy").await;
    let one = legacy(&app, X, "2025-11-25", json!({})).await;
    let two = legacy(&app, "/mcp", "2025-11-25", json!({})).await;
    let first = pid(one.tool(1, "pid", json!({}))).await;
    assert_eq!(pid(two.tool(1, "mcp_x_pid", json!({}))).await, first);
    // Who can be asked other things is a client of its own to a legacy server.
    let asked = legacy(&app, X, "2025-11-25", json!({"elicitation": {}})).await;
    assert_ne!(pid(asked.tool(1, "pid", json!({}))).await, first);
    app.delete("x").await;
    eventually("nothing of it is left", || app.children().is_empty()).await;
}

fn able() -> Value {
    json!({"elicitation": {}})
}

/// Sees a call with a message of its own to its end: true if it was asked,
/// and every question was its own; false if the server was refused.
async fn seen_through(client: &LegacyClient<'_>, id: u64, message: &str) -> bool {
    let mut talk = client
        .tool(id, "elicit", json!({"message": message}))
        .send()
        .await;
    if !talk.is_stream() {
        return was_answered(&talk.json().await, message);
    }
    while let Some((_, said)) = talk.message().await {
        if said.get("method").is_none() {
            return was_answered(&said, message);
        }
        assert_eq!(said["params"]["message"], message, "asked the wrong client");
        let answer = json!({"action": "accept", "content": {"name": message}});
        client.reply(&said["id"], answer).await;
    }
    panic!("no answer")
}

fn was_answered(answer: &Value, message: &str) -> bool {
    let text = said(answer);
    // How a question is refused that nobody can be asked.
    let asked = !text.contains("cancel") && !text.contains("cannot tell");
    assert!(!asked || text.contains(message), "{answer}");
    asked
}

/// The same for a modern client, which is asked in its result.
async fn seen_through_modern(app: &App, message: &str) -> bool {
    let mut params = call("elicit", json!({"message": message}));
    params["_meta"] = json!({CAPABILITIES: able()});
    let first = modern(app, X, "tools/call", params.clone()).send().await;
    let first = first.answer().await["result"].take();
    let Some(questions) = first["inputRequests"].as_object() else {
        return was_answered(&json!({"result": first}), message);
    };
    for (key, question) in questions {
        assert_eq!(
            question["params"]["message"], message,
            "asked the wrong client"
        );
        params["inputResponses"][key] = json!({"action": "accept", "content": {"name": message}});
    }
    params["requestState"] = first["requestState"].clone();
    let last = modern(app, X, "tools/call", params).send().await;
    was_answered(&last.answer().await, message)
}

#[tokio::test]
async fn c7_trap12_two_clients_are_never_asked_for_each_other() {
    let app = portway(&["--era", "legacy"]).await;
    let one = legacy(&app, X, "2025-11-25", able()).await;
    let two = legacy(&app, X, "2025-11-25", able()).await;
    // Nobody knows yet that it asks: one may be refused, but none asked for
    // the other.
    tokio::join!(
        seen_through(&one, 1, "for one"),
        seen_through(&two, 1, "for two")
    );
    // From now on it is known that it asks, and all are answered.
    for id in 2..6 {
        let all = tokio::join!(
            seen_through(&one, id, "for one"),
            seen_through(&two, id, "for two"),
            seen_through_modern(&app, "for three"),
        );
        assert_eq!(all, (true, true, true));
    }
}

/// All that is said during a call of `sleep`.
async fn heard_asleep(client: &LegacyClient<'_>, ms: u64) -> Vec<Value> {
    let mut talk: FrontResponse = client.tool(1, "sleep", json!({ "ms": ms })).send().await;
    if !talk.is_stream() {
        return vec![talk.json().await];
    }
    let mut heard = Vec::new();
    while let Some((_, message)) = talk.message().await {
        heard.push(message);
    }
    heard
}

#[tokio::test]
async fn c7_trap12_what_two_calls_may_have_caused_waits_until_it_is_clear() {
    let app = portway(&["--era", "legacy"]).await;
    let one = legacy(&app, X, "2025-11-25", able()).await;
    let two = legacy(&app, X, "2025-11-25", able()).await;
    let asking = async {
        has_begun(&two, 0).await;
        seen_through(&two, 1, "for two").await
    };
    let (heard, asked) = tokio::join!(heard_asleep(&one, 1000), asking);
    assert!(asked, "the other call has ended by then");
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(said(&heard[0]), "slept 1000 ms");
}

#[tokio::test]
async fn c7_trap12_what_stays_unclear_is_refused_with_the_reason() {
    let app = portway(&["--era", "legacy"]).await;
    let one = legacy(&app, X, "2025-11-25", able()).await;
    let two = legacy(&app, X, "2025-11-25", able()).await;
    let asking = async {
        has_begun(&two, 0).await;
        let answer = two.tool(1, "elicit", json!({})).send().await.answer().await;
        said(&answer).to_owned()
    };
    tokio::select! {
        heard = heard_asleep(&one, 25_000) => panic!("it came first: {heard:?}"),
        refusal = asking => assert!(refusal.contains("which of 2 calls"), "{refusal}"),
    }
    let log = app.lines("x").await.join("\n");
    assert!(log.contains("which of 2 calls"), "{log}");
    // It is known to ask now: the client has a process with nothing else in it.
    assert!(seen_through(&two, 2, "for two").await);
}

#[tokio::test]
async fn c7_trap12_a_server_that_asks_serves_others_in_between() {
    let app = portway(&["--era", "legacy"]).await;
    let one = legacy(&app, X, "2025-11-25", able()).await;
    let two = legacy(&app, X, "2025-11-25", json!({})).await;
    assert!(seen_through(&one, 1, "for one").await);
    // A call that cannot be asked is not mixed up with one that can.
    let echo = |id: u64| {
        let talk = two.tool(id, "echo", json!({"text": "hi"})).send();
        async { said(&talk.await.answer().await).to_owned() }
    };
    for id in 2..5 {
        let (asked, echoed) = tokio::join!(seen_through(&one, id, "for one"), echo(id));
        assert!(asked);
        assert_eq!(echoed, "hi");
    }
}

/// The next resource that a stream tells of.
async fn told(talk: &mut FrontResponse) -> String {
    loop {
        let (_, message) = talk.message().await.expect("news");
        if message["method"] == "notifications/resources/updated" {
            return message["params"]["uri"].as_str().unwrap().to_owned();
        }
    }
}

const WATCHED: &str = "fixture://watched";

async fn touch(client: &LegacyClient<'_>, uri: &str) {
    let touched = client.tool(9, "touch_resource", json!({ "uri": uri }));
    said(&touched.send().await.answer().await);
}

/// A resource of a process is told of by that process, to those it serves.
#[tokio::test]
async fn c7_what_is_followed_is_that_of_ones_own_process() {
    for era in ["legacy", "modern"] {
        let app = isolated("session", era).await;
        let one = legacy(&app, X, "2025-11-25", json!({})).await;
        let two = legacy(&app, X, "2025-11-25", json!({})).await;
        let mut streams = Vec::new();
        for client in [&one, &two] {
            streams.push(client.listen().send().await);
            for uri in [WATCHED, "fixture://text"] {
                let subscribe = client.request(2, "resources/subscribe", json!({ "uri": uri }));
                assert_eq!(subscribe.send().await.answer().await["result"], json!({}));
            }
        }
        touch(&two, WATCHED).await;
        touch(&one, "fixture://text").await;
        assert_eq!(told(&mut streams[0]).await, "fixture://text", "{era}");
        assert_eq!(told(&mut streams[1]).await, WATCHED, "{era}");
        // Those without a session have a process of their own as well.
        let wanted = json!({"notifications": {"resourceSubscriptions": [WATCHED]}});
        let mut listen = modern(&app, X, "subscriptions/listen", wanted).send().await;
        let (_, agreed) = listen.message().await.expect("an acknowledgement");
        let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*agreed, json!([WATCHED]), "{era}");
        let params = call("touch_resource", json!({}));
        let touched = modern(&app, X, "tools/call", params).send().await;
        said(&touched.answer().await);
        assert_eq!(told(&mut listen).await, WATCHED, "{era}");
    }
}

/// Its process died: the next one is told of what is followed.
#[tokio::test]
async fn c7_what_is_followed_outlives_ones_own_process() {
    let app = isolated("session", "legacy").await;
    let one = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut stream = one.listen().send().await;
    let subscribe = one.request(2, "resources/subscribe", json!({ "uri": WATCHED }));
    assert_eq!(subscribe.send().await.answer().await["result"], json!({}));
    let first = pid(process(&one)).await;
    one.tool(3, "crash", json!({})).send().await.answer().await;
    eventually("it is gone", || !alive(first.parse().unwrap())).await;
    let heard = told(&mut stream);
    let touching = async {
        loop {
            touch(&one, WATCHED).await;
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        uri = heard => assert_eq!(uri, WATCHED),
        () = touching => {}
    }
}

/// A server that gives each session a process, which asks for its roots and
/// records what it is told.
async fn asking(record: &std::path::Path) -> App {
    let args = json!(["--era", "legacy", "--ask-roots", "300", "--record", record]);
    let server = json!({"command": fixture(), "args": args, "isolation": "session"});
    let app = setup()
        .mcp(json!({"mcpServers": {"x": server}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    app
}

/// Whoever has a process alone can be asked by it at any time.
#[tokio::test]
async fn c7_one_who_has_a_process_alone_is_asked_outside_calls_too() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let app = asking(&record).await;
    let able = json!({"roots": {"listChanged": true}});
    let mut clients = Vec::new();
    for path in [X, "/mcp"] {
        let client = legacy(&app, path, "2025-11-25", able.clone()).await;
        let stream = client.listen().send().await;
        let tool = if path == X { "pid" } else { "mcp_x_pid" };
        said(&client.tool(1, tool, json!({})).send().await.answer().await);
        clients.push((client, stream));
    }
    for (at, (client, stream)) in clients.iter_mut().enumerate() {
        let (_, asked) = stream.message().await.expect("a question");
        assert_eq!(asked["method"], "roots/list", "{asked}");
        let root = format!("file:///home/{at}");
        client
            .reply(&asked["id"], json!({"roots": [{ "uri": root }]}))
            .await;
        eventually("the server has its answer", || {
            std::fs::read_to_string(&record).unwrap().contains(&root)
        })
        .await;
    }
}

/// One who could not hear it is not waited for.
#[tokio::test]
async fn c7_one_who_cannot_be_asked_now_costs_the_server_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let record = dir.path().join("record");
    let app = asking(&record).await;
    let refusals = || {
        let seen = std::fs::read_to_string(&record).unwrap_or_default();
        seen.matches("-32601").count()
    };
    // That of the process which serves nobody.
    eventually("a first refusal", || refusals() == 1).await;
    let deaf = legacy(&app, X, "2025-11-25", json!({"roots": {}})).await;
    said(&deaf.tool(1, "pid", json!({})).send().await.answer().await);
    eventually("a second refusal", || refusals() == 2).await;
}
