//! The limits of ids, batches and depth.

use std::time::Instant;

use serde_json::value::RawValue;

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[test]
fn t_e5_ids_are_strings_or_safe_integers() {
    let long = format!("\"{}\"", "x".repeat(254));
    let longer = format!("\"{}\"", "x".repeat(255));
    let table = [
        ("0", Ok(Some(0))),
        ("-0", Ok(None)),
        ("1", Ok(Some(1))),
        ("-1", Ok(None)),
        ("9007199254740992", Ok(Some(1 << 53))),
        ("-9007199254740992", Ok(None)),
        ("9007199254740993", Err(BadId::Unsafe)),
        ("99999999999999999999999999", Err(BadId::Unsafe)),
        ("1.0", Err(BadId::Kind)),
        ("1e3", Err(BadId::Kind)),
        ("null", Err(BadId::Kind)),
        ("true", Err(BadId::Kind)),
        ("{}", Err(BadId::Kind)),
        ("[1]", Err(BadId::Kind)),
        (r#""""#, Ok(None)),
        (r#""1""#, Ok(None)),
        (r#""\u00e9 é 🦀""#, Ok(None)),
        (r#""\ud83e\udd80""#, Ok(None)),
        (r#""\ud83e""#, Err(BadId::Unicode)),
        (&long, Ok(None)),
        (&longer, Err(BadId::Long)),
    ];
    for (json, expected) in table {
        let id = raw(json);
        assert_eq!(Id::new(&id).map(Id::as_u64), expected, "{json}");
        let message = format!(r#"{{"jsonrpc":"2.0","id":{json},"method":"m"}}"#);
        match (parse(message.as_bytes()), expected) {
            (Ok(Message::Request { id, .. }), Ok(_)) => {
                let answer = response(id.raw(), "{}");
                let expected = format!(r#"{{"jsonrpc":"2.0","id":{json},"result":{{}}}}"#);
                assert_eq!(String::from_utf8(answer).unwrap(), expected);
            }
            (Err(bad), Err(why)) => {
                assert_eq!(bad.fault, Fault::Id(why));
                assert_eq!(
                    (bad.code(), bad.id().is_none()),
                    (code::INVALID_REQUEST, true)
                );
            }
            (other, _) => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn t_e5_batches_are_counted_before_they_are_read() {
    let of = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
    assert!(is_batch(b" \n[{}]") && !is_batch(b"{}") && !is_batch(b""));
    assert_eq!(parse_batch(of(1).as_bytes()).unwrap().len(), 1);
    assert_eq!(parse_batch(of(32).as_bytes()).unwrap().len(), 32);
    let table = [
        ("[]".to_owned(), Fault::EmptyBatch),
        (of(33), Fault::LongBatch),
        (of(10_000), Fault::LongBatch),
        ("{}".to_owned(), Fault::NotABatch),
        ("[1,]".to_owned(), Fault::Syntax { line: 1, column: 4 }),
        (
            format!("{}x", of(100)),
            Fault::Syntax {
                line: 1,
                column: 302,
            },
        ),
        ("\u{feff}[1]".to_owned(), Fault::ByteOrderMark),
    ];
    for (json, fault) in table {
        assert_eq!(
            parse_batch(json.as_bytes()).unwrap_err().fault,
            fault,
            "{json}"
        );
    }
}

fn nested(depth: usize) -> String {
    let inner = depth - 2; // the message and its params
    let (open, close) = ("[".repeat(inner), "]".repeat(inner));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{open}{close}}}}}"#)
}

#[test]
fn t_f1_depth_is_limited() {
    assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
    let deep = nested(MAX_DEPTH + 1);
    let fault = parse(deep.as_bytes()).unwrap_err();
    assert_eq!((fault.code(), &fault.fault), (code::PARSE, &Fault::TooDeep));
    // The fault has the id, so that the sender gets the error.
    assert_eq!(fault.id().unwrap().get(), "1");
    assert_eq!(fault.deep_request().unwrap().get(), "1");
    assert!(fault.deep_answer().is_none());
    let (open, close) = ("[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let answer = format!(r#"{{"result":{open}{close},"jsonrpc":"2.0","id":7}}"#);
    let fault = parse_upstream(answer.as_bytes()).unwrap_err();
    assert_eq!(fault.deep_answer().unwrap().get(), "7");
    assert!(fault.deep_request().is_none());
    let note = deep.replace(r#""id":1,"#, "");
    assert!(parse(note.as_bytes()).unwrap_err().id().is_none());
    // Brackets in strings and many shallow ones do not count.
    let text = "[{\\\"[{\\\\".repeat(500);
    let wide = "[],{},".repeat(500);
    let flat = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{text}","b":[{wide}1]}}}}"#
    );
    assert!(parse(flat.as_bytes()).is_ok());
}

#[test]
fn t_f1_a_depth_bomb_costs_no_more_than_a_flat_message() {
    let objects = format!(
        r#"{{"jsonrpc":"2.0","id":1,"params":{}"#,
        r#"{"a":"#.repeat(100_000)
    );
    let bombs = [
        "[".repeat(100_000),
        nested(100_000),
        objects,
        "[\"".repeat(100_000),
    ];
    let readers: [fn(&[u8]) -> bool; 3] = [
        |bytes| parse(bytes).is_err(),
        |bytes| parse_upstream(bytes).is_err(),
        |bytes| parse_batch(bytes).is_err(),
    ];
    let timed = |reads: &dyn Fn()| {
        let start = Instant::now();
        reads();
        start.elapsed()
    };
    for bomb in &bombs {
        let flat = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":[{}1]}}}}"#,
            "1,".repeat(bomb.len() / 2)
        );
        let reads_flat = || assert!(parse(flat.as_bytes()).is_ok());
        for refuses in readers {
            let refuses_bomb = || assert!(refuses(bomb.as_bytes()));
            // One undisturbed comparison decides: the machine may be busy, and
            // a cost that grows with the depth would be a thousand times higher.
            let cheap = (0..100).any(|_| timed(&refuses_bomb) < timed(&reads_flat) * 3);
            assert!(cheap, "{} bytes", bomb.len());
        }
    }
}
