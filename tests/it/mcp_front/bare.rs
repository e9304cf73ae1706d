//! Legacy requests without a session (SPEC K4): nothing but the credential and
//! the request itself, as `curl` would send them.

use serde_json::{Value, json};

use super::{BOTH, FrontRequest, X, call, calls, has_begun, legacy, portway, post, said, until};
use crate::app::App;
use crate::e_door::{StoreBeforeStart, up, with_x};
use crate::e_records::Storage;

/// A request with no header but those that every HTTP request has.
fn bare<'a>(app: &'a App, path: &str, method: &str, params: Option<Value>) -> FrontRequest<'a> {
    let mut body = json!({"jsonrpc": "2.0", "id": 7, "method": method});
    if let Some(params) = params {
        body["params"] = params;
    }
    post(app, path, body).without("accept")
}

async fn answered(ask: FrontRequest<'_>) -> Value {
    let talk = ask.send().await;
    assert_eq!(talk.status, 200);
    assert_eq!(talk.header("content-type"), "application/json");
    assert_eq!(talk.header("mcp-session-id"), "");
    let answer = talk.json().await;
    assert_eq!(answer["id"], 7);
    answer
}

#[tokio::test]
async fn k4_a_bare_request_is_served_on_every_endpoint() {
    let setup = with_x(Storage::Json);
    let entry = StoreBeforeStart::of(&setup)
        .await
        .entry("a", &["echo"])
        .await;
    let app = up(setup).await;
    for (path, tool) in [("/mcp", "mcp_x_echo"), (X, "echo"), (&entry.path(), "echo")] {
        for accept in [None, Some("*/*"), Some("application/json"), Some(BOTH)] {
            let ask = |method, params| {
                let ask = bare(&app, path, method, params);
                match accept {
                    Some(accept) => answered(ask.header("accept", accept)),
                    None => answered(ask),
                }
            };
            let list = ask("tools/list", None).await;
            let tools = list["result"]["tools"].as_array().unwrap();
            assert!(
                tools.iter().any(|one| one["name"] == tool),
                "{path}: {list}"
            );
            assert!(list["result"].get("resultType").is_none(), "{list}");
            let echo = call(tool, json!({"text": "hi"}));
            let echo = ask("tools/call", Some(echo)).await;
            assert_eq!(said(&echo), "hi");
            let pong = ask("ping", None).await;
            assert_eq!(pong["result"], json!({}));
        }
        let unknown = answered(bare(&app, path, "no/such", None)).await;
        assert_eq!(unknown["error"]["code"], -32601);
        // The key in the address is all that an entry's client sends.
        if path == entry.path() {
            let nobody = bare(&app, path, "tools/list", None).without("authorization");
            assert!(answered(nobody).await["result"]["tools"].is_array());
        }
    }
}

#[tokio::test]
async fn k4_a_bare_request_reaches_all_that_mcp_has() {
    let app = portway(&[]).await;
    let ask = |method: &'static str, params: Value| answered(bare(&app, X, method, Some(params)));
    let list = ask("resources/list", json!({})).await;
    let uri = list["result"]["resources"][0]["uri"].clone();
    let read = ask("resources/read", json!({"uri": uri})).await;
    assert!(read["result"]["contents"].is_array(), "{read}");
    let templates = ask("resources/templates/list", json!({})).await;
    let template = templates["result"]["resourceTemplates"][0]["uriTemplate"].clone();
    let prompts = ask("prompts/list", json!({})).await;
    let prompt = prompts["result"]["prompts"][0]["name"].clone();
    let got = ask("prompts/get", json!({"name": prompt, "arguments": {}})).await;
    assert!(
        got["result"]["messages"].is_array() || got["error"]["code"] == -32602,
        "{got}"
    );
    let reference = json!({"type": "ref/resource", "uri": template});
    let complete = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
    let completed = ask("completion/complete", complete).await;
    assert!(completed["result"]["completion"].is_object(), "{completed}");
    let unknown = ask("tools/call", call("no_such", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn k4_a_bare_request_can_be_asked_nothing() {
    for era in ["legacy", "modern"] {
        let app = portway(&["--era", era]).await;
        for tool in ["elicit", "sample", "roots"] {
            let asks = || bare(&app, X, "tools/call", Some(call(tool, json!({}))));
            // The same as a session without capabilities is answered.
            let client = legacy(&app, X, "2025-03-26", json!({})).await;
            let session = client.tool(7, tool, json!({})).send().await.answer().await;
            for ask in [asks(), asks().header("accept", BOTH)] {
                assert_eq!(answered(ask).await, session, "{era}: {tool}");
            }
        }
    }
}

#[tokio::test]
async fn k4_what_needs_a_session_says_so() {
    let app = portway(&[]).await;
    for (method, params) in [
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "fixture://text"})),
        ("resources/unsubscribe", json!({"uri": "fixture://text"})),
    ] {
        let talk = bare(&app, X, method, Some(params)).send().await;
        assert_eq!(talk.status, 400);
        let answer = talk.json().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("Mcp-Session-Id"), "{message}");
    }
    // A session that is named must be there.
    let stale = bare(&app, X, "tools/list", None).header("mcp-session-id", "x");
    assert_eq!(stale.send().await.verdict().await, (404, Some(-32001)));
    let batch = format!("[{}]", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(post(&app, X, batch).send().await.status, 400);
}

#[tokio::test]
async fn k4_a_bare_request_gets_events_only_if_it_names_them() {
    let app = portway(&[]).await;
    let steps = json!({"name": "progress", "arguments": {"steps": 3},
        "_meta": {"progressToken": "t"}});
    let ask = || bare(&app, X, "tools/call", Some(steps.clone()));
    for ask in [ask(), ask().header("accept", "*/*")] {
        assert_eq!(said(&answered(ask).await), "3 steps");
    }
    let mut talk = ask().header("accept", BOTH).send().await;
    assert!(talk.is_stream());
    for step in 1..=3 {
        let (_, message) = talk.message().await.unwrap();
        assert_eq!(message["params"]["progress"], step);
    }
    assert_eq!(said(&talk.message().await.unwrap().1), "3 steps");
}

#[tokio::test]
async fn k4_hanging_up_cancels_a_bare_request() {
    let app = portway(&[]).await;
    let observer = legacy(&app, X, "2025-06-18", json!({})).await;
    let before = calls(&observer).await;
    let sleep = call("sleep", json!({"ms": 600_000}));
    let waiting = bare(&app, X, "tools/call", Some(sleep));
    tokio::select! {
        talk = waiting.send() => panic!("an answer: {}", talk.status),
        () = has_begun(&observer, before) => {}
    }
    until("the server is told", || async {
        let given_up = observer.cancelled().await;
        given_up.iter().any(|call| call["name"] == "sleep")
    })
    .await;
}
