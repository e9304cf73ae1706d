//! What legacy servers ask during a call, and what becomes of it.

use serde_json::{Value, json};

use crate::mcp_front::{FrontResponse, X, call, legacy, modern, said};
use crate::traps::{FixtureLog, TrapGateway, rig};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn question(id: impl Into<Value>, method: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"message": "Who?", "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn able() -> Value {
    json!({"elicitation": {}})
}

fn modern_call(rig: &TrapGateway, arguments: Value) -> crate::mcp_front::FrontRequest<'_> {
    let mut params = call("script", arguments);
    params["_meta"] = json!({CAPABILITIES: able()});
    modern(&rig.app, X, "tools/call", params)
}

/// The question among what a call says first.
async fn asked(talk: &mut FrontResponse) -> Value {
    let (_, message) = talk.message().await.expect("a question");
    assert_eq!(message["method"], "elicitation/create", "{message}");
    message
}

/// Servers count their questions as we count our requests: the number says
/// nothing about whose it is.
#[tokio::test]
async fn i2_a_server_that_gives_up_a_question_ends_nobodys_call() {
    for http in [false, true] {
        let rig = rig(http, &["--era", "legacy"]).await;
        let client = legacy(&rig.app, X, "2025-11-25", able()).await;
        let gives_up =
            json!({"send": note("notifications/cancelled", json!({"requestId": "$id"}))});
        let arguments = json!({"steps": [gives_up, {"sleep": 100}]});
        let answer = client.tool(1, "script", arguments.clone()).send().await;
        assert_eq!(said(&answer.answer().await), "[]", "http: {http}");
        let answer = modern_call(&rig, arguments).send().await;
        assert_eq!(said(&answer.answer().await), "[]", "http: {http}");
    }
}

#[tokio::test]
async fn i2_a_client_hears_that_a_question_was_given_up() {
    for http in [false, true] {
        let rig = rig(http, &["--era", "legacy"]).await;
        let client = legacy(&rig.app, X, "2025-11-25", able()).await;
        let params = json!({"requestId": "q", "reason": "too slow"});
        let steps = json!([
            {"send": question("q", "elicitation/create")}, {"sleep": 100},
            {"send": note("notifications/cancelled", params)}, {"sleep": 100},
        ]);
        let mut talk = client
            .tool(1, "script", json!({"steps": steps}))
            .send()
            .await;
        let asked = asked(&mut talk).await;
        let (_, told) = talk.message().await.expect("that it was given up");
        assert_eq!(told["method"], "notifications/cancelled", "{told}");
        assert_eq!(told["params"]["requestId"], asked["id"]);
        assert_eq!(told["params"]["reason"], "too slow");
        let (_, answer) = talk.message().await.expect("the answer");
        assert_eq!(said(&answer), "[]");
        // A modern one is not sent away with a question that nobody has.
        let steps = json!([
            {"send": question("q", "elicitation/create")},
            {"send": note("notifications/cancelled", json!({"requestId": "q"}))},
            {"sleep": 200},
        ]);
        let answer = modern_call(&rig, json!({"steps": steps})).send().await;
        assert_eq!(said(&answer.answer().await), "[]", "http: {http}");
    }
}

/// It is refused, and the call goes on.
#[tokio::test]
async fn i2_a_question_that_nobody_knows_costs_no_call() {
    for http in [false, true] {
        let rig = rig(http, &["--era", "legacy"]).await;
        let steps = json!([{"ask": question("w", "vendor/weird")}]);
        let arguments = json!({"steps": steps});
        let client = legacy(&rig.app, X, "2025-11-25", able()).await;
        let talks = [
            client.tool(1, "script", arguments.clone()).send().await,
            modern_call(&rig, arguments).send().await,
        ];
        for talk in talks {
            let answer = talk.answer().await;
            let answers: Value = serde_json::from_str(said(&answer)).unwrap();
            assert_eq!(answers[0]["error"]["code"], -32601, "{answers}");
        }
    }
}

fn page_first(data: Value) -> Value {
    json!({"error": {"code": -32042, "message": "sign in first", "data": data}})
}

#[tokio::test]
async fn i2_clients_that_know_no_pages_read_of_them() {
    let rig = rig(false, &["--era", "legacy"]).await;
    let page = json!({"mode": "url", "elicitationId": "e", "url": "https://example.org/in",
        "message": "Sign in"});
    let arguments = page_first(json!({"elicitations": [page]}));
    let knows = legacy(
        &rig.app,
        X,
        "2025-11-25",
        json!({"elicitation": {"url": {}}}),
    )
    .await;
    let answer = knows.tool(1, "script", arguments.clone()).send().await;
    assert_eq!(answer.answer().await["error"]["code"], -32042);
    let older = legacy(&rig.app, X, "2025-06-18", able()).await;
    let answer = older
        .tool(1, "script", arguments)
        .send()
        .await
        .answer()
        .await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = said(&answer);
    assert!(
        text.contains("sign in first") && text.contains("https://example.org/in"),
        "{text}"
    );
}

/// A retry would run the call again, and again.
#[tokio::test]
async fn i2_a_page_that_is_not_named_is_not_asked_for() {
    let rig = rig(false, &["--era", "legacy"]).await;
    for data in [json!({}), json!({"elicitations": []})] {
        let mut params = call("script", page_first(data));
        params["_meta"] = json!({CAPABILITIES: {"elicitation": {"url": {}}}});
        let answer = modern(&rig.app, X, "tools/call", params).send().await;
        let answer = answer.answer().await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
}

/// What a legacy server means by a code of the modern era is its own affair.
#[tokio::test]
async fn i2_codes_of_the_modern_era_from_a_legacy_server_mean_nothing() {
    let rig = rig(false, &["--era", "legacy"]).await;
    for code in [-32020, -32021, -32022] {
        let arguments = json!({"error": {"code": code, "message": "mine"}});
        let answer = modern_call(&rig, arguments).send().await;
        assert_eq!(answer.status, 200);
        let answer = answer.answer().await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("mine")
        );
    }
}

/// Revision 2025-03-26 has batches, on every transport.
#[tokio::test]
async fn c1_trap31_a_server_may_say_several_things_at_once() {
    let rig = rig(
        false,
        &["--era", "legacy", "--legacy-version", "2025-03-26"],
    )
    .await;
    let client = legacy(&rig.app, X, "2025-11-25", json!({})).await;
    let log = note(
        "notifications/message",
        json!({"level": "error", "data": "in a batch"}),
    );
    let result = json!({"content": [{"type": "text", "text": "batched"}]});
    let answer = json!({"jsonrpc": "2.0", "id": "$id", "result": result});
    let steps = json!([{"send": [log, answer]}, {"sleep": 200}]);
    let mut talk = client
        .tool(1, "script", json!({"steps": steps}))
        .send()
        .await;
    let (_, told) = talk.message().await.expect("what it logs");
    assert_eq!(told["params"]["data"], "in a batch");
    assert_eq!(
        said(&talk.message().await.expect("the answer").1),
        "batched"
    );
}

/// Who is not told of an extension answers without it.
#[tokio::test]
async fn i2_servers_are_told_of_no_extension_that_is_not_carried() {
    let record = FixtureLog::new();
    let rig = rig(false, &["--era", "modern", "--record", record.path()]).await;
    let tasks = json!({"io.modelcontextprotocol/tasks": {}, "example.org/x": {}});
    let abilities = json!({ "extensions": tasks });
    let mut params = call("echo", json!({"text": "t"}));
    params["_meta"] = json!({CAPABILITIES: abilities});
    let answer = modern(&rig.app, X, "tools/call", params).send().await;
    assert_eq!(said(&answer.answer().await), "t");
    let client = legacy(&rig.app, X, "2025-11-25", abilities).await;
    let answer = client.tool(1, "echo", json!({"text": "t"})).send().await;
    assert_eq!(said(&answer.answer().await), "t");
    let calls = record.of("tools/call");
    assert_eq!(calls.len(), 2);
    for call in calls {
        let told = &call["message"]["params"]["_meta"][CAPABILITIES]["extensions"];
        assert_eq!(*told, json!({"example.org/x": {}}));
    }
}

/// A result of a kind nobody agreed on is no success, and one that asks for
/// nothing must not make us call again.
#[tokio::test]
async fn i2_results_that_cannot_be_used_are_failures() {
    let record = FixtureLog::new();
    let rig = rig(false, &["--era", "modern", "--record", record.path()]).await;
    let client = legacy(&rig.app, X, "2025-11-25", able()).await;
    for kind in ["task", "vendor", "input_required"] {
        let before = record.of("tools/call").len();
        let arguments = json!({"raw": {"resultType": kind, "taskId": "t"}});
        let answer = client
            .tool(1, "script", arguments)
            .send()
            .await
            .answer()
            .await;
        assert_eq!(answer["result"]["isError"], true, "{kind}: {answer}");
        assert_eq!(record.of("tools/call").len(), before + 1, "{kind}");
    }
}
