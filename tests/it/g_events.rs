//! SPEC G4: the event stream, and what it and the activity say of calls.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::app::{App, PATIENCE, TOKEN, fixture, fixtures, setup};

#[derive(Debug)]
pub(crate) struct ConsoleEvent {
    pub name: String,
    id: String,
    pub data: Value,
}

pub(crate) struct ConsoleEvents {
    body: hyper::body::Incoming,
    text: String,
}

impl ConsoleEvents {
    pub(crate) async fn open(app: &App, last: Option<&str>) -> ConsoleEvents {
        let mut request = http::Request::get(format!("{}/api/mcp/events", app.url))
            .header("authorization", format!("Bearer {TOKEN}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        ConsoleEvents {
            body: answer.into_body(),
            text: String::new(),
        }
    }

    /// `None` at the end of the stream.
    async fn next(&mut self) -> Option<ConsoleEvent> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().to_owned()
                };
                let name = field("event: ");
                if !name.is_empty() && name != "heartbeat" {
                    let data = serde_json::from_str(&field("data: ")).unwrap();
                    let id = field("id: ");
                    return Some(ConsoleEvent { name, id, data });
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame = frame.expect("nothing more comes")?.ok()?;
            let bytes = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    pub(crate) async fn until(&mut self, fits: impl Fn(&ConsoleEvent) -> bool) -> ConsoleEvent {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if fits(&event) {
                return event;
            }
        }
    }
}

async fn call(app: &App, tool: &str, arguments: Value) -> Value {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": tool, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let path = "/api/mcp/servers/one/mcp";
    let answer = app
        .request("POST", path, Some(body.to_string()), &headers)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body
}

#[tokio::test]
async fn g4_every_change_of_a_server_is_told() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let mut events = ConsoleEvents::open(&app, None).await;
    let first = events.next().await.unwrap();
    assert_eq!(first.name, "snapshot");
    assert_eq!(first.data["servers"], Value::Array(app.list().await));

    app.act("one", "stop").await;
    let about = |status: &'static str| {
        move |event: &ConsoleEvent| event.name == "server" && event.data["status"] == status
    };
    events.until(about("disconnected")).await;
    app.act("one", "start").await;
    events.until(about("connected")).await;
    let lists = events.until(|event| event.name == "catalog").await;
    assert_eq!(lists.data["server"], "one");
    assert!(lists.data["toolCount"].as_u64().unwrap() > 0);

    let new = json!({"name": "two", "command": fixture(), "autoStart": false});
    app.post("/api/mcp/servers", new).await.expect(201);
    let added = |event: &ConsoleEvent| event.name == "server" && event.data["name"] == "two";
    events.until(added).await;
    assert_eq!(app.delete("two").await.status, 204);
    let gone = events.until(|event| event.name == "server_removed").await;
    assert_eq!(gone.data, json!({"name": "two"}));

    app.signal(nix::sys::signal::Signal::SIGTERM);
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn g4_a_reader_comes_back_to_where_it_was() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let mut events = ConsoleEvents::open(&app, None).await;
    let seen = events.next().await.unwrap();
    drop(events);
    for _ in 0..3 {
        app.act("one", "restart").await;
    }
    // However often it changed: once, and as it is.
    let mut events = ConsoleEvents::open(&app, Some(&seen.id)).await;
    // The catalog's event may come before it.
    let next = events.until(|event| event.name == "server").await;
    assert_eq!(next.data["status"], "connected");

    for foreign in ["00000000-1", "nonsense"] {
        let mut events = ConsoleEvents::open(&app, Some(foreign)).await;
        assert_eq!(events.next().await.unwrap().name, "resync");
        assert_eq!(events.next().await.unwrap().name, "snapshot");
    }
}

#[tokio::test]
async fn g4_calls_are_told_and_written_down_without_what_they_say() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let tools = app.tools("one").await;
    assert!(tools.iter().any(|tool| tool == "echo"), "{tools:?}");
    let mut events = ConsoleEvents::open(&app, None).await;
    call(&app, "echo", json!({"text": "not-for-the-log"})).await;
    let started = events.until(|event| event.name == "call_started").await;
    assert_eq!(
        (&started.data["server"], &started.data["tool"]),
        (&json!("one"), &json!("echo"))
    );
    let ended = events.until(|event| event.name == "call_ended").await;
    assert_eq!(ended.data["id"], started.data["id"]);
    assert_eq!(ended.data["outcome"], "ok");
    assert!(ended.data["durationMs"].is_number());

    call(&app, "no such tool", json!({})).await;
    events.until(|event| event.name == "call_ended").await;
    let activity = app.get("/api/mcp/activity?limit=10").await;
    assert!(
        !activity.text.contains("not-for-the-log"),
        "{}",
        activity.text
    );
    let activity = activity.expect(200);
    assert_eq!(activity["inFlight"], json!([]));
    let recent = activity["recent"].as_array().unwrap();
    assert_eq!(recent.len(), 2, "{activity:#}");
    assert_eq!(recent[1]["tool"], "echo");
    assert_eq!(recent[1]["principal"], "admin");
    assert_ne!(recent[0]["outcome"], "ok", "{activity:#}");
    let seconds = activity["perSecond"].as_array().unwrap();
    assert_eq!(seconds.len(), 120);
    let calls: u64 = seconds
        .iter()
        .map(|one| one["calls"].as_u64().unwrap())
        .sum();
    assert_eq!(calls, 2);
}

#[tokio::test]
async fn g4_a_call_that_is_given_up_was_cancelled() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    app.until_status("one", "connected").await;
    let mut events = ConsoleEvents::open(&app, None).await;
    let given_up = call(&app, "sleep", json!({"ms": 60_000, "seconds": 60}));
    let started = tokio::select! {
        answer = given_up => panic!("{answer:#}"),
        started = events.until(|event| event.name == "call_started") => started,
    };
    let ended = events.until(|event| event.name == "call_ended").await;
    assert_eq!(ended.data["id"], started.data["id"]);
    assert_eq!(ended.data["outcome"], "cancelled");
}

#[tokio::test]
async fn a5_the_history_of_a_server_has_its_reasons_and_its_processes_are_shown() {
    let app = setup().mcp(fixtures(&[("one", &[])])).start().await;
    let up = app.until_status("one", "connected").await;
    let shown = app.get("/api/mcp/servers/one/process").await.expect(200);
    let first = &shown["processes"][0];
    assert_eq!(first["pid"], up["pid"]);
    assert!(first["rssBytes"].as_u64().unwrap() > 0);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let age = now.saturating_sub(Duration::from_millis(first["startedAt"].as_u64().unwrap()));
    assert!(age < PATIENCE, "{shown:#}");

    let pid = nix::unistd::Pid::from_raw(crate::app::pid(&up) as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    app.until("one", |one| {
        one["status"] == "connected" && one["pid"] != up["pid"]
    })
    .await;
    app.act("one", "stop").await;
    let history = app.get("/api/mcp/servers/one/history").await.expect(200);
    let states: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["state"].as_str().unwrap())
        .collect();
    let expected = [
        "connecting", "connected", "disconnected", "connecting", "connected", "disconnected",
    ];
    assert_eq!(states, expected, "{history:#}");
    let reason = history[2]["reason"].as_str().unwrap();
    assert!(
        reason.contains("SIGKILL") || reason.contains("signal"),
        "{history:#}"
    );
    assert_eq!(app.get("/api/mcp/servers/none/history").await.status, 404);
    assert_eq!(app.get("/api/mcp/servers/none/process").await.status, 404);
}

#[tokio::test]
async fn g3_an_edit_of_what_has_changed_meanwhile_is_refused_with_what_is_there() {
    let server =
        json!({"command": fixture(), "env": {"API_KEY": "hunter2hunter2"}, "enabled": false});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": server}}))
        .start()
        .await;
    let path = "/api/mcp/servers/one";
    let tag = app.get(path).await.headers["etag"]
        .to_str()
        .unwrap()
        .to_owned();
    let bearer = format!("Bearer {TOKEN}");
    let edit = |tag: String, timeout: u64| {
        let (app, bearer) = (&app, bearer.as_str());
        async move {
            let body = Some(json!({"timeout": timeout}).to_string());
            let headers = [("authorization", bearer), ("if-match", &tag)];
            app.request("PATCH", path, body, &headers).await
        }
    };
    let first = edit(tag.clone(), 5000).await;
    let newer = first.headers["etag"].to_str().unwrap().to_owned();
    assert_ne!(newer, tag);
    assert_eq!(first.expect(200)["config"]["timeout"], 5000);

    let late = edit(tag, 6000).await;
    assert!(!late.text.contains("hunter2"), "{}", late.text);
    let late = late.expect(409);
    assert_eq!(late["error"]["code"], "CONFLICT");
    assert_eq!(late["error"]["details"]["config"]["timeout"], 5000);
    assert_eq!(late["error"]["details"]["etag"], newer);
    assert_eq!(app.server("one").await["config"]["timeout"], 5000);
    edit(newer, 7000).await.expect(200);
    app.patch("one", json!({"timeout": 8000})).await.expect(200);
}
