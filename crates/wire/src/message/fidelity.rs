//! Tests that no bytes crash a reader, and that payloads pass unchanged.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Any JSON with spellings that a parse into values would lose.
fn arb_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "(true|false)",
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        "\"(\\\\u[0-9a-f]{4}|\\\\[/bfnrt\"\\\\]|[a-z é🦀{}\\[\\],:])*\"",
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let pair = ("[a-z{\\[]{0,3}", inner.clone()).prop_map(|(k, v)| format!("\"{k}\": {v}"));
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(|v| format!("[{}]", v.join(" ,"))),
            prop::collection::vec(pair, 0..6).prop_map(|v| format!("{{\n{}\t}}", v.join(",\r\n"))),
        ]
    })
}

/// Removes whitespace outside strings, in the slow and obvious way.
fn squeezed(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        if quoted {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            quoted = c == '"';
        }
        out.push(c);
    }
    out
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (parse(&bytes), parse_upstream(&bytes), parse_batch(&bytes));
    }

    #[test]
    fn no_json_like_text_makes_a_reader_panic(
        text in r#"[\[\{]?("(jsonrpc|id|method|params|result|error|\\u00)"?[:,]?|"2\.0"|[0-9\-.eE]|null|[\[\]{},:"\\ ]){0,30}"#
    ) {
        let bytes = text.as_bytes();
        let _ = (parse(bytes), parse_upstream(bytes), parse_batch(bytes));
    }

    #[test]
    fn payloads_pass_byte_for_byte(value in arb_json()) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"v":{value}}}}}"#);
        let Ok(Message::Request { params: Some(params), .. }) = parse(message.as_bytes()) else {
            return Err(TestCaseError::fail("not a request"));
        };
        prop_assert_eq!(params.get(), format!(r#"{{"v":{value}}}"#));

        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#);
        let Ok(Message::Response { outcome: Outcome::Result(result), .. }) =
            parse_upstream(message.as_bytes()) else {
            return Err(TestCaseError::fail("not a result"));
        };
        prop_assert_eq!(result, &value);

        // Written for a line, only the layout goes.
        let line = String::from_utf8(response(&raw("1"), result)).unwrap();
        prop_assert!(!line.contains(['\n', '\r']));
        let multiline = value.contains(['\n', '\r']);
        let payload = if multiline { squeezed(&value) } else { value };
        prop_assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#));
    }
}
