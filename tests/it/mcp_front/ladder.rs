//! The ladder by which a POST is judged: era by the body, then one check
//! after the other, each with its own status and code.

use serde_json::{Value, json};

use super::{MODERN, X, call, legacy, modern_body, portway, post};

const NOT_FOUND: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const BAD_REQUEST: i64 = -32600;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn without(key: &str) -> Value {
    let mut body = modern_body(1, "tools/list", json!({}));
    body["params"]["_meta"].as_object_mut().unwrap().remove(key);
    body
}

fn with(key: &str, value: impl Into<Value>) -> Value {
    modern_body(1, "tools/list", json!({"_meta": {key: value.into()}}))
}

/// One case: the body, how its headers differ from the right ones (`-name`
/// is missing, `+name: value` comes beside, `name: value` instead), and the
/// verdict.
type LadderCase = (&'static str, Value, &'static str, (u16, Option<i64>));

const FINE: (u16, Option<i64>) = (200, None);
const GONE: (u16, Option<i64>) = (404, Some(NOT_FOUND));
const MISMATCH: (u16, Option<i64>) = (400, Some(-32020));
const UNSUPPORTED: (u16, Option<i64>) = (400, Some(-32022));
const INCOMPLETE: (u16, Option<i64>) = (400, Some(BAD_PARAMS));

/// 1. The envelope. 2. The version header. 3. The version.
fn versions() -> Vec<LadderCase> {
    let list = || modern_body(1, "tools/list", json!({}));
    let bare = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let level = "io.modelcontextprotocol/logLevel";
    vec![
        ("all is well", list(), "", FINE),
        ("no capabilities", without(CAPABILITIES), "", INCOMPLETE),
        ("no version", without(VERSION), "", INCOMPLETE),
        ("no params", bare(Value::Null), "", INCOMPLETE),
        ("a list", with(CAPABILITIES, json!([])), "", INCOMPLETE),
        ("a number", with(VERSION, 1), "", INCOMPLETE),
        ("_meta is text", bare(json!({"_meta": "x"})), "", INCOMPLETE),
        ("bad log level", with(level, "loud"), "", INCOMPLETE),
        ("first", without(CAPABILITIES), "-mcp-method", INCOMPLETE),
        (
            "no version header",
            list(),
            "-mcp-protocol-version",
            MISMATCH,
        ),
        (
            "legacy",
            list(),
            "mcp-protocol-version: 2025-11-25",
            MISMATCH,
        ),
        ("another version", with(VERSION, "v9"), "", MISMATCH),
        (
            "twice",
            list(),
            "+mcp-protocol-version: 2026-07-28",
            MISMATCH,
        ),
        (
            "unknown version",
            with(VERSION, "v9"),
            "mcp-protocol-version: v9",
            UNSUPPORTED,
        ),
        (
            "legacy version in the envelope",
            with(VERSION, "2025-11-25"),
            "mcp-protocol-version: 2025-11-25",
            UNSUPPORTED,
        ),
        (
            "version before method",
            with(VERSION, "v9"),
            "mcp-protocol-version: v9; -mcp-method",
            UNSUPPORTED,
        ),
    ]
}

/// 4. `Mcp-Method` and `Mcp-Name`. 5. The method is one of the era.
fn methods() -> Vec<LadderCase> {
    let list = || modern_body(1, "tools/list", json!({}));
    let echo = || modern_body(1, "tools/call", call("echo", json!({"text": "hi"})));
    let other = |method: &str| modern_body(1, method, json!({}));
    vec![
        ("no method header", list(), "-mcp-method", MISMATCH),
        ("another", list(), "mcp-method: prompts/list", MISMATCH),
        ("capitals", list(), "mcp-method: TOOLS/LIST", MISMATCH),
        ("twice", list(), "+mcp-method: tools/list", MISMATCH),
        ("space around", list(), "mcp-method:   tools/list\t", FINE),
        ("no name header", echo(), "", MISMATCH),
        ("another name", echo(), "mcp-name: danger", MISMATCH),
        ("twice", echo(), "mcp-name: echo; +mcp-name: echo", MISMATCH),
        ("the name", echo(), "mcp-name: echo", FINE),
        ("space around", echo(), "mcp-name:   echo  ", FINE),
        ("base64", echo(), "mcp-name: =?base64?ZWNobw==?=", FINE),
        (
            "bad base64",
            echo(),
            "mcp-name: =?base64?ZWNobw?=",
            MISMATCH,
        ),
        ("headers first", other("no/such"), "mcp-method: x", MISMATCH),
        ("unknown method", other("no/such"), "", GONE),
        ("of the other era", other("ping"), "", GONE),
        ("of the other era", other("resources/subscribe"), "", GONE),
        ("of servers", other("roots/list"), "", GONE),
        ("of an extension", other("tasks/get"), "", GONE),
        (
            "a notification's",
            other("notifications/progress"),
            "",
            GONE,
        ),
    ]
}

/// 6. `Mcp-Param-*`. 7. The gateway's own verdicts.
fn params() -> Vec<LadderCase> {
    let region = |arguments: Value| modern_body(1, "tools/call", call("region", arguments));
    let eu = || region(json!({"region": "eu"}));
    let unknown = modern_body(1, "tools/call", call("none", json!({})));
    let nameless = modern_body(1, "tools/call", json!({}));
    let wrong = (200, Some(BAD_PARAMS));
    vec![
        ("no header", eu(), "mcp-name: region", MISMATCH),
        (
            "another",
            eu(),
            "mcp-name: region; mcp-param-region: us",
            MISMATCH,
        ),
        (
            "twice",
            eu(),
            "mcp-name: region; mcp-param-region: eu; +mcp-param-region: eu",
            MISMATCH,
        ),
        (
            "right",
            eu(),
            "mcp-name: region; mcp-param-region: eu",
            FINE,
        ),
        (
            "base64",
            eu(),
            "mcp-name: region; mcp-param-region: =?base64?ZXU=?=",
            FINE,
        ),
        (
            "null is absent",
            region(json!({"region": null})),
            "mcp-name: region",
            FINE,
        ),
        ("unknown tool", unknown, "mcp-name: none", wrong),
        ("no name at all", nameless, "", wrong),
    ]
}

#[tokio::test]
async fn k4_modern_requests_are_judged_in_order() {
    let app = portway(&[]).await;
    let cases = [versions(), methods(), params()].concat();
    for (what, body, changes, verdict) in cases {
        let method = body["method"].as_str().unwrap().to_owned();
        let mut request = post(&app, X, &body)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", &method);
        for change in changes.split("; ").filter(|change| !change.is_empty()) {
            request = match (&change[..1], change.split_once(": ")) {
                ("+", Some((name, value))) => request.also(&name[1..], value),
                (_, Some((name, value))) => request.header(name, value),
                (_, None) => request.without(&change[1..]),
            };
        }
        let talk = request.send().await;
        let got = talk.status;
        let answer = talk.answer().await;
        assert_eq!(
            (got, answer["error"]["code"].as_i64()),
            verdict,
            "{what} {changes}: {answer}"
        );
        assert_eq!(answer["id"], 1, "{what}: {answer}");
    }
}

#[tokio::test]
async fn k4_an_unsupported_version_names_those_we_speak() {
    let app = portway(&[]).await;
    let body = with(VERSION, json!("v999.0.0"));
    let talk = post(&app, X, body)
        .header("mcp-protocol-version", "v999.0.0")
        .header("mcp-method", "tools/list");
    let answer = talk.send().await.json().await;
    let data = json!({"supported": [MODERN], "requested": "v999.0.0"});
    assert_eq!(answer["error"]["data"], data);
}

#[tokio::test]
async fn k4_legacy_requests_are_judged_in_order() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let ping = || json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let session = client.session.as_str();
    let rows: Vec<(&str, super::FrontRequest<'_>, u16, Option<i64>)> = vec![
        ("all is well", client.post(ping()), 200, None),
        ("no session", post(&app, X, ping()), 200, None),
        (
            "no session where one is needed",
            post(
                &app,
                X,
                json!({"jsonrpc": "2.0", "id": 7, "method": "resources/subscribe"}),
            ),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "unknown session",
            client.post(ping()).header("mcp-session-id", "x"),
            404,
            Some(-32001),
        ),
        (
            "two sessions",
            client.post(ping()).also("mcp-session-id", session),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "its version",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-11-25"),
            200,
            None,
        ),
        (
            "another legacy version",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-03-26"),
            200,
            None,
        ),
        (
            "a version that never was",
            client
                .post(ping())
                .header("mcp-protocol-version", "2025-01-01"),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "no version but a word",
            client.post(ping()).header("mcp-protocol-version", "latest"),
            400,
            Some(BAD_REQUEST),
        ),
        (
            "modern by its header alone",
            client.post(ping()).header("mcp-protocol-version", MODERN),
            400,
            Some(BAD_PARAMS),
        ),
        (
            "later still",
            client
                .post(ping())
                .header("mcp-protocol-version", "2027-01-01"),
            400,
            Some(BAD_PARAMS),
        ),
        (
            "unknown method",
            client.request(7, "no/such", json!({})),
            200,
            Some(NOT_FOUND),
        ),
        (
            "a modern method",
            client.request(7, "server/discover", json!({})),
            200,
            Some(NOT_FOUND),
        ),
    ];
    for (what, request, status, code) in rows {
        let talk = request.send().await;
        let got = talk.status;
        let answer = talk.answer().await;
        let verdict = (got, answer["error"]["code"].as_i64());
        assert_eq!(verdict, (status, code), "{what}: {answer}");
        assert_eq!(answer["id"], 7, "{what}");
    }
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let reply = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
    for (body, bare) in [(told, 202), (reply, 400)] {
        assert_eq!(client.post(body.clone()).send().await.status, 202);
        let nobody = post(&app, X, &body).send().await;
        assert_eq!(nobody.status, bare);
        let stranger = client.post(body).header("mcp-session-id", "x");
        assert_eq!(stranger.send().await.status, 404);
    }
}
