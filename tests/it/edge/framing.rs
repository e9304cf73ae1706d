//! Requests that two parsers could read in two ways (threats E2).

use portway_http::EdgeLimits;
use portway_http::framing::HeadLimits;

use super::{TOKEN, TestEdge, bearer, request};

fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /api/touch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\n{headers}\r\n{body}"
    )
}

#[tokio::test]
async fn t_e2_ambiguous_framing_is_refused_and_the_connection_closed() {
    let edge = TestEdge::start().await;
    let smuggled = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let cases = [
        (
            "CL then TE",
            post(
                "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                smuggled,
            ),
        ),
        (
            "TE then CL",
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                smuggled,
            ),
        ),
        (
            "two lengths",
            post("Content-Length: 2\r\nContent-Length: 3\r\n", "{}x"),
        ),
        (
            "one length twice",
            post("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
        ),
        ("a list of lengths", post("Content-Length: 2, 2\r\n", "{}")),
        ("signed length", post("Content-Length: +2\r\n", "{}")),
        ("hex length", post("Content-Length: 0x2\r\n", "{}")),
        ("empty length", post("Content-Length:\r\n", "{}")),
        (
            "TE gzip, chunked",
            post("Transfer-Encoding: gzip, chunked\r\n", smuggled),
        ),
        (
            "TE chunked, identity",
            post("Transfer-Encoding: chunked, identity\r\n", smuggled),
        ),
        (
            "TE identity",
            post("Transfer-Encoding: identity\r\n", smuggled),
        ),
        (
            "TE in capitals",
            post("Transfer-Encoding: CHUNKED\r\n", smuggled),
        ),
        (
            "TE with a vertical tab",
            post("Transfer-Encoding: \x0bchunked\r\n", smuggled),
        ),
        (
            "two TEs",
            post(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
                smuggled,
            ),
        ),
        (
            "space before the colon",
            post("Transfer-Encoding : chunked\r\n", smuggled),
        ),
        (
            "folded header",
            post("X: a\r\n Transfer-Encoding: chunked\r\n", smuggled),
        ),
        ("bare LF after a header", post("X: a\nY: b\r\n", "")),
        (
            "bare LF after the request line",
            post("", "").replacen("\r\n", "\n", 1),
        ),
        (
            "bare LF at the end of the head",
            post("", "").replace("\r\n\r\n", "\r\n\n"),
        ),
        (
            "bare CR in a value",
            post("X: a\rTransfer-Encoding: chunked\r\n", smuggled),
        ),
        ("NUL in a value", post("X: a\0b\r\n", "")),
        ("NUL in a name", post("X\0: a\r\n", "")),
        ("no colon", post("Transfer-Encoding\r\n", "")),
        ("no name", post(": chunked\r\n", "")),
        (
            "HTTP/1.0 with TE",
            post("Transfer-Encoding: chunked\r\n", smuggled).replace("/1.1", "/1.0"),
        ),
        ("HTTP/0.9", "GET /api/touch\r\n\r\n".into()),
        ("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}".into()),
        (
            "CONNECT",
            "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        ),
        ("an empty line first", format!("\r\n{}", post("", ""))),
        ("two spaces", post("", "").replacen(' ', "  ", 1)),
    ];
    for (what, bytes) in cases {
        let reply = edge.talk(&bytes).await;
        assert_eq!(reply.statuses(), [400], "{what}: {reply:?}");
        assert_eq!(reply.code(), "BAD_REQUEST", "{what}");
        assert!(
            reply.clean,
            "{what}: the answer must not be lost to a reset"
        );
        assert_eq!(edge.hits(), 0, "{what}");
    }
}

#[tokio::test]
async fn t_e2_broken_chunks_end_the_request_and_the_connection() {
    let edge = TestEdge::start().await;
    let bodies = [
        "2\r\n{}0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
        "2;x=y\r\n{}\r\n0\r\n\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}\r\n0\r\nX: y\r\n\r\n",
        "2\r\n{}\r\n0\r\nGET / HTTP/1.1\r\n\r\n",
        "fffffffffffffffff\r\n",
    ];
    for body in bodies {
        let bytes = post("Transfer-Encoding: chunked\r\n", body).replace("touch", "echo");
        let reply = edge.talk(bytes).await;
        assert_eq!(reply.statuses(), [400], "{body:?}: {reply:?}");
        assert_eq!(edge.hits(), 0, "{body:?}");
    }
}

#[tokio::test]
async fn t_e2_a_refusal_waits_for_the_answers_before_it() {
    let edge = TestEdge::start().await;
    let good = format!(
        "GET /api/slow/200 HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        bearer()
    );
    let bad = post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "{}");
    let reply = edge.talk(format!("{good}{good}{bad}")).await;
    assert_eq!(reply.statuses(), [200, 200, 400], "{reply:?}");
}

#[tokio::test]
async fn t_e2_packets_do_not_matter() {
    let edge = TestEdge::start().await;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let keep = post(chunked, "2\r\n{}\r\n0\r\n\r\n").replace("touch", "echo");
    let last = request("POST", "/api/echo", &bearer(), r#"{"a":"b"}"#);
    for size in [1, 2, 7, 64, 4096] {
        let mut client = edge.connect().await;
        for part in format!("{keep}{keep}{last}").as_bytes().chunks(size) {
            client.send(part).await;
            if size < 64 {
                tokio::task::yield_now().await;
            }
        }
        let reply = client.rest().await;
        assert_eq!(reply.statuses(), [200, 200, 200], "{size}: {reply:?}");
        assert!(reply.text.ends_with(r#"{"a":"b"}"#), "{reply:?}");
    }
}

#[tokio::test]
async fn t_e2_heads_are_bounded() {
    let head = HeadLimits {
        head_bytes: 2048,
        uri_bytes: 256,
        header_lines: 20,
    };
    let edge = TestEdge::with(EdgeLimits {
        head,
        ..EdgeLimits::default()
    })
    .await;
    let long = format!("X: {}\r\n", "y".repeat(3000));
    assert_eq!(edge.ask("GET", "/api/touch", &long, "").await.status(), 431);
    let many = "X: y\r\n".repeat(30);
    let reply = edge.ask("GET", "/api/touch", &many, "").await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (431, "HEADERS_TOO_LARGE")
    );
    let far = format!("/{}", "x".repeat(300));
    let reply = edge.ask("GET", &far, "", "").await;
    assert_eq!(
        (reply.status(), reply.code().as_str()),
        (414, "URI_TOO_LONG")
    );
    let endless = format!("GET /{}", "x".repeat(100_000));
    assert_eq!(edge.talk(endless).await.status(), 414);
    assert_eq!(edge.ask("GET", "/api/touch", "", "").await.status(), 200);
}

#[tokio::test]
async fn t_e2_the_stand_in_for_refused_requests_is_no_door() {
    let edge = TestEdge::start().await;
    let reply = edge.talk(request("GET", "/.refused", "", "")).await;
    assert_eq!(reply.status(), 401);
}
