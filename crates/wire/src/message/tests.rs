use serde_json::value::RawValue;

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// One word per outcome, so that tables can be read.
fn verdict(message: Result<Message<'_>, Malformed>) -> String {
    match message {
        Ok(Message::Request { id, method, params }) => {
            format!(
                "request {id} {method} {}",
                params.map_or("-", RawValue::get)
            )
        }
        Ok(Message::Notification { method, params }) => {
            format!(
                "notification {method} {}",
                params.map_or("-", RawValue::get)
            )
        }
        Ok(Message::Response { id, outcome }) => {
            let id = id.map_or("-", RawValue::get);
            match outcome {
                Outcome::Result(result) => format!("result {id} {result}"),
                Outcome::Error(error) => format!("error {id} {} {error}", error.code),
            }
        }
        Err(bad) => {
            let id = bad.id().map_or("-", RawValue::get).to_owned();
            format!("{} {id}: {bad}", bad.code())
        }
    }
}

#[test]
fn both_readers_agree_on_proper_messages() {
    let table = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "request 1 ping -",
        ),
        (
            r#" { "jsonrpc" : "2.0" , "id" : "a" , "method" : "x/y" , "params" : { "k" : 1 } } "#,
            r#"request "a" x/y { "k" : 1 }"#,
        ),
        (
            r#"{"params":{},"method":"m","id":-7,"jsonrpc":"2.0"}"#,
            "request -7 m {}",
        ),
        (r#"{"jsonrpc":"2.0","method":"n"}"#, "notification n -"),
        (
            r#"{"jsonrpc":"2.0","method":"n","params":null}"#,
            "notification n -",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools\/call","id":1}"#,
            "request 1 tools/call -",
        ),
        (
            r#"{"jsonrpc":"2.0","\u006dethod":"m","id":1}"#,
            "request 1 m -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":[1,2]}}"#,
            r#"result 1 {"a":[1,2]}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","result":null}"#,
            r#"result "x" null"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}"#,
            "error 1 -32601 no",
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad"}}"#,
            "error - -32700 bad",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
            "error - 1 ",
        ),
        // Unknown members and other cases are ignored (E4).
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b","METHOD":"c","x":1,"x":2}"#,
            "request 1 a -",
        ),
    ];
    for (json, expected) in table {
        assert_eq!(verdict(parse(json.as_bytes())), expected, "{json}");
        assert_eq!(verdict(parse_upstream(json.as_bytes())), expected, "{json}");
    }
}

#[test]
fn t_e4_both_readers_refuse_what_is_ambiguous() {
    let table = [
        ("", "-32700 -: empty message"),
        (" \n", "-32700 -: empty message"),
        ("{", "-32700 -: not JSON at line 1 column 1"),
        ("nonsense", "-32700 -: not JSON at line 1 column 2"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a"} x"#,
            "-32700 -: not JSON at line 1 column 39",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a",}"#,
            "-32700 -: not JSON at line 1 column 38",
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}",
            "-32700 -: not JSON at line 1 column 35",
        ),
        ("7", "-32600 -: not an object"),
        ("\"x\"", "-32600 -: not an object"),
        ("[]", "-32600 -: batches are not supported here"),
        ("{}", "-32600 -: `jsonrpc` must be \"2.0\""),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
            "-32600 1: `jsonrpc` must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#,
            "-32600 1: `jsonrpc` must be \"2.0\"",
        ),
        (
            r#"{"JSONRPC":"2.0","id":1,"method":"a"}"#,
            "-32600 1: `jsonrpc` must be \"2.0\"",
        ),
        (
            r#"{"id":1,"method":"a"}"#,
            "-32600 1: `jsonrpc` must be \"2.0\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1}"#,
            "-32600 1: none of `method`, `result`, `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            "-32600 1: member `method` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
            "-32600 1: member `method` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#,
            "-32600 -: member `id` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":"q","method":"a"}"#,
            "-32600 \"q\": member `jsonrpc` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
            "-32600 1: member `params` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            "-32600 1: member `result` occurs twice",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            "-32600 1: `method` must be a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
            "-32600 1: `method` must be a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
            "-32600 1: `params` must be an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}"#,
            "-32600 1: `params` must be an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            "-32600 1: more than one of `method`, `result`, `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#,
            "-32600 1: more than one of `method`, `result`, `error`",
        ),
        (
            r#"{"jsonrpc":"2.0","result":{}}"#,
            "-32600 -: `id` is missing",
        ),
    ];
    for (json, expected) in table {
        assert_eq!(verdict(parse(json.as_bytes())), expected, "{json}");
        assert_eq!(verdict(parse_upstream(json.as_bytes())), expected, "{json}");
    }
}

#[test]
fn t_e6_servers_may_write_odd_things_that_clients_may_not() {
    let null_id = "-32600 -: `id` must be a string or an integer";
    let two = "-32600 1: more than one of `method`, `result`, `error`";
    let error = "-32600 1: `error` must have an integer `code` and a string `message`";
    let table = [
        (
            "\u{feff}{\"jsonrpc\":\"2.0\",\"method\":\"n\"}",
            "-32700 -: starts with a byte order mark",
            "notification n -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"n"}"#,
            null_id,
            "notification n -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
            two,
            "result 1 {}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m"}}"#,
            two,
            "error 1 5 m",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null,"result":{}}"#,
            two,
            "result 1 {}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":null,"error":null}"#,
            two,
            "request 1 a -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            "-32600 -: `id` must be a string or an integer",
            "result 1.5 {}",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#,
            error,
            "error 1 -32603 boom",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000.0,"message":"m"}}"#,
            error,
            "error 1 -32000 m",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"-32001","message":"m"}}"#,
            error,
            "error 1 -32001 m",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}"#,
            error,
            "error 1 -32603 m",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":7}}"#,
            error,
            "error 1 7 error without a message",
        ),
    ];
    for (json, strict, lenient) in table {
        assert_eq!(verdict(parse(json.as_bytes())), strict, "{json}");
        assert_eq!(verdict(parse_upstream(json.as_bytes())), lenient, "{json}");
    }
}

#[test]
fn envelopes_are_compact_lines() {
    let params =
        raw("{\n  \"a\" : [ 1.50,\r\n 12345678901234567890123 ],\t\"b\":\"x \\n \\u00e9\" }");
    let line = r#"{"a":[1.50,12345678901234567890123],"b":"x \n \u00e9"}"#;
    let id = raw("\"i\"");
    let error_value = RpcError::new(-32602, "say \"why\"\n").with_data(params.clone());
    let table = [
        (
            request(7, "tools/call", Some(&params)),
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{line}}}"#),
        ),
        (
            request(u64::MAX, "ping", None),
            r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}"#.to_owned(),
        ),
        (
            notification("n/\"x", None),
            r#"{"jsonrpc":"2.0","method":"n/\"x"}"#.to_owned(),
        ),
        (
            notification("n", Some(&params)),
            format!(r#"{{"jsonrpc":"2.0","method":"n","params":{line}}}"#),
        ),
        (
            response(&id, params.get()),
            format!(r#"{{"jsonrpc":"2.0","id":"i","result":{line}}}"#),
        ),
        (
            error(Some(&id), &error_value),
            format!(
                r#"{{"jsonrpc":"2.0","id":"i","error":{{"code":-32602,"message":"say \"why\"\n","data":{line}}}}}"#
            ),
        ),
        (
            error(None, &RpcError::new(-32700, "m")),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#.to_owned(),
        ),
    ];
    for (bytes, expected) in table {
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
    assert_eq!(compact(&params).get(), line);
    let spaced = raw("{ \"a\": 1 }");
    assert!(matches!(compact(&spaced), Cow::Borrowed(same) if same.get() == spaced.get()));
}

#[test]
fn debug_shows_no_payload() {
    let json = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"token":"hunter2"}}"#;
    let shown = format!("{:?}", parse(json).unwrap());
    assert_eq!(shown, "Request(1, \"m\", 19 bytes)");
    let error = RpcError::new(1, "m").with_data(raw("\"hunter2\""));
    assert_eq!(format!("{error:?}"), "1 \"m\"");
}
