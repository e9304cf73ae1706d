use std::sync::Arc;

use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;

use super::server::{ScriptedReply, ScriptedServer};
use super::{call, connect, options};
use crate::UpstreamError;
use config::{Redactor, RemoteKind};

fn headers(pairs: &[(&str, &str)]) -> IndexMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

#[tokio::test]
async fn c5_configured_headers_go_along_and_cannot_bend_the_protocol() {
    let server =
        ScriptedServer::start(|asked| async move { ScriptedReply::Json(200, asked.discovered()) })
            .await;
    let (options, lines) = options();
    let headers = headers(&[
        ("Authorization", "Bearer hunter2hunter2"),
        ("X-Team", "blue"),
        ("Host", "evil.example"),
        ("Content-Length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("MCP-Protocol-Version", "1"),
        ("mcp-session-id", "stolen"),
        ("Mcp-Method", "x"),
        ("Accept", "text/html"),
        ("Accept-Encoding", "gzip"),
        ("bad name", "x"),
        ("X-Bad", "a\nb"),
    ]);
    let (stop, kind) = (CancellationToken::new(), RemoteKind::Http);
    let connected = super::super::probe::connect(kind, &server.url, &headers, &options, &stop);
    let (link, _) = connected.await.unwrap();
    let asked = server.find("server/discover").unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer hunter2hunter2"));
    assert_eq!(asked.header("x-team"), Some("blue"));
    assert_eq!(asked.header("mcp-method"), Some("server/discover"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-session-id"), None);
    assert_eq!(asked.header("transfer-encoding"), None);
    assert_eq!(asked.header("accept-encoding"), Some("identity"));
    assert_eq!(asked.header("x-bad"), None);
    let host = format!("127.0.0.1:{}", server.url.port().unwrap());
    assert_eq!(asked.header("host"), Some(&*host));
    let said = lines.lock().unwrap().join("\n");
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("left out"))
            .count(),
        10,
        "{said}"
    );
    assert!(
        !said.contains("hunter2") && !said.contains("stolen"),
        "{said}"
    );
    link.end().await;
}

#[tokio::test]
async fn c5_a_login_in_the_url_becomes_a_header_and_stays_out_of_texts() {
    let mut server = ScriptedServer::start(|asked| async move {
        let login = asked.header("authorization").unwrap_or("none");
        ScriptedReply::Text(
            401,
            "text/plain",
            format!("you said {login} and s3cr3t-value"),
        )
    })
    .await;
    server.url.set_username("me%40home").unwrap();
    server.url.set_password(Some("s3cr3t-value")).unwrap();
    server.url.set_query(Some("key=q-secret"));
    let (mut options, _) = options();
    options.redactor = Arc::new(Redactor::new(["s3cr3t-value"]));
    let error = super::connect_with(&server, RemoteKind::Http, &options)
        .await
        .err()
        .unwrap();
    assert!(
        matches!(error, UpstreamError::Login(_)) && error.permanent(),
        "{error:?}"
    );
    let text = format!("{error} {error:?}");
    assert!(
        text.contains("wants another login") && text.contains("/mcp "),
        "{text}"
    );
    assert!(
        !text.contains("s3cr3t") && !text.contains("q-secret"),
        "{text}"
    );
    let asked = server.find("server/discover").unwrap();
    assert_eq!(
        asked.header("authorization"),
        Some("Basic bWVAaG9tZTpzM2NyM3QtdmFsdWU=")
    );
    assert_eq!(asked.target, "/mcp?key=q-secret");
}

#[tokio::test]
async fn c5_a_login_wanted_later_fails_that_call() {
    let server = ScriptedServer::start(|asked| async move {
        match asked.method() {
            "server/discover" => ScriptedReply::Json(200, asked.discovered()),
            _ => ScriptedReply::Status(401).with("www-authenticate", "Bearer"),
        }
    })
    .await;
    let (link, connection) = connect(&server).await;
    let error = call(&connection, "x").await.unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, UpstreamError::Login(_)), "{said}");
    assert!(
        said.contains("give its definition an Authorization header"),
        "{said}"
    );
    link.end().await;
}
