//! Who is let in (SPEC K1, K3; threats A1, B).

use std::sync::atomic::Ordering;

use portway_http::{Access, EdgeLimits};
use serde_json::Value;

use super::{TOKEN, TestEdge, bearer, request};

fn with_host(host_lines: &str) -> String {
    format!(
        "GET /api/touch HTTP/1.1\r\n{host_lines}{}Connection: close\r\n\r\n",
        bearer()
    )
}

#[tokio::test]
async fn k3_health_needs_no_credential() {
    let edge = TestEdge::start().await;
    let reply = edge.talk(request("GET", "/healthz", "", "")).await;
    let body: Value = serde_json::from_str(reply.body()).unwrap();
    assert_eq!(body["status"], "ok");
    assert_eq!(body["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(body["console"], "missing");
    assert_eq!(
        edge.talk(request("HEAD", "/healthz", "", ""))
            .await
            .status(),
        200
    );
    assert_eq!(edge.talk(request("GET", "/", "", "")).await.status(), 200);

    edge.unsettled.store(2, Ordering::SeqCst);
    let reply = edge.talk(request("GET", "/readyz", "", "")).await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (503, "UNAVAILABLE")
    );
    edge.unsettled.store(0, Ordering::SeqCst);
    assert_eq!(
        edge.talk(request("GET", "/readyz", "", "")).await.status(),
        200
    );
}

#[tokio::test]
async fn k3_everything_else_needs_the_token() {
    let edge = TestEdge::start().await;
    let paths = [
        "/api/touch",
        "/api/none",
        "/api",
        "/mcp",
        "/mcp/",
        "/sse",
        "/servers/a/mcp",
        "/none",
        "//healthz",
        "/%68ealthz",
        "/healthz/..",
        "/api/../healthz",
        "/healthz;x",
        "/assets",
        "/index.html",
    ];
    for method in [
        "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND",
    ] {
        for path in paths {
            let reply = edge.talk(request(method, path, "", "")).await;
            assert_eq!(reply.status(), 401, "{method} {path}");
            assert_eq!(
                reply.header("www-authenticate"),
                Some("Bearer"),
                "{method} {path}"
            );
            assert_eq!(reply.code(), "UNAUTHORIZED");
        }
        if method != "GET" {
            assert_eq!(
                edge.talk(request(method, "/healthz", "", ""))
                    .await
                    .status(),
                401
            );
        }
    }
    for wrong in [
        "Bearer x",
        "Bearer",
        "Basic cHc6cHc=",
        &format!("Bearer {TOKEN}x"),
    ] {
        let header = format!("Authorization: {wrong}\r\n");
        let reply = edge.talk(request("POST", "/api/echo", &header, "{}")).await;
        assert_eq!(reply.status(), 401, "{wrong}");
    }
    assert_eq!(edge.hits(), 0);
    assert_eq!(edge.ask("POST", "/api/echo", "", "{}").await.status(), 200);
}

#[tokio::test]
async fn t_b1_only_our_own_names_are_answered() {
    let edge = TestEdge::start().await;
    let port = edge.addr.port();
    let table = [
        (format!("Host: localhost:{port}\r\n"), 200),
        (format!("Host: 127.0.0.1:{port}\r\n"), 200),
        ("Host: [::1]:1\r\n".into(), 200),
        ("Host: evil.example\r\n".into(), 403),
        ("Host: localhost.evil.com\r\n".into(), 403),
        ("Host: 127.0.0.1.evil.com\r\n".into(), 403),
        ("Host: localhost\r\nHost: localhost\r\n".into(), 400),
        ("Host: localhost\r\nHost: evil.example\r\n".into(), 400),
        (String::new(), 400),
        ("Host:\r\n".into(), 400),
        ("Host: localhost/#@x\r\n".into(), 400),
        ("Host: evil@localhost\r\n".into(), 400),
        ("Host: localhost\r\nOrigin: null\r\n".into(), 403),
        (
            "Host: localhost\r\nOrigin: http://evil.example\r\n".into(),
            403,
        ),
        (
            "Host: localhost\r\nOrigin: http://localhost.evil.com\r\n".into(),
            403,
        ),
        (
            "Host: localhost\r\nOrigin: http://localhost:3000\r\n".into(),
            200,
        ),
        (
            "Host: localhost\r\nOrigin: https://app.example\r\n".into(),
            200,
        ),
        (
            "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n".into(),
            403,
        ),
        (
            "Host: localhost\r\nSec-Fetch-Site: same-origin\r\n".into(),
            200,
        ),
    ];
    for (lines, status) in table {
        let reply = edge.talk(with_host(&lines)).await;
        assert_eq!(reply.status(), status, "{lines}");
        if status != 200 {
            reply.code();
        }
    }
    let absolute = with_host("Host: localhost\r\n").replace(" /api", " http://evil.example/api");
    assert_eq!(edge.talk(absolute).await.status(), 403);
    let absolute = with_host("Host: localhost\r\n").replace(" /api", " http://localhost:1/api");
    assert_eq!(edge.talk(absolute).await.status(), 200);
}

#[tokio::test]
async fn t_b1_public_paths_are_guarded_too() {
    let edge = TestEdge::start().await;
    for path in ["/", "/healthz", "/readyz"] {
        let evil =
            format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        assert_eq!(edge.talk(evil).await.status(), 403, "{path}");
    }
}

#[tokio::test]
async fn t_b2_other_pages_cannot_make_a_browser_act() {
    let edge = TestEdge::start().await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let header = format!("Content-Type: {kind}\r\n");
        let reply = edge.ask("POST", "/api/echo", &header, "{}").await;
        assert_eq!(
            (reply.status(), reply.code().as_str()),
            (415, "UNSUPPORTED_MEDIA_TYPE")
        );
    }
    let preflight = "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\n";
    let reply = edge
        .talk(request("OPTIONS", "/api/echo", preflight, ""))
        .await;
    assert!(
        !reply
            .text
            .to_ascii_lowercase()
            .contains("access-control-allow"),
        "{reply:?}"
    );
    let reply = edge
        .ask("GET", "/api/touch", "Origin: http://localhost:3000\r\n", "")
        .await;
    assert!(
        !reply
            .text
            .to_ascii_lowercase()
            .contains("access-control-allow"),
        "{reply:?}"
    );
    assert_eq!(edge.hits(), 0);
}

#[tokio::test]
async fn t_b2_the_console_signs_in_with_a_link_and_acts_with_a_header() {
    let edge = TestEdge::start().await;
    assert_eq!(
        edge.talk(request("GET", "/?token=wrong", "", ""))
            .await
            .status(),
        401
    );
    let reply = edge
        .talk(request("GET", &format!("/?token={TOKEN}"), "", ""))
        .await;
    assert_eq!((reply.status(), reply.header("location")), (303, Some("/")));
    let cookie = reply.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!reply.text.contains(TOKEN), "{}", reply.text);

    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let as_page = async |method: &str, more: &str| {
        edge.talk(request(
            method,
            "/api/touch",
            &format!("{cookie}{more}"),
            "",
        ))
        .await
        .status()
    };
    assert_eq!(as_page("GET", "").await, 200);
    assert_eq!(as_page("POST", "").await, 403);
    assert_eq!(as_page("POST", "X-Portway-Console: 1\r\n").await, 200);
    assert_eq!(as_page("GET", "Sec-Fetch-Site: same-site\r\n").await, 401);
    assert_eq!(edge.hits(), 1);
}

#[tokio::test]
async fn k1_no_auth_asks_no_token_but_checks_host_and_origin() {
    let edge = TestEdge::serve(EdgeLimits::default(), Access::Open).await;
    assert_eq!(
        edge.talk(request("POST", "/api/echo", "", "{}"))
            .await
            .status(),
        200
    );
    let foreign = request("POST", "/api/echo", "Origin: http://evil.example\r\n", "{}");
    assert_eq!(edge.talk(foreign).await.status(), 403);
    let rebound = request("GET", "/api/touch", "", "").replace("Host: localhost", "Host: evil");
    assert_eq!(edge.talk(rebound).await.status(), 403);
    let form = request(
        "POST",
        "/api/touch",
        "Origin: http://localhost:3000\r\n",
        "",
    );
    assert_eq!(edge.talk(form).await.status(), 403);
}
