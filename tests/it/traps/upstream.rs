//! Traps on the way to a server.

use serde_json::{Value, json};

use super::{FixtureLog, rig};
use crate::app::{TOKEN, fixture, fixtures, setup};
use crate::mcp_front::{X, call, legacy, modern, portway, post, said};

const PREFIX: &str = "io.modelcontextprotocol/";

#[tokio::test]
async fn trap02_a_legacy_server_gets_its_handshake_whoever_the_client_is() {
    for http in [false, true] {
        let record = FixtureLog::new();
        let rig = rig(http, &["--era", "legacy", "--record", record.path()]).await;
        let echo = call("echo", json!({"text": "hi"}));
        let answer = modern(&rig.app, X, "tools/call", echo).send().await;
        assert_eq!(said(&answer.answer().await), "hi");
        let [called] = &record.of("tools/call")[..] else {
            panic!("{:?}", record.methods())
        };
        let meta = called["message"]["params"]["_meta"].to_string();
        assert!(!meta.contains(PREFIX), "{meta}");
        let methods = record.methods();
        let place = |method: &str| methods.iter().position(|one| one == method);
        let order = ["initialize", "notifications/initialized", "tools/call"].map(place);
        assert!(order.is_sorted() && order[0].is_some(), "{methods:?}");
        if http {
            // In a session that the server gave us.
            assert!(called["http"]["headers"]["mcp-session-id"].is_string());
        }
    }
}

#[tokio::test]
async fn trap04_finding_the_era_calls_no_tool() {
    for era in ["legacy", "modern", "both"] {
        for http in [false, true] {
            let record = FixtureLog::new();
            let _rig = rig(http, &["--era", era, "--record", record.path()]).await;
            let harmless = |method: &String| {
                method.ends_with("/list")
                    || method.starts_with("notifications/")
                    || ["server/discover", "initialize", "subscriptions/listen"]
                        .contains(&method.as_str())
            };
            let methods = record.methods();
            assert!(methods.iter().any(|method| method == "tools/list"));
            assert!(methods.iter().all(harmless), "{era}: {methods:?}");
        }
    }
}

#[tokio::test]
async fn trap06_headers_are_made_anew_for_each_hop() {
    let record = FixtureLog::new();
    let rig = rig(true, &["--era", "modern", "--record", record.path()]).await;
    let app = &rig.app;
    let region = |value: &str| {
        let params = call("mcp_x_region", json!({"region": value}));
        modern(app, "/mcp", "tools/call", params)
    };
    // Checked on our hop, and nothing goes on to the next.
    for wrong in [
        region("eu"),
        region("eu").header("mcp-param-region", "us"),
        region("eu").header("mcp-param-region", "=?base64?%%%?="),
        region("eu")
            .header("mcp-param-region", "eu")
            .header("mcp-name", "region"),
        region("eu")
            .header("mcp-param-region", "eu")
            .without("mcp-name"),
    ] {
        assert_eq!(wrong.send().await.verdict().await, (400, Some(-32020)));
    }
    assert_eq!(record.of("tools/call").len(), 0);
    let right = [("eu", "eu"), ("Zürich", "=?base64?WsO8cmljaA==?=")];
    for (value, header) in right {
        let talk = region(value)
            .header("mcp-param-region", header)
            .send()
            .await;
        assert_eq!(said(&talk.answer().await), value);
    }
    // A legacy client sends none of them, the server gets them all the same.
    let client = legacy(app, "/mcp", "2025-11-25", json!({})).await;
    let talk = client.tool(1, "mcp_x_region", json!({"region": "Zürich"}));
    assert_eq!(said(&talk.send().await.answer().await), "Zürich");
    let seen = record.of("tools/call");
    assert_eq!(seen.len(), 3);
    for (line, region) in seen.iter().zip(["eu", right[1].1, right[1].1]) {
        let headers = &line["http"]["headers"];
        assert_eq!(headers["mcp-name"], "region");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-param-region"], region);
        assert_eq!(line["message"]["params"]["name"], "region");
    }
}

/// The code of the error, and its data.
async fn fault(talk: crate::mcp_front::FrontResponse) -> (Option<i64>, Value) {
    let answer = talk.answer().await;
    let error = &answer["error"];
    (error["code"].as_i64(), error["data"].clone())
}

#[tokio::test]
async fn trap21_no_client_hears_of_the_other_era_or_hop() {
    let nowhere = json!({"uri": "fixture://nowhere"});
    let failing = |code: i64| call("error", json!({"code": code}));
    for (era, http) in [("legacy", false), ("modern", false), ("modern", true)] {
        let rig = rig(http, &["--era", era]).await;
        let app = &rig.app;
        let lost = modern(app, X, "resources/read", nowhere.clone())
            .send()
            .await;
        assert_eq!(fault(lost).await, (Some(-32602), nowhere.clone()), "{era}");
        let client = legacy(app, X, "2025-11-25", json!({})).await;
        let lost = client
            .request(1, "resources/read", nowhere.clone())
            .send()
            .await;
        assert_eq!(fault(lost).await, (Some(-32002), nowhere.clone()), "{era}");
        // What a server says of its hop from us is ours to deal with.
        for code in [-32020, -32022] {
            let new = modern(app, X, "tools/call", failing(code)).send().await;
            assert_eq!(fault(new).await.0, Some(-32603), "{era} {code}");
            let old = client.request(2, "tools/call", failing(code)).send().await;
            assert_eq!(fault(old).await.0, Some(-32603), "{era} {code}");
        }
        // An error of its own stays as it is.
        let own = modern(app, X, "tools/call", failing(-32050)).send().await;
        assert_eq!(fault(own).await.0, Some(-32050));
    }
    let app = portway(&["--era", "legacy"]).await;
    let page =
        json!({"mode": "url", "url": "https://example.org", "message": "Go", "elicitationId": "e"});
    let data = json!({"elicitations": [page]});
    let first = call("error", json!({"code": -32042, "data": data}));
    let lacking = modern(&app, X, "tools/call", first.clone()).send().await;
    assert_eq!(fault(lacking).await.0, Some(-32021));
    let mut able = first;
    able["_meta"] = json!({PREFIX.to_owned() + "clientCapabilities": {"elicitation": {"url": {}}}});
    let asked = modern(&app, X, "tools/call", able)
        .send()
        .await
        .answer()
        .await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
}

#[tokio::test]
async fn trap30_servers_are_told_apart_by_our_names_alone() {
    // Both call themselves the same, and one claims to be us.
    let server =
        json!({"command": fixture(), "args": ["--name", "portway"], "containment": "group"});
    let mcp = json!({"mcpServers": {"one": server, "two": server}});
    let app = setup().mcp(mcp).start().await;
    let mut pids = Vec::new();
    for server in ["one", "two"] {
        let record = app.until_status(server, "connected").await;
        let tool = format!("mcp_{server}_pid");
        let talk = modern(&app, "/mcp", "tools/call", call(&tool, json!({})))
            .send()
            .await;
        pids.push(said(&talk.answer().await).to_owned());
        let own = format!("/servers/{server}/mcp");
        let talk = modern(&app, &own, "tools/call", call("pid", json!({})))
            .send()
            .await;
        assert_eq!(said(&talk.answer().await), pids[pids.len() - 1]);
        assert_eq!(record["name"], server);
    }
    assert_ne!(pids[0], pids[1]);
}

#[tokio::test]
async fn trap30_who_a_client_says_it_is_opens_nothing() {
    let record = FixtureLog::new();
    let args: &[&str] = &["--record", record.path()];
    let filters = json!({"filters": {"quiet": {"deny": ["x:echo"]}}});
    let app = setup()
        .mcp(fixtures(&[("x", args)]))
        .file(".portway.json", filters.to_string())
        .start()
        .await;
    app.until_status("x", "connected").await;
    let admin = json!({"name": "portway", "title": "admin", "version": "1"});
    let mut params = call("mcp_x_echo", json!({"text": "hi"}));
    params["_meta"] = json!({PREFIX.to_owned() + "clientInfo": admin});
    let boast = |path: &str| modern(&app, path, "tools/call", params.clone());
    let stranger = boast("/mcp").without("authorization").send().await;
    assert_eq!(stranger.status, 401);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": admin});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let stranger = post(&app, "/mcp", hello)
        .without("authorization")
        .send()
        .await;
    assert_eq!(stranger.status, 401);
    // Nor does a header say what a body may do.
    let denied = boast("/mcp?filter=quiet").send().await;
    assert_eq!(denied.verdict().await, (200, Some(-32602)));
    let dressed = boast("/mcp?filter=quiet")
        .header("mcp-name", "mcp_x_add")
        .send()
        .await;
    assert_eq!(dressed.verdict().await, (400, Some(-32020)));
    assert_eq!(record.of("tools/call").len(), 0);
    assert_eq!(said(&boast("/mcp").send().await.answer().await), "hi");
    // And the server is told who we are, not who the client says it is.
    let seen = record.of("tools/call");
    let told = &seen[0]["message"]["params"]["_meta"][PREFIX.to_owned() + "clientInfo"];
    assert_eq!(told["title"], Value::Null);
    assert!(!seen[0].to_string().contains(TOKEN));
}
