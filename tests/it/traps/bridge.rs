//! Traps of questions: servers that ask, clients that answer or cannot.

use std::time::Duration;

use serde_json::{Value, json};

use super::{FixtureLog, rig, rig_with};
use crate::app::App;
use crate::mcp_front::{FrontResponse, X, call, legacy, modern, said};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A call by a modern client that can be asked.
async fn ask(app: &App, mut params: Value) -> Value {
    params["_meta"] = json!({CAPABILITIES: {"elicitation": {}}});
    modern(app, X, "tools/call", params)
        .send()
        .await
        .answer()
        .await
}

/// The same call again, with an answer to everything that was asked.
fn retry(params: &Value, asked: &Value, name: &str) -> Value {
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let questions = result["inputRequests"].as_object().unwrap();
    let mut retry = params.clone();
    for key in questions.keys() {
        retry["inputResponses"][key] = json!({"action": "accept", "content": {"name": name}});
    }
    retry["requestState"] = result["requestState"].clone();
    retry
}

#[tokio::test]
async fn trap13_an_answered_question_runs_nothing_twice() {
    for http in [false, true] {
        let record = FixtureLog::new();
        let rig = rig(http, &["--era", "legacy", "--record", record.path()]).await;
        let app = &rig.app;
        let count = || record.of("tools/call").len();
        let params = call("elicit", json!({"rounds": 2}));
        let first = ask(app, params.clone()).await;
        let again = retry(&params, &first, "Ada");
        // Another call's answers are none to this one, and cost it nothing.
        let mut other = again.clone();
        other["arguments"]["rounds"] = json!(1);
        assert_eq!(ask(app, other).await["error"]["code"], -32602);
        let second = ask(app, again.clone()).await;
        let last = ask(app, retry(&params, &second, "Eve")).await;
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
        assert!(said(&last).contains("Ada") && said(&last).contains("Eve"));
        assert_eq!(count(), 1);
        // Nor when its answer is brought again.
        assert_eq!(ask(app, again).await["error"]["code"], -32602);
        assert_eq!(count(), 1);
    }
}

#[tokio::test]
async fn trap14_each_round_brings_its_own_answers() {
    for http in [false, true] {
        let record = FixtureLog::new();
        let rig = rig(http, &["--era", "modern", "--record", record.path()]).await;
        let client = legacy(&rig.app, X, "2025-11-25", json!({"elicitation": {}})).await;
        let mut talk = client.tool(1, "elicit", json!({"rounds": 3})).send().await;
        for name in ["Ada", "Eve", "Bo"] {
            let (_, question) = talk.message().await.unwrap();
            assert_eq!(question["method"], "elicitation/create");
            let answer = json!({"action": "accept", "content": {"name": name}});
            client.reply(&question["id"], answer).await;
        }
        let answer = talk.answer().await;
        let told: Vec<Value> = serde_json::from_str(said(&answer)).unwrap();
        let names: Vec<_> = told.iter().map(|one| &one["content"]["name"]).collect();
        assert_eq!(names, ["Ada", "Eve", "Bo"]);
        let echo = client.tool(2, "echo", json!({"text": "hi"})).send().await;
        assert_eq!(said(&echo.answer().await), "hi");

        let seen = record.of("tools/call");
        assert_eq!(seen.len(), 5);
        let mut ids: Vec<_> = seen
            .iter()
            .map(|line| line["message"]["id"].to_string())
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 5, "an id was used again");
        for (round, line) in seen.iter().enumerate() {
            let params = &line["message"]["params"];
            let answers = params["inputResponses"].as_object();
            let keys: Vec<_> = answers.into_iter().flat_map(|all| all.keys()).collect();
            match round {
                1..=3 => {
                    assert_eq!(keys, [&format!("ask-{}", round - 1)]);
                    assert!(params["requestState"].as_str().unwrap().starts_with("fx."));
                }
                _ => {
                    assert_eq!(params.get("requestState"), None);
                    assert_eq!(params.get("inputResponses"), None);
                }
            }
        }
    }
}

#[tokio::test]
async fn trap14_states_pass_between_modern_peers_as_they_are() {
    let record = FixtureLog::new();
    let rig = rig(true, &["--era", "modern", "--record", record.path()]).await;
    let params = call("elicit", json!({}));
    let first = ask(&rig.app, params.clone()).await;
    let state = first["result"]["requestState"].as_str().unwrap();
    assert!(state.starts_with("fx.") && state.len() == 19, "{state}");
    let again = retry(&params, &first, "Ada");
    assert!(said(&ask(&rig.app, again.clone()).await).contains("Ada"));
    // Such a result is kept nowhere: the server itself refuses the second use.
    assert_eq!(ask(&rig.app, again.clone()).await["error"]["code"], -32602);
    let seen = record.of("tools/call");
    assert_eq!(seen.len(), 3);
    for line in &seen[1..] {
        for key in ["requestState", "inputResponses"] {
            assert_eq!(line["message"]["params"][key], again[key]);
        }
    }
}

/// An answer that says no: an error, a tool's failure, or what a server makes
/// of a question that was cancelled.
async fn refused(talk: FrontResponse) -> String {
    let answer = tokio::time::timeout(Duration::from_secs(20), talk.answer());
    let answer = answer.await.expect("an answer, and no waiting for ever");
    let failed = answer["result"]["isError"] == true || answer.get("error").is_some();
    assert!(failed || said(&answer).contains("cancel"), "{answer}");
    answer.to_string()
}

#[tokio::test]
async fn trap15_what_a_client_lacks_is_refused_and_not_waited_for() {
    for (era, http) in [
        ("legacy", false),
        ("modern", false),
        ("legacy", true),
        ("modern", true),
    ] {
        let rig = rig(http, &["--era", era]).await;
        let app = &rig.app;
        let client = legacy(app, X, "2025-11-25", json!({})).await;
        for (tool, lacking) in [
            ("elicit", "elicitation"),
            ("sample", "sampling"),
            ("roots", "roots"),
        ] {
            let talk = client.tool(1, tool, json!({})).send().await;
            let text = refused(talk).await;
            assert!(!text.contains("-3202"), "{era}: {text}");
            let talk = modern(app, X, "tools/call", call(tool, json!({})))
                .send()
                .await;
            // Told at the handshake what its client lacks, a remote server
            // says itself what it cannot do.
            if http && era == "legacy" {
                refused(talk).await;
                continue;
            }
            assert_eq!(talk.status, 400, "{era} {tool}");
            let answer = talk.json().await;
            assert_eq!(answer["error"]["code"], -32021, "{era}: {answer}");
            let needed = &answer["error"]["data"]["requiredCapabilities"];
            assert!(needed.get(lacking).is_some(), "{answer}");
        }
        // One mode is not the other.
        let mut page = call("elicit", json!({"mode": "url"}));
        page["_meta"] = json!({CAPABILITIES: {"elicitation": {}}});
        let talk = modern(app, X, "tools/call", page).send().await;
        match http && era == "legacy" {
            true => drop(refused(talk).await),
            false => assert_eq!(talk.verdict().await, (400, Some(-32021)), "{era}"),
        }
        let echo = client.tool(2, "echo", json!({"text": "hi"})).send().await;
        assert_eq!(said(&echo.answer().await), "hi");
    }
}

#[tokio::test]
async fn trap15_a_remote_server_is_told_what_its_client_can_do() {
    let record = FixtureLog::new();
    let rig = rig(true, &["--era", "legacy", "--record", record.path()]).await;
    let told = || {
        let hellos = record.of("initialize");
        let one = |line: &Value| line["message"]["params"]["capabilities"].clone();
        hellos.iter().map(one).collect::<Vec<_>>()
    };
    let plain = legacy(&rig.app, X, "2025-11-25", json!({})).await;
    refused(plain.tool(1, "elicit", json!({})).send().await).await;
    assert!(told().iter().all(|one| one == &json!({})), "{:?}", told());
    let samples = json!({"sampling": {}});
    let client = legacy(&rig.app, X, "2025-11-25", samples.clone()).await;
    let mut talk = client.tool(1, "sample", json!({})).send().await;
    let (_, question) = talk.message().await.unwrap();
    assert_eq!(question["method"], "sampling/createMessage");
    let text = json!({"type": "text", "text": "a thought"});
    let thought = json!({"role": "assistant", "content": text, "model": "m"});
    client.reply(&question["id"], thought).await;
    assert!(said(&talk.answer().await).contains("a thought"));
    assert_eq!(told().last(), Some(&samples));
    // The one that can be asked makes no other client askable.
    refused(plain.tool(2, "sample", json!({})).send().await).await;
}

#[tokio::test]
async fn trap29_a_person_may_take_longer_than_a_call() {
    let cells = [
        ("legacy", false),
        ("modern", false),
        ("legacy", true),
        ("modern", true),
    ];
    // Side by side: what takes long is the thinking.
    futures_util::future::join_all(cells.map(|(era, http)| thought_over(era, http))).await;
}

async fn thought_over(era: &str, http: bool) {
    let thinking = Duration::from_millis(2500);
    let rig = rig_with(http, &["--era", era], json!({"timeout": 1000})).await;
    let app = &rig.app;
    let client = legacy(app, X, "2025-11-25", json!({"elicitation": {}})).await;
    let mut talk = client.tool(1, "elicit", json!({})).send().await;
    let (_, question) = talk.message().await.unwrap();
    tokio::time::sleep(thinking).await;
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    client.reply(&question["id"], answer).await;
    assert!(said(&talk.answer().await).contains("Ada"), "{era}");

    let params = call("elicit", json!({}));
    let asked = ask(app, params.clone()).await;
    tokio::time::sleep(thinking).await;
    let done = ask(app, retry(&params, &asked, "Eve")).await;
    assert!(said(&done).contains("Eve"), "{era}");
    // It is the person who has time, not the server.
    let late = ask(app, call("sleep", json!({"ms": 600_000}))).await;
    assert_eq!(late["result"]["isError"], true, "{late}");
}
