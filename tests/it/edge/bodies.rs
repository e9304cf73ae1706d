//! What a body may be, and what an answer looks like (SPEC G3; threats F1, F4).

use super::{MAX_BODY, TestEdge, bearer, request};

#[tokio::test]
async fn g3_errors_have_one_shape() {
    let edge = TestEdge::start().await;
    let reply = edge.ask("GET", "/api/none", "", "").await;
    assert_eq!((reply.status(), reply.code().as_str()), (404, "NOT_FOUND"));
    let reply = edge.ask("DELETE", "/api/touch", "", "").await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (405, "METHOD_NOT_ALLOWED")
    );
    assert_eq!(reply.header("allow"), Some("GET,HEAD,POST"));
    let reply = edge.ask("POST", "/api/echo", "", "{").await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (400, "BAD_REQUEST")
    );
    let reply = edge.ask("POST", "/api/echo", "", "").await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (400, "BAD_REQUEST")
    );
}

#[tokio::test]
async fn g3_every_answer_is_marked() {
    let edge = TestEdge::start().await;
    for (path, status) in [
        ("/healthz", 200),
        ("/api/touch", 200),
        ("/api/none", 404),
        ("/", 200),
    ] {
        let reply = edge.ask("GET", path, "", "").await;
        assert_eq!(reply.status(), status);
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            reply.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
    }
    let page = edge.talk(request("GET", "/", "", "")).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(
        edge.ask("GET", "/api/touch", "", "")
            .await
            .header("cache-control"),
        Some("no-store")
    );
}

#[tokio::test]
async fn t_f1_bodies_are_bounded() {
    let edge = TestEdge::start().await;
    let fits = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BODY - 8));
    assert_eq!(fits.len(), MAX_BODY);
    assert_eq!(edge.ask("POST", "/api/echo", "", &fits).await.status(), 200);
    let over = format!("{fits} ");
    let reply = edge.ask("POST", "/api/echo", "", &over).await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (413, "PAYLOAD_TOO_LARGE")
    );

    let head = request("POST", "/api/echo", &bearer(), "");
    let chunked = "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n";
    let head = format!(
        "{}{chunked}",
        head.trim_end_matches("\r\n").to_owned() + "\r\n"
    );
    let in_chunks = |text: &str| format!("{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    assert_eq!(edge.talk(in_chunks(&fits)).await.status(), 200);
    let reply = edge.talk(in_chunks(&over)).await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (413, "PAYLOAD_TOO_LARGE")
    );

    // A client that sends first and reads then still gets its answer.
    let mut client = edge.connect().await;
    let huge = request("POST", "/api/echo", &bearer(), &"x".repeat(8 << 20));
    assert!(
        client.send(huge).await,
        "the connection was reset under the client"
    );
    assert_eq!(client.rest().await.status(), 413);

    let reply = edge
        .ask("POST", "/api/echo", "Content-Encoding: gzip\r\n", "{}")
        .await;
    assert_eq!(reply.status(), 415);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
    let reply = edge.ask("POST", "/api/echo", "", &deep).await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (400, "BAD_REQUEST")
    );
}

#[tokio::test]
async fn t_fault_52_a_panic_costs_one_answer() {
    let edge = TestEdge::start().await;
    let mut client = edge.connect().await;
    let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer());
    client.send(ask("/api/panic")).await;
    let reply = client.answer().await;
    assert_eq!((reply.status(), reply.code().as_str()), (500, "INTERNAL"));
    assert!(!reply.text.contains("on purpose"));
    client.send(ask("/healthz")).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// Fault 1: every body gets an answer.
#[tokio::test]
async fn t_fault_1_ten_thousand_mutated_bodies() {
    let edge = TestEdge::start().await;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let valid = br#"{"name":"a","args":["-y","\u00e9"],"env":{"K":"v"},"n":[1,-2.5e3,null,true]}"#;
    let mut client = edge.connect().await;
    for round in 0..10_000 {
        let body = mutated(valid, &mut random);
        let head = format!(
            "POST /api/echo HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            bearer(),
            body.len()
        );
        client.send([head.as_bytes(), &body].concat()).await;
        let reply = client.answer().await;
        let shown = String::from_utf8_lossy(&body);
        assert!(
            [200, 400, 422].contains(&reply.status()),
            "round {round} {shown}: {reply:?}"
        );
        if reply.status() != 200 {
            reply.code();
        }
    }
}

fn mutated(valid: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut body = valid.to_vec();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..body.len().max(1)).min(body.len());
        match random.u8(..5) {
            0 if at < body.len() => body[at] = random.u8(..),
            1 => body.insert(at, *random.choice(b"{}[]\",:\\0\x00e-").unwrap_or(&b'{')),
            2 if at < body.len() => drop(body.remove(at)),
            3 => body.truncate(at),
            _ => body.extend_from_slice(&valid[..at.min(valid.len())]),
        }
    }
    body
}
