use config::{EraChoice, RemoteKind, Target};
use indexmap::IndexMap;
use serde_json::json;
use upstream::UpstreamError;
use wire::Era;

use super::{connect, connect_as, fixture, say, start};

/// What the fixture does, and the era it must be found to speak.
const HTTP: &[(&[&str], Era)] = &[
    (&[], Era::Modern),
    (&["--era", "modern"], Era::Modern),
    (
        &["--era", "modern", "--always-stream", "--noise"],
        Era::Modern,
    ),
    (&["--era", "legacy"], Era::Legacy),
    (
        &["--era", "legacy", "--always-stream", "--noise"],
        Era::Legacy,
    ),
    (&["--era", "legacy", "--sessionless"], Era::Legacy),
    (&["--era", "legacy", "--no-get"], Era::Legacy),
    (
        &["--era", "legacy", "--legacy-version", "2025-06-18"],
        Era::Legacy,
    ),
    (
        &["--era", "legacy", "--legacy-version", "2025-03-26"],
        Era::Legacy,
    ),
    (&["--era", "legacy", "--discover-empty"], Era::Legacy),
    (&["--era", "legacy", "--foreign-id"], Era::Legacy),
    (
        &["--era", "legacy", "--discover-status", "400"],
        Era::Legacy,
    ),
    (
        &["--era", "legacy", "--discover-status", "202"],
        Era::Legacy,
    ),
];

#[tokio::test]
async fn c1_c2_streamable_http_connects_in_the_era_it_finds() {
    for (args, era) in HTTP {
        let server = fixture(&[&["--http", "0"], *args].concat()).await;
        let (link, connection) = server.connect().await;
        assert_eq!(connection.peer().era, *era, "{args:?}");
        assert_eq!(
            say(&connection, "echo", json!({"text": "hi"})).await,
            "hi",
            "{args:?}"
        );
        link.end().await;
    }
}

#[tokio::test]
async fn c2_the_definition_can_choose_the_era() {
    let server = fixture(&["--http", "0"]).await;
    for (choice, era) in [
        (EraChoice::Legacy, Era::Legacy),
        (EraChoice::Modern, Era::Modern),
    ] {
        let (link, connection) = connect_as(server.http(), choice).await.unwrap();
        assert_eq!(connection.peer().era, era);
        assert_eq!(say(&connection, "echo", json!({"text": "hi"})).await, "hi");
        link.end().await;
    }
}

#[tokio::test]
async fn c1_http_sse_is_spoken_whatever_the_definition_calls_it() {
    for args in [&["--sse", "0"][..], &["--sse", "0", "--noise"]] {
        let server = fixture(args).await;
        for target in [server.sse(), server.http()] {
            let (link, connection) = connect(target).await.unwrap();
            assert_eq!(connection.peer().era, Era::Legacy);
            assert_eq!(say(&connection, "echo", json!({"text": "hi"})).await, "hi");
            link.end().await;
        }
    }
    let server = fixture(&["--http", "0"]).await;
    let (link, connection) = connect(server.sse()).await.unwrap();
    assert_eq!(say(&connection, "echo", json!({"text": "hi"})).await, "hi");
    link.end().await;
}

#[tokio::test]
async fn c1_servers_of_the_official_rust_sdk_connect_in_both_eras() {
    for (args, era) in [
        (&["--http", "0"][..], Era::Modern),
        (&["--http", "0", "--era", "modern"], Era::Modern),
        (&["--http", "0", "--era", "legacy"], Era::Legacy),
    ] {
        let server = start("oracle_rmcp", args).await;
        let (link, connection) = server.connect().await;
        assert_eq!(connection.peer().era, era, "{args:?}");
        assert_eq!(
            say(&connection, "echo", json!({"text": "hi"})).await,
            "hi",
            "{args:?}"
        );
        link.end().await;
    }
}

#[tokio::test]
async fn a5_what_cannot_be_connected_says_why() {
    let cases: &[(&[&str], &str)] = &[
        (&["--html"], "text/html"),
        (&["--status", "500"], "500 Internal Server Error"),
        (&["--status", "404"], "404 Not Found"),
        (&["--status", "401"], "wants a login"),
        (&["--status", "403"], "refuses us"),
        (
            &["--status", "301", "--location", "https://other.example/mcp"],
            "redirects to other.example",
        ),
        (&["--discover-status", "503"], "503 Service Unavailable"),
        (&["--refuse-init"], "refused the handshake"),
    ];
    for (args, text) in cases {
        let server = fixture(&[&["--http", "0"], *args].concat()).await;
        let error = connect(server.http())
            .await
            .err()
            .unwrap_or_else(|| panic!("{args:?}"));
        assert!(error.to_string().contains(text), "{args:?}: {error}");
    }
    let server = fixture(&[
        "--sse",
        "0",
        "--sse-endpoint",
        "http://other.example/messages",
    ])
    .await;
    let error = connect(server.sse()).await.err().unwrap();
    assert!(
        error.to_string().contains("another origin (other.example)"),
        "{error}"
    );
}

#[tokio::test]
async fn c5_headers_log_in() {
    for transport in ["--http", "--sse"] {
        let wanted = "Authorization: Bearer let-me-in-please";
        let server = fixture(&[transport, "0", "--require-header", wanted]).await;
        let target = |token: &str| {
            let headers = IndexMap::from([("Authorization".into(), format!("Bearer {token}"))]);
            let url = server.url.clone();
            let kind = match transport {
                "--http" => RemoteKind::Http,
                _ => RemoteKind::Sse,
            };
            Target::Remote { kind, url, headers }
        };
        let (link, connection) = connect(target("let-me-in-please")).await.unwrap();
        assert_eq!(say(&connection, "echo", json!({"text": "hi"})).await, "hi");
        link.end().await;
        let error = connect(target("wrong-and-secret")).await.err().unwrap();
        assert!(matches!(error, UpstreamError::Login(_)), "{error:?}");
        assert!(!format!("{error:?}").contains("wrong-and-secret"));
        assert!(connect(server.http()).await.is_err());
    }
}
