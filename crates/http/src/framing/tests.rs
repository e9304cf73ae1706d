use proptest::prelude::*;

use super::*;

fn small() -> HeadLimits {
    HeadLimits {
        head_bytes: 512,
        uri_bytes: 64,
        header_lines: 8,
    }
}

/// The result of a stream, fed in pieces as the socket would give them: how
/// many heads passed, whether it ended inside a body, and the fault.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (u64, bool, Option<FramingError>) {
    let mut decoder = RequestDecoder::new(small());
    let mut buffer = BytesMut::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let step = match decoder.body() {
                Some(_) => decoder
                    .take_body(&mut buffer)
                    .map(|part| !matches!(part, BodyPart::Missing)),
                None => decoder.take_head(&mut buffer).map(|head| head.is_some()),
            };
            match step {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => return (decoder.heads(), decoder.body().is_some(), Some(fault)),
            }
        }
    }
    (decoder.heads(), decoder.body().is_some(), None)
}

fn fault(stream: &str) -> Option<FramingError> {
    let whole = feed([stream.as_bytes()]);
    assert_eq!(feed(stream.as_bytes().chunks(1)), whole, "{stream:?}");
    whole.2
}

#[test]
fn t_e2_what_is_plain_passes() {
    let streams = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\n\r\n", 1),
        (
            "POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
            2,
        ),
        (
            "POST /x HTTP/1.1\r\ncontent-length:\t0 \r\n\r\nGET / HTTP/1.1\r\n\r\n",
            2,
        ),
        (
            "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            2,
        ),
        // The body only looks like a head; it is not read as one.
        (
            "POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\nGET / X\n\n",
            1,
        ),
        ("GET / HTTP/1.1\r\nx: \u{e4}\tb\r\n\r\n", 1),
        ("GET http://a/b?c=d HTTP/1.1\r\n\r\n", 1),
    ];
    for (stream, heads) in streams {
        assert_eq!(fault(stream), None, "{stream:?}");
        assert_eq!(
            feed([stream.as_bytes()]),
            (heads, false, None),
            "{stream:?}"
        );
    }
}

#[test]
fn t_e2_what_can_be_read_in_two_ways_is_refused() {
    let post = |headers: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n");
    let table = [
        (
            post("Content-Length: 3\r\nTransfer-Encoding: chunked"),
            FramingError::TwoLengths,
        ),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: 3"),
            FramingError::TwoLengths,
        ),
        (
            post("Content-Length: 3\r\nContent-Length: 4"),
            FramingError::ContentLength,
        ),
        (
            post("Content-Length: 3\r\nContent-Length: 3"),
            FramingError::ContentLength,
        ),
        (post("Content-Length: 3, 3"), FramingError::ContentLength),
        (post("Content-Length: +3"), FramingError::ContentLength),
        (post("Content-Length: 0x3"), FramingError::ContentLength),
        (post("Content-Length: "), FramingError::ContentLength),
        (
            post("Content-Length: 99999999999999999999"),
            FramingError::ContentLength,
        ),
        (
            post("Transfer-Encoding: gzip, chunked"),
            FramingError::TransferEncoding,
        ),
        (
            post("Transfer-Encoding: Chunked"),
            FramingError::TransferEncoding,
        ),
        (
            post("Transfer-Encoding: chunked, chunked"),
            FramingError::TransferEncoding,
        ),
        (
            post("Transfer-Encoding: identity"),
            FramingError::TransferEncoding,
        ),
        (post("Transfer-Encoding:"), FramingError::TransferEncoding),
        (
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            FramingError::TransferEncoding,
        ),
        (
            post("Transfer-Encoding : chunked"),
            FramingError::HeaderName,
        ),
        (post("Content-Length : 3"), FramingError::HeaderName),
        (post("Content Length: 3"), FramingError::HeaderName),
        (post(": x"), FramingError::HeaderName),
        (post("nothing"), FramingError::HeaderName),
        (post("x\0y: 1"), FramingError::HeaderName),
        (post("x: a\r\n b"), FramingError::Folded),
        (post("x: a\r\n\tb"), FramingError::Folded),
        (post("x: a\0b"), FramingError::ControlByte),
        (post("x: a\rb"), FramingError::ControlByte),
        (post("x: a\x7fb"), FramingError::ControlByte),
        (
            post("Transfer-Encoding: \x0bchunked"),
            FramingError::ControlByte,
        ),
        (post("x: a\ny: b"), FramingError::BareLineEnd),
        (
            "GET / HTTP/1.1\nHost: a\r\n\r\n".into(),
            FramingError::BareLineEnd,
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n\n".into(),
            FramingError::BareLineEnd,
        ),
        (
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            FramingError::TransferEncoding,
        ),
        ("\r\nGET / HTTP/1.1\r\n\r\n".into(), FramingError::NotHttp),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
            FramingError::NotHttp,
        ),
        ("\u{16}\u{3}\u{1}".into(), FramingError::NotHttp),
        ("GET /\r\n\r\n".into(), FramingError::RequestLine),
        ("GET  / HTTP/1.1\r\n\r\n".into(), FramingError::RequestLine),
        ("GET / HTTP/1.1 \r\n\r\n".into(), FramingError::RequestLine),
        (
            "GET /a b HTTP/1.1\r\n\r\n".into(),
            FramingError::RequestLine,
        ),
        (
            "GET /\u{e4} HTTP/1.1\r\n\r\n".into(),
            FramingError::RequestLine,
        ),
        (
            "CONNECT a:1 HTTP/1.1\r\n\r\n".into(),
            FramingError::RequestLine,
        ),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(64)),
            FramingError::UriTooLong,
        ),
        (
            format!("GET /{}", "x".repeat(200)),
            FramingError::UriTooLong,
        ),
        (
            post(&format!("x: {}", "y".repeat(512))),
            FramingError::HeadTooLarge,
        ),
        (post(&"x: y\r\n".repeat(8)), FramingError::HeadTooLarge),
    ];
    for (stream, expected) in table {
        assert_eq!(fault(&stream), Some(expected), "{stream:?}");
    }
}

#[test]
fn t_e2_chunks_are_exact() {
    let bodies = [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "0x1\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "3;a=b\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "0\r\nTrailer: x\r\n\r\n",
        "000000000\r\n\r\n",
        "fffffffff\r\n",
    ];
    for body in bodies {
        let stream = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        assert_eq!(fault(&stream), Some(FramingError::Chunk), "{body:?}");
    }
}

#[test]
fn t_e2_the_second_request_is_judged_like_the_first() {
    let stream = "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\nx: y\r\n\r\n";
    assert_eq!(
        feed([stream.as_bytes()]),
        (1, false, Some(FramingError::BareLineEnd))
    );
}

proptest! {
    /// The split of a stream into packets never changes its meaning.
    #[test]
    fn t_e2_packets_do_not_matter(
        parts in prop::collection::vec(prop::sample::select(vec![
            "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\n", "Host: a\r\n", "\r\n", "\n", " ",
            "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "hello", "5\r\nhello\r\n",
            "0\r\n\r\n", "x:y\r\n", ":", "\0", "a",
        ]), 0..24),
        cuts in prop::collection::vec(1usize..40, 0..40),
    ) {
        let stream = parts.concat().into_bytes();
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        pieces.push(rest);
        let pieces = pieces.into_iter().filter(|p| !p.is_empty());
        prop_assert_eq!(feed(pieces), feed([stream.as_slice()].into_iter().filter(|p| !p.is_empty())));
    }

    #[test]
    fn t_e2_any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        feed([bytes.as_slice()].into_iter().filter(|p| !p.is_empty()));
    }
}

/// The bodies that one decoder finds in a stream, and the fault that ends it.
fn bodies(stream: &str) -> (Vec<String>, Option<FramingError>) {
    let mut decoder = RequestDecoder::new(small());
    let mut buffer = BytesMut::from(stream);
    let mut found = Vec::new();
    loop {
        match decoder.take_head(&mut buffer) {
            Ok(Some(head)) => assert_eq!(head.headers["x"], "y"),
            Ok(None) => return (found, None),
            Err(fault) => return (found, Some(fault)),
        }
        let mut body = Vec::new();
        while let Ok(BodyPart::Data(data)) = decoder.take_body(&mut buffer) {
            body.extend_from_slice(&data);
        }
        found.push(String::from_utf8(body).unwrap());
    }
}

#[test]
fn t_e2_a_repeated_head_is_read_as_the_first() {
    let post = |length: &str, body: &str| {
        format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\nx: y\r\n\r\n{body}")
    };
    let first = post("3", "abc");
    let after = |second: &str| bodies(&format!("{first}{second}"));
    let found = |second: &str| (vec!["abc".to_owned(), second.to_owned()], None);
    assert_eq!(after(&post("3", "def")), found("def"));
    assert_eq!(after(&post("11", "hello world")), found("hello world"));
    assert_eq!(after(&post("0", "")), found(""));
    assert_eq!(after(&post("007", "seven!!")), found("seven!!"));
    for wrong in ["", "3, 3", "+3", "3 3", "99999999999999999999", "0x3"] {
        let (passed, fault) = after(&post(wrong, "def"));
        assert_eq!(passed.len(), 1, "{wrong:?}");
        assert_eq!(fault, Some(FramingError::ContentLength), "{wrong:?}");
    }
    let chunked =
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nx: y\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let twice = bodies(&format!("{chunked}{chunked}{first}"));
    assert_eq!(twice.0, ["ok", "ok", "abc"]);
    let get = "GET / HTTP/1.1\r\nx: y\r\n\r\n";
    assert_eq!(bodies(&format!("{get}{get}{first}")).0, ["", "", "abc"]);
}
