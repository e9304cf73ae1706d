use proptest::prelude::*;

use super::*;

/// The same, one byte at a time.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// As serde_json reads it, and depth counted apart.
fn slow_checked(text: &str, limit: usize) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() && depth(text.as_bytes()) <= limit
}

fn checked(text: &str, limit: usize) -> bool {
    let bytes = text.as_bytes();
    JsonCheck::new(bytes)
        .after_value(after_space(bytes, 0), limit)
        .is_some_and(|end| after_space(bytes, end) == bytes.len())
}

#[test]
fn json_is_checked_as_serde_json_does() {
    let long = "x".repeat(100);
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let mut texts = vec![deep(64), deep(65), objects(64), objects(65), "[".repeat(70)];
    texts.extend(
        [
            "\"", "\u{1f}", "\\", "\\q", "\\u12g4", "\\ud800", "\u{7f}", "é",
        ]
        .map(|odd| format!(r#"{{"{long}":["{long}{odd}{long}"]}}"#)),
    );
    for text in [
        "",
        " ",
        "{",
        "}",
        "[}",
        "{]",
        "[1,]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{1:1}"#,
        "[1 2]",
        "nul",
        "nulll",
        "tru",
        "TRUE",
        "01",
        "-",
        "-0",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "1E-5",
        "1.5e+10",
        "+1",
        "0x1",
        "1 1",
        "\"",
        r#""\"#,
        r#""\u"#,
        r#""\ud8"#,
        r#"{"a":1,"a":[{},[],{"b":[]}]}"#,
        " [ 1 , { \"a\" : null } ] ",
        "[1\u{a0}]",
        "[\"\t\"]",
        "NaN",
        "[[]",
        "{}}",
        "[],",
        "\u{feff}1",
    ] {
        texts.push(text.to_owned());
    }
    for text in texts {
        assert_eq!(checked(&text, 64), slow_checked(&text, 64), "{text}");
    }
}

proptest! {
    #[test]
    fn json_like_text_is_checked_as_serde_json_does(
        text in r#"[\[\{]?("[a-z\\"u]{0,12}"[:,]?|[0-9\-.eE]|null|true|[\[\]{},:"\\ ]|.){0,12}"#,
        limit in 0usize..4,
    ) {
        prop_assert_eq!(checked(&text, limit), slow_checked(&text, limit));
    }

    #[test]
    fn damaged_json_is_checked_as_serde_json_does(
        at in 0usize..120,
        byte in r#"[\[\]{},:"\\ 0-9a-z\-.\u{1}\n]"#,
    ) {
        let mut text = r#"{"a":[1,-2.5e7,"x\u00e9\n y",{"b":{}}],"c" : [true,false,null,[]], "long":"0123456789012345678901234567890123456789"}"#.to_owned();
        let at = at.min(text.len() - 1);
        text.replace_range(at..=at, &byte);
        prop_assert_eq!(checked(&text, 64), slow_checked(&text, 64));
    }

    #[test]
    fn depth_is_what_a_slow_count_says(
        text in r#"([\[\]{}"\\]|[a-z ]{0,20}){0,200}"#,
        limit in 0usize..12,
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(deeper_than(bytes, limit), depth(bytes) > limit);
    }

    #[test]
    fn strings_end_where_a_slow_look_says(text in r#"([a-z"]|\\\\|\\"|é){0,40}"#, at in 0usize..4) {
        let bytes = text.as_bytes();
        let at = at.min(bytes.len());
        let (mut slow, mut escaped) = (at, false);
        let end = loop {
            match bytes.get(slow) {
                Some(b'"') => break slow + 1,
                Some(b'\\') => (slow, escaped) = (slow + 2, true),
                Some(_) => slow += 1,
                None => break bytes.len(),
            }
        };
        prop_assert_eq!(string_end(bytes, at), (end, escaped));
    }
}
