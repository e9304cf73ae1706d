use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::server::{ReceivedRequest, ScriptedReply, ScriptedServer, event};
use super::{connect_with, options};
use crate::UpstreamError;
use config::{EraChoice, RemoteKind};
use wire::Era;

type ProbeAnswer = fn(&ReceivedRequest) -> ScriptedReply;

/// A server that answers the probe with `probe` and any legacy request normally.
async fn probed(probe: ProbeAnswer) -> ScriptedServer {
    ScriptedServer::start(move |asked| async move {
        match asked.method() {
            "server/discover" => probe(&asked),
            "initialize" => ScriptedReply::Json(200, asked.initialized()),
            "GET" => ScriptedReply::Status(405),
            _ => ScriptedReply::Status(202),
        }
    })
    .await
}

#[tokio::test]
async fn c2_a_discovery_is_modern_as_json_and_as_a_stream() {
    let answers: [ProbeAnswer; 2] = [
        |asked| ScriptedReply::Json(200, asked.discovered()),
        |asked| ScriptedReply::events(&[": hello\n\n".into(), event(&asked.discovered())]),
    ];
    for answer in answers {
        let server = probed(answer).await;
        let (link, connection) = super::connect(&server).await;
        assert_eq!(connection.peer().era, Era::Modern);
        assert_eq!(server.methods(), ["server/discover"]);
        let probe = server.find("server/discover").unwrap();
        assert_eq!(probe.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(probe.header("mcp-method"), Some("server/discover"));
        link.end().await;
    }
}

#[tokio::test]
async fn c2_what_only_a_legacy_server_says_leads_to_initialize() {
    let cases: &[(&str, ProbeAnswer)] = &[
        ("404 empty", |_| ScriptedReply::Status(404)),
        ("405 empty", |_| ScriptedReply::Status(405)),
        ("400 text", |_| {
            ScriptedReply::Text(400, "text/plain", "no session".into())
        }),
        ("406", |_| ScriptedReply::Status(406)),
        ("422 json", |_| {
            ScriptedReply::Json(422, json!({"detail": []}))
        }),
        ("400 -32000", |asked| {
            ScriptedReply::Json(400, asked.error(-32000, "Server not initialized"))
        }),
        ("400 -32600", |asked| {
            ScriptedReply::Json(400, asked.error(-32600, "Unsupported version"))
        }),
        ("200 -32601", |asked| {
            ScriptedReply::Json(200, asked.error(-32601, "Method not found"))
        }),
        ("404 -32601", |asked| {
            ScriptedReply::Json(404, asked.error(-32601, "Method not found"))
        }),
        ("500 -32601", |asked| {
            ScriptedReply::Json(500, asked.error(-32601, "Method not found"))
        }),
        ("200 -32602", |asked| {
            ScriptedReply::Json(200, asked.error(-32602, "Invalid params"))
        }),
        ("200 {}", |asked| {
            ScriptedReply::Json(200, asked.result(json!({})))
        }),
        ("200 foreign id", |_| {
            ScriptedReply::Json(200, json!({"jsonrpc": "2.0", "id": "other", "result": {}}))
        }),
        ("202", |_| ScriptedReply::Status(202)),
        ("200 empty", |_| {
            ScriptedReply::Text(200, "application/json", String::new())
        }),
        ("200 html", |_| {
            ScriptedReply::Text(200, "text/html", "<html>".into())
        }),
        ("-32022, legacy only", |asked| {
            let mut error = asked.error(-32022, "Unsupported");
            error["error"]["data"] = json!({"supported": ["2025-11-25"], "requested": "x"});
            ScriptedReply::Json(400, error)
        }),
        ("-32022 without a list", |asked| {
            ScriptedReply::Json(400, asked.error(-32022, "Unsupported"))
        }),
    ];
    for (name, answer) in cases {
        let server = probed(*answer).await;
        let (link, connection) = connect_with(&server, RemoteKind::Http, &options().0)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(connection.peer().era, Era::Legacy, "{name}");
        assert_eq!(
            server.methods()[..3],
            ["server/discover", "initialize", "notifications/initialized"],
            "{name}"
        );
        let ready = server.find("notifications/initialized").unwrap();
        assert_eq!(ready.header("mcp-protocol-version"), Some("2025-11-25"));
        link.end().await;
    }
}

/// The kind of an error, and a part of its text.
type Expected = (&'static str, &'static str);

fn kind(error: &UpstreamError) -> &'static str {
    match error {
        UpstreamError::Login(_) => "login",
        UpstreamError::Unreachable(_) => "unreachable",
        UpstreamError::Protocol(_) => "protocol",
        _ => "other",
    }
}

#[tokio::test]
async fn c2_trap03_outages_and_refusals_are_no_evidence_of_an_era() {
    let cases: &[(&str, ProbeAnswer, Expected)] = &[
        (
            "401",
            |_| ScriptedReply::Status(401),
            ("login", "wants a login"),
        ),
        (
            "403",
            |_| ScriptedReply::Text(403, "text/plain", "not you".into()),
            ("login", "not you"),
        ),
        (
            "500",
            |_| ScriptedReply::Text(500, "text/plain", "oops".into()),
            ("unreachable", "500 Internal Server Error: oops"),
        ),
        (
            "502",
            |_| ScriptedReply::Status(502),
            ("unreachable", "502"),
        ),
        (
            "500 -32603",
            |asked| ScriptedReply::Json(500, asked.error(-32603, "broken")),
            ("unreachable", "500 Internal Server Error: broken"),
        ),
        (
            "301",
            |_| ScriptedReply::Status(301).with("location", "https://u:p@else.example:9/x?key=1"),
            ("protocol", "redirects to else.example:9 (301"),
        ),
        (
            "307",
            |_| ScriptedReply::Status(307),
            ("protocol", "redirects (307"),
        ),
        (
            "reset",
            |_| ScriptedReply::Nothing,
            ("unreachable", "/mcp: "),
        ),
        (
            "garbage",
            |_| ScriptedReply::Raw("HELLO THERE\r\n\r\n"),
            ("unreachable", "/mcp: "),
        ),
        (
            "bad chunks",
            |_| {
                ScriptedReply::Raw(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                )
            },
            ("unreachable", "broke off"),
        ),
        (
            "cut body",
            |_| {
                ScriptedReply::Raw(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
                )
            },
            ("unreachable", "broke off"),
        ),
        (
            "ended stream",
            |_| ScriptedReply::events(&[": nothing\n\n".into()]),
            ("unreachable", "ended without an answer"),
        ),
        (
            "-32020",
            |asked| ScriptedReply::Json(400, asked.error(-32020, "header differs")),
            ("protocol", "header differs"),
        ),
        (
            "-32022, newer only",
            |asked| {
                let mut error = asked.error(-32022, "Unsupported");
                error["error"]["data"] = json!({"supported": ["2027-01-01"], "requested": "x"});
                ScriptedReply::Json(400, error)
            },
            ("protocol", "2027-01-01"),
        ),
    ];
    for (name, answer, (expected, text)) in cases {
        let server = probed(*answer).await;
        let error = connect_with(&server, RemoteKind::Http, &options().0)
            .await
            .err();
        let error = error.unwrap_or_else(|| panic!("{name}: connected"));
        assert_eq!(kind(&error), *expected, "{name}: {error}");
        assert!(error.to_string().contains(text), "{name}: {error}");
        assert!(!error.to_string().contains("key="), "{name}: {error}");
        assert_eq!(server.methods(), ["server/discover"], "{name}");
    }
}

#[tokio::test]
async fn c2_a_url_that_is_no_mcp_server_says_what_it_is() {
    type Always = fn() -> ScriptedReply;
    let cases: [(&str, Always, Expected); 5] = [
        (
            "html",
            || {
                ScriptedReply::Text(
                    200,
                    "text/html; charset=utf-8",
                    "<!doctype html> Welcome".into(),
                )
            },
            ("protocol", "\"text/html\""),
        ),
        (
            "202",
            || ScriptedReply::Status(202),
            ("protocol", "202 Accepted and nothing more"),
        ),
        (
            "404",
            || ScriptedReply::Text(404, "text/html", "<h1>Not Found</h1>".into()),
            ("protocol", "404 Not Found"),
        ),
        ("410", || ScriptedReply::Status(410), ("protocol", "410")),
        (
            "other json",
            || ScriptedReply::Json(200, json!({"ok": true})),
            ("protocol", "not the answer"),
        ),
    ];
    for (name, say, (expected, text)) in cases {
        let server = ScriptedServer::start(move |_| async move { say() }).await;
        let error = connect_with(&server, RemoteKind::Http, &options().0)
            .await
            .err();
        let error = error.unwrap_or_else(|| panic!("{name}: connected"));
        assert_eq!(kind(&error), expected, "{name}: {error}");
        assert!(error.to_string().contains(text), "{name}: {error}");
    }
}

#[tokio::test]
async fn c2_nobody_there_and_no_tls_are_unreachable() {
    let mut server = ScriptedServer::start(|_| async { ScriptedReply::Nothing }).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    server.url = format!("https://{}/mcp", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    tokio::spawn(async move {
        let (mut plain, _) = listener.accept().await.unwrap();
        let _ = plain.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    let error = connect_with(&server, RemoteKind::Http, &options().0)
        .await
        .err()
        .unwrap();
    assert_eq!(kind(&error), "unreachable", "{error}");
    assert!(
        error.to_string().contains("could not be reached"),
        "{error}"
    );

    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    server.url = format!("http://{free}/mcp").parse().unwrap();
    for remote in [RemoteKind::Http, RemoteKind::Sse] {
        let error = connect_with(&server, remote, &options().0)
            .await
            .err()
            .unwrap();
        assert_eq!(kind(&error), "unreachable", "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn c2_the_era_of_the_definition_is_obeyed() {
    let (mut options, _) = options();
    options.era = EraChoice::Legacy;
    let server = probed(|asked| ScriptedReply::Json(200, asked.discovered())).await;
    let (link, connection) = connect_with(&server, RemoteKind::Http, &options)
        .await
        .unwrap();
    assert_eq!(connection.peer().era, Era::Legacy);
    assert_eq!(server.count("server/discover"), 0);
    link.end().await;

    options.era = EraChoice::Modern;
    let server = probed(|_| ScriptedReply::Status(404)).await;
    let error = connect_with(&server, RemoteKind::Http, &options)
        .await
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("does not speak MCP 2026-07-28"),
        "{error}"
    );
    assert_eq!(server.methods(), ["server/discover"]);
}

#[tokio::test]
async fn c2_a_remembered_era_saves_the_probe_until_it_is_wrong() {
    let (mut options, _) = options();
    options.remembered = Some(Era::Legacy);
    let server = probed(|_| ScriptedReply::Status(404)).await;
    let (link, _) = connect_with(&server, RemoteKind::Http, &options)
        .await
        .unwrap();
    assert_eq!(server.count("server/discover"), 0);
    link.end().await;

    // The server has been upgraded since.
    let server = ScriptedServer::start(|asked| async move {
        match asked.method() {
            "server/discover" => ScriptedReply::Json(200, asked.discovered()),
            _ => ScriptedReply::Json(404, asked.error(-32601, "Method not found")),
        }
    })
    .await;
    let (link, connection) = connect_with(&server, RemoteKind::Http, &options)
        .await
        .unwrap();
    assert_eq!(connection.peer().era, Era::Modern);
    assert_eq!(server.methods(), ["initialize", "server/discover"]);
    link.end().await;
}

#[tokio::test]
async fn c2_a_silent_server_is_given_up() {
    let (mut options, _) = options();
    options.limits.connect = std::time::Duration::from_millis(200);
    let server = ScriptedServer::start(|_| std::future::pending()).await;
    for remote in [RemoteKind::Http, RemoteKind::Sse] {
        let error = connect_with(&server, remote, &options).await.err().unwrap();
        assert_eq!(kind(&error), "unreachable", "{error}");
        assert!(error.to_string().contains("within 200 ms"), "{error}");
    }
}
