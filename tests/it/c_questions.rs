//! SPEC C7: a question holds up nobody. One server of the old era on a pipe,
//! with clients of two principals that are asked, answer late or never.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::app::{App, alive, eventually, fixture, setup};
use crate::e_records::text;
use crate::mcp_front::{FrontResponse, LegacyClient, X, call, legacy, modern, said, until};
use crate::traps::FixtureLog;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn able() -> Value {
    json!({"elicitation": {}})
}

/// A fixture of the old era as a process; `more` goes into its definition.
async fn portway(args: &[&str], more: Value) -> App {
    let args: Vec<&str> = ["--era", "legacy"].iter().chain(args).copied().collect();
    // Its processes have the numbers that we see.
    let mut server = json!({"command": fixture(), "args": args, "containment": "group"});
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    let app = setup()
        .mcp(json!({"mcpServers": {"x": server}}))
        .start()
        .await;
    app.until_status("x", "connected").await;
    app
}

/// The address of a new entry, which is a principal of its own.
async fn tenant(app: &App) -> String {
    let mut tools = Vec::new();
    for tool in ["echo", "elicit", "sleep", "pid"] {
        tools.push(app.tool_of(tool, "x", tool).await);
    }
    let made = app.new_entry("tenant", &tools).await;
    format!("/api/v1/mcp_v2/server/{}", text(&made["api_key"]))
}

/// A modern client's call of a tool.
async fn tool(app: &App, path: &str, mut params: Value) -> Value {
    params["_meta"] = json!({CAPABILITIES: able()});
    let answer = modern(app, path, "tools/call", params).send().await;
    answer.answer().await
}

async fn echo(app: &App, path: &str, text: &str) {
    let answer = tool(app, path, call("echo", json!({ "text": text }))).await;
    assert_eq!(said(&answer), text);
}

/// A question that was put to a modern client.
struct QuestionResult {
    path: String,
    message: String,
    result: Value,
}

async fn asked(app: &App, path: &str, message: &str) -> QuestionResult {
    let params = call("elicit", json!({ "message": message }));
    let mut answer = tool(app, path, params).await;
    let questions = &answer["result"]["inputRequests"];
    let questions = questions
        .as_object()
        .unwrap_or_else(|| panic!("{answer:#}"));
    assert_eq!(questions.len(), 1, "{answer:#}");
    for question in questions.values() {
        assert_eq!(question["params"]["message"], message, "another's question");
    }
    QuestionResult {
        path: path.to_owned(),
        message: message.to_owned(),
        result: answer["result"].take(),
    }
}

impl QuestionResult {
    async fn answer(self, app: &App, name: &str) {
        let mut params = call("elicit", json!({"message": self.message}));
        params["requestState"] = self.result["requestState"].clone();
        for key in self.result["inputRequests"].as_object().unwrap().keys() {
            let answer = json!({"action": "accept", "content": {"name": name}});
            params["inputResponses"][key] = answer;
        }
        let answer = tool(app, &self.path, params).await;
        assert!(said(&answer).contains(name), "{answer:#}");
    }
}

/// A legacy client's call up to its question.
async fn asked_legacy(client: &LegacyClient<'_>, message: &str) -> (FrontResponse, Value) {
    let arguments = json!({ "message": message });
    let mut talk = client.tool(1, "elicit", arguments).send().await;
    let (_, question) = talk.message().await.expect("a question");
    assert_eq!(question["params"]["message"], message, "{question}");
    (talk, question)
}

/// Has the server seen to ask, which is then known.
async fn seen_to_ask(app: &App) {
    asked(app, X, "first").await.answer(app, "Ada").await;
    let asks = |record: &Value| record["isolation"] == "principal";
    app.until("x", asks).await;
}

/// Both principals get all they ask for, questions included.
async fn all_is_well(app: &App, tenant: &str) {
    for path in [X, tenant] {
        echo(app, path, "hi").await;
        asked(app, path, "for you").await.answer(app, "Eve").await;
    }
}

#[tokio::test]
async fn c7_a_modern_client_that_never_returns_holds_up_nobody() {
    let app = portway(&[], json!({})).await;
    let tenant = tenant(&app).await;
    let first = asked(&app, X, "the first").await;
    let second = asked(&app, X, "the second").await;
    let theirs = asked(&app, &tenant, "theirs").await;
    for _ in 0..3 {
        all_is_well(&app, &tenant).await;
    }
    // Nor did they cost it its question.
    first.answer(&app, "Ada").await;
    theirs.answer(&app, "Bea").await;
    second.answer(&app, "Cy").await;
}

#[tokio::test]
async fn c7_a_legacy_client_that_hangs_up_holds_up_nobody() {
    let app = portway(&[], json!({})).await;
    let tenant = tenant(&app).await;
    for path in [X, &tenant, X] {
        let client = legacy(&app, path, "2025-11-25", able()).await;
        let (talk, _) = asked_legacy(&client, "hello?").await;
        drop(talk);
        all_is_well(&app, &tenant).await;
    }
}

#[tokio::test]
async fn c7_a_slow_person_is_not_cut_off_by_others_nor_they_by_the_person() {
    let app = portway(&[], json!({"timeout": 6000})).await;
    let tenant = tenant(&app).await;
    let client = legacy(&app, X, "2025-11-25", able()).await;
    let (talk, question) = asked_legacy(&client, "take your time").await;
    let parked = asked(&app, X, "you too").await;
    // Longer than a call may take.
    for path in [X, &tenant, X] {
        let sleep = tool(&app, path, call("sleep", json!({"ms": 2500}))).await;
        assert_eq!(said(&sleep), "slept 2500 ms");
    }
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    client.reply(&question["id"], answer).await;
    assert!(said(&talk.answer().await).contains("Ada"));
    parked.answer(&app, "Bea").await;
}

#[tokio::test]
async fn c7_calls_of_a_server_that_asked_run_side_by_side() {
    let app = portway(&[], json!({})).await;
    seen_to_ask(&app).await;
    // None ends before all have begun.
    let meet = json!({"steps": [{"meet": 20}], "result": {"content": []}});
    let all = join_all((0..20).map(|_| tool(&app, X, call("script", meet.clone())))).await;
    for answer in all {
        assert_eq!(answer["result"]["content"], json!([]), "{answer:#}");
    }
}

#[tokio::test]
async fn c7_one_tenant_never_delays_another() {
    let record = FixtureLog::new();
    let app = portway(&["--record", record.path()], json!({})).await;
    let (greedy, modest) = (tenant(&app).await, tenant(&app).await);
    seen_to_ask(&app).await;
    let sleeps = || {
        let calls = record.of("tools/call");
        let sleeps = calls
            .iter()
            .filter(|one| one["message"]["params"]["name"] == "sleep");
        sleeps.count()
    };
    let many = join_all((0..20).map(|_| tool(&app, &greedy, call("sleep", json!({"ms": 25_000})))));
    let served = async {
        eventually("all of them run", || sleeps() == 20).await;
        echo(&app, &modest, "hi").await;
        asked(&app, &modest, "for you")
            .await
            .answer(&app, "Eve")
            .await;
    };
    tokio::select! {
        answers = many => panic!("the other had to wait for them: {answers:?}"),
        () = served => {}
    }
}

/// The process that serves a client.
async fn process(app: &App, path: &str) -> String {
    said(&tool(app, path, call("pid", json!({}))).await).to_owned()
}

#[tokio::test]
async fn c7_auto_shares_until_the_server_asks_and_remembers_it() {
    let app = portway(&[], json!({})).await;
    let tenant = tenant(&app).await;
    let record = app.server("x").await;
    assert_eq!(record["isolation"], "shared");
    assert_eq!(record["config"]["isolation"], "auto");
    assert_eq!(process(&app, X).await, process(&app, &tenant).await);
    seen_to_ask(&app).await;
    let apart = async |app: &App| {
        let (ours, theirs) = (process(app, X).await, process(app, &tenant).await);
        assert_ne!(ours, theirs);
        assert_eq!(process(app, X).await, ours);
    };
    apart(&app).await;
    // After a restart, too; not for another command.
    let app = app.again().await;
    app.until_status("x", "connected").await;
    assert_eq!(app.server("x").await["isolation"], "principal");
    apart(&app).await;
    let args = json!({"args": ["--era", "legacy", "--name", "another"]});
    app.patch("x", args).await.expect(200);
    let shared = |record: &Value| record["isolation"] == "shared";
    app.until("x", shared).await;
    assert_eq!(process(&app, X).await, process(&app, &tenant).await);
    // What is chosen is what is in force.
    for isolation in ["session", "principal", "shared"] {
        let chosen = json!({ "isolation": isolation });
        app.patch("x", chosen).await.expect(200);
        app.until("x", |record| record["isolation"] == isolation)
            .await;
    }
}

#[tokio::test]
async fn c7_what_is_asked_outside_any_call_does_not_count() {
    let record = FixtureLog::new();
    let args = ["--ask-roots", "0", "--record", record.path()];
    let app = portway(&args, json!({})).await;
    let refused = || {
        let seen = std::fs::read_to_string(record.path()).unwrap_or_default();
        seen.contains("-32601")
    };
    eventually("it has asked for roots in vain", refused).await;
    echo(&app, X, "hi").await;
    assert_eq!(app.server("x").await["isolation"], "shared");
}

/// Of one principal, as many as there are kinds of clients; idle ones end for
/// new ones.
#[tokio::test]
async fn c7_the_processes_of_one_principal_are_bounded() {
    let app = portway(&[], json!({"isolation": "principal"})).await;
    let parts = [
        ("roots", json!({})),
        ("sampling", json!({})),
        ("elicitation", json!({"form": {}})),
        ("elicitation", json!({"url": {}})),
    ];
    let mut pids = Vec::new();
    for kinds in 0..12_u32 {
        let mut abilities = json!({});
        for (bit, (name, value)) in parts.iter().enumerate() {
            if kinds & (1 << bit) != 0 {
                abilities[*name] = value.clone();
            }
        }
        let client = legacy(&app, X, "2025-11-25", abilities).await;
        let answer = client.tool(1, "pid", json!({})).send().await;
        pids.push(said(&answer.answer().await).parse::<i64>().unwrap());
    }
    let running = || pids.iter().filter(|pid| alive(**pid)).count();
    eventually("only the newest run", || running() == 8).await;
    assert!(!alive(pids[0]) && alive(pids[11]));
}

/// Some programs run only once: they go on serving all.
#[tokio::test]
async fn c7_a_program_that_runs_only_once_goes_on_serving() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    let app = portway(&["--exclusive", lock.to_str().unwrap()], json!({})).await;
    let tenant = tenant(&app).await;
    let first = asked(&app, X, "first").await;
    first.answer(&app, "Ada").await;
    assert_eq!(process(&app, X).await, process(&app, &tenant).await);
    all_is_well(&app, &tenant).await;
    let shares = || async {
        let log = app.lines("x").await.join("\n");
        log.contains("it shares one")
    };
    until("it is said why", shares).await;
}

#[tokio::test]
async fn c7_an_edit_does_not_wait_for_one_who_never_answers() {
    let app = portway(&[], json!({})).await;
    let _open = asked(&app, X, "hello?").await;
    app.patch("x", json!({"env": {"A": "b"}})).await.expect(200);
    // Within its own limit it gets to the successor.
    echo(&app, X, "hi").await;
}

/// One process becomes several: what each says is news, as it was before.
#[tokio::test]
async fn c7_lists_and_resources_are_followed_when_processes_part() {
    let app = portway(&[], json!({})).await;
    // It can be asked other things: it gets another process than the others.
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut stream = client.listen().send().await;
    let uri = json!({"uri": "fixture://watched"});
    let subscribed = client.request(1, "resources/subscribe", uri).send().await;
    assert_eq!(subscribed.answer().await["result"], json!({}));
    seen_to_ask(&app).await;
    assert_ne!(process(&app, X).await, {
        let answer = client.tool(2, "pid", json!({})).send().await;
        said(&answer.answer().await).to_owned()
    });
    let mut told = async |method: &str| loop {
        let (_, message) = stream.message().await.expect("news");
        if message["method"] == method {
            return;
        }
    };
    said(&tool(&app, X, call("touch_resource", json!({}))).await);
    told("notifications/resources/updated").await;
    said(&tool(&app, X, call("toggle_tool", json!({}))).await);
    told("notifications/tools/list_changed").await;
    let listed = || async { app.tools("x").await.contains(&"toggled".to_owned()) };
    until("the tool is listed", listed).await;
}
