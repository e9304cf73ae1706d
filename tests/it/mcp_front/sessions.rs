//! Legacy sessions: whose they are, and what they survive.

use serde_json::json;

use super::{X, ask, legacy, portway, post, said};
use crate::app::{App, fixtures, setup};

#[tokio::test]
async fn k4_initialize_agrees_on_a_legacy_revision() {
    let app = portway(&[]).await;
    for (asked, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("latest", "2025-11-25"),
    ] {
        let client = legacy(&app, X, asked, json!({})).await;
        let hello = &client.hello["result"];
        assert_eq!(hello["protocolVersion"], agreed);
        assert!(hello["capabilities"]["tools"].is_object(), "{hello}");
        assert!(hello["serverInfo"]["name"].is_string());
        assert!(hello.get("resultType").is_none());
        let visible = |byte: u8| (0x21..=0x7e).contains(&byte);
        assert!(client.session.bytes().all(visible));
    }
}

#[tokio::test]
async fn t_d2_a_session_is_good_at_its_own_endpoint_only() {
    let app = setup()
        .mcp(fixtures(&[("x", &[]), ("y", &[])]))
        .start()
        .await;
    app.until_status("x", "connected").await;
    app.until_status("y", "connected").await;
    let places = [X, "/servers/y/mcp", "/mcp"];
    for own in places {
        let client = legacy(&app, own, "2025-11-25", json!({})).await;
        let mut tampered = client.session.clone();
        let last = tampered.pop().unwrap();
        tampered.push(if last == 'A' { 'B' } else { 'A' });
        for place in places {
            for (session, known) in [(&client.session, place == own), (&tampered, false)] {
                let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
                let posted = post(&app, place, ping).header("mcp-session-id", session);
                assert_eq!(posted.send().await.status, if known { 200 } else { 404 });
                let got = ask(&app, "GET", place).header("mcp-session-id", session);
                assert_eq!(got.send().await.status, if known { 200 } else { 404 });
                if !known {
                    let resumed = ask(&app, "GET", place)
                        .header("mcp-session-id", session)
                        .header("last-event-id", "g1-1");
                    assert_eq!(resumed.send().await.status, 404);
                    let ended = ask(&app, "DELETE", place).header("mcp-session-id", session);
                    assert_eq!(ended.send().await.status, 404);
                }
            }
        }
    }
}

#[tokio::test]
async fn an_ended_session_is_404_and_ends_its_streams() {
    let app = portway(&[]).await;
    let client = legacy(&app, X, "2025-11-25", json!({})).await;
    let mut own = client.listen().send().await;
    assert!(own.event().await.is_some());
    let delete = || ask(&app, "DELETE", X).header("mcp-session-id", &client.session);
    let talk = delete().send().await;
    assert_eq!((talk.status, talk.text().await.as_str()), (204, ""));
    assert!(own.event().await.is_none());
    let ping = client.request(1, "ping", json!({})).send().await;
    assert_eq!(ping.verdict().await, (404, Some(-32001)));
    assert_eq!(client.listen().send().await.status, 404);
    assert_eq!(delete().send().await.status, 404);
}

async fn restarted(app: App) -> App {
    let App {
        setup, mut child, ..
    } = app;
    child.kill().await.unwrap();
    let app = setup.start().await;
    app.until_status("x", "connected").await;
    app
}

#[tokio::test]
async fn a_session_survives_a_restart_of_portway() {
    let app = portway(&[]).await;
    let abilities = json!({"elicitation": {"form": {}}});
    let client = legacy(&app, X, "2025-06-18", abilities).await;
    assert_eq!(
        client.request(1, "ping", json!({})).send().await.status,
        200
    );
    let (path, session, hello) = (
        client.path.clone(),
        client.session.clone(),
        client.hello.clone(),
    );
    let app = restarted(app).await;
    let client = super::LegacyClient {
        app: &app,
        path,
        session,
        hello,
    };
    let answer = client
        .tool(2, "echo", json!({"text": "hi"}))
        .send()
        .await
        .answer()
        .await;
    assert_eq!(said(&answer), "hi");
    // It still knows what the client can do, and which revision it speaks.
    let mut talk = client.tool(3, "elicit", json!({})).send().await;
    let (_, question) = talk.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"].get("mode").is_none(), "{question}");
    client
        .reply(&question["id"], json!({"action": "decline"}))
        .await;
    assert!(said(&talk.answer().await).contains("decline"));
    // The id of an event of the earlier run leads to the session's stream.
    let mut own = client.resume("g1f-3").send().await;
    assert_eq!(own.status, 200);
    // What changed between the two runs nobody knows.
    for list in ["tools", "resources", "prompts"] {
        let (_, message) = own.message().await.unwrap();
        let told = format!("notifications/{list}/list_changed");
        assert_eq!(message["method"], told.as_str());
    }
    drop(
        client
            .tool(4, "toggle_tool", json!({}))
            .send()
            .await
            .answer()
            .await,
    );
    let (_, message) = own.message().await.unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    let lost = client.resume("p1f-3").send().await;
    assert_eq!(
        lost.status, 405,
        "the answer to an earlier run's call is lost"
    );
}

#[tokio::test]
async fn k1_another_secret_knows_no_sessions() {
    let secret = |text: &str| text.repeat(4);
    let app = setup()
        .env("PORTWAY_SECRET", &secret("0123456789"))
        .mcp(fixtures(&[("x", &[])]))
        .start()
        .await;
    let client = legacy(&app, X, "2025-06-18", json!({})).await;
    let session = client.session.clone();
    let App {
        setup, mut child, ..
    } = app;
    child.kill().await.unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let app = setup.start().await;
    let talk = post(&app, X, &ping).header("mcp-session-id", &session);
    assert_eq!(talk.send().await.status, 200);
    let App {
        setup, mut child, ..
    } = app;
    child.kill().await.unwrap();
    let app = setup
        .env("PORTWAY_SECRET", &secret("abcdefghij"))
        .start()
        .await;
    let talk = post(&app, X, &ping).header("mcp-session-id", &session);
    assert_eq!(talk.send().await.status, 404);
}
