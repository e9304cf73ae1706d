use proptest::prelude::*;

use super::content::degrade;
use super::*;

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn modern(method: &str, result: &str) -> Result<String, BadResult> {
    to_modern_result(method, result, Freshness::NONE, None)
}

fn legacy(method: &str, result: &str, version: &str) -> String {
    to_legacy_result(method, result, version, false)
        .unwrap()
        .into_owned()
}

#[test]
fn result_types_are_told_apart() {
    for (result, expected) in [
        ("{}", ResultType::Complete),
        (r#"{"resultType":"complete"}"#, ResultType::Complete),
        (
            r#"{"resultType":"input_required"}"#,
            ResultType::InputRequired,
        ),
        (r#"{"resultType":"task"}"#, ResultType::Task),
        (r#"{"resultType":"Complete"}"#, ResultType::Unknown),
        (r#"{"resultType":7}"#, ResultType::Unknown),
        (r#"{"x":{"resultType":"task"}}"#, ResultType::Complete),
        ("null", ResultType::Complete),
    ] {
        assert_eq!(result_type(result), expected, "{result}");
    }
}

#[test]
fn modern_clients_get_the_stamps_their_era_demands() {
    let table = [
        (
            "tools/call",
            r#"{"content":[],"x":1.0}"#,
            r#"{"content":[],"x":1.0,"resultType":"complete"}"#,
        ),
        (
            "tools/call",
            "{}",
            r#"{"resultType":"complete","content":[]}"#,
        ),
        (
            "tools/call",
            "null",
            r#"{"resultType":"complete","content":[]}"#,
        ),
        // A foreign type is discarded, where it stood.
        (
            "tools/call",
            r#"{"resultType":"task","content":[ ]}"#,
            r#"{"resultType":"complete","content":[ ]}"#,
        ),
        (
            "tools/call",
            r#"{"ttlMs":5,"content":[]}"#,
            r#"{"ttlMs":5,"content":[],"resultType":"complete"}"#,
        ),
        (
            "prompts/list",
            r#"{"prompts":[],"nextCursor":""}"#,
            r#"{"prompts":[],"nextCursor":"","resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
        ),
        (
            "resources/read",
            r#"{"ttlMs":9,"contents":[]}"#,
            r#"{"ttlMs":0,"contents":[],"resultType":"complete","cacheScope":"private"}"#,
        ),
        (
            "tools/list",
            r#"{"tools":[ {"name":"a", "execution":{"taskSupport":"optional"},"inputSchema":{"properties":{"execution":{}}}} , {"name":"b"}]}"#,
            r#"{"tools":[ {"name":"a","inputSchema":{"properties":{"execution":{}}}} , {"name":"b"}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
        ),
    ];
    for (method, result, expected) in table {
        assert_eq!(
            modern(method, result).unwrap(),
            expected,
            "{method} {result}"
        );
    }
    for bad in ["[]", "\"x\"", "5", "true"] {
        assert_eq!(modern("tools/call", bad), Err(BadResult), "{bad}");
    }
    let freshness = Freshness {
        ttl_ms: 60_000,
        public: true,
    };
    let stamped = to_modern_result(
        "prompts/list",
        r#"{"_meta":{"v":1}}"#,
        freshness,
        Some(&json(r#"{"name":"gw"}"#)),
    );
    assert_eq!(
        stamped.unwrap(),
        r#"{"_meta":{"v":1,"io.modelcontextprotocol/serverInfo":{"name":"gw"}},"resultType":"complete","ttlMs":60000,"cacheScope":"public"}"#
    );
}

#[test]
fn trap08_legacy_clients_see_no_stamps() {
    let table = [
        ("ping", r#"{"resultType":"complete"}"#, "{}"),
        (
            "resources/subscribe",
            r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#,
            "{}",
        ),
        (
            "prompts/list",
            r#"{"resultType":"complete","prompts":[ 1.0 ],"ttlMs":1,"cacheScope":"public","nextCursor":"c"}"#,
            r#"{"prompts":[ 1.0 ],"nextCursor":"c"}"#,
        ),
        (
            "tools/call",
            r#"{"resultType":"complete","content":[],"ttlMs":5,"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}}}"#,
            r#"{"content":[],"ttlMs":5,"_meta":{"a":1}}"#,
        ),
        (
            "tools/call",
            r#"{"isError":true}"#,
            r#"{"isError":true,"content":[]}"#,
        ),
    ];
    for (method, result, expected) in table {
        assert_eq!(
            legacy(method, result, "2025-11-25"),
            expected,
            "{method} {result}"
        );
    }
    let clean = r#"{"content":[ ]}"#;
    let same = to_legacy_result("tools/call", clean, "2025-11-25", false);
    assert!(matches!(same, Ok(Cow::Borrowed(_))));
    assert!(matches!(
        to_legacy_result("ping", "[]", "2025-11-25", false),
        Err(BadResult)
    ));
}

#[test]
fn structured_content_becomes_an_object_that_can_also_be_read() {
    let text = r#"{"type":"text","text":"hi"}"#;
    let table = [
        (false, format!(r#"{{"content":[{text}],"structuredContent":{{"a":1}}}}"#),
         format!(r#"{{"content":[{text}],"structuredContent":{{"a":1}}}}"#)),
        (false, format!(r#"{{"content":[{text}],"structuredContent":[1, 2]}}"#),
         format!(r#"{{"content":[{text}],"structuredContent":{{"result":[1, 2]}}}}"#)),
        // The schema was wrapped, so an object is wrapped as well.
        (true, format!(r#"{{"content":[{text}],"structuredContent":{{"a":1}}}}"#),
         format!(r#"{{"content":[{text}],"structuredContent":{{"result":{{"a":1}}}}}}"#)),
        (false, r#"{"content":[ ],"structuredContent":"x"}"#.to_owned(),
         r#"{"content":[{"type":"text","text":"\"x\""}],"structuredContent":{"result":"x"}}"#.to_owned()),
        (false, r#"{"structuredContent":null}"#.to_owned(),
         r#"{"structuredContent":{"result":null},"content":[{"type":"text","text":"null"}]}"#.to_owned()),
        (false, r#"{"content":[{"type":"image"}],"structuredContent":12345678901234567890}"#.to_owned(),
         r#"{"content":[{"type":"image"},{"type":"text","text":"12345678901234567890"}],"structuredContent":{"result":12345678901234567890}}"#.to_owned()),
    ];
    for (wrapped, result, expected) in table {
        let rewritten = to_legacy_result("tools/call", &result, "2025-11-25", wrapped);
        assert_eq!(rewritten.unwrap(), expected, "{result}");
    }
    // A client that does not know structured content reads it.
    assert_eq!(
        legacy(
            "tools/call",
            r#"{"content":[],"structuredContent":{"a":1}}"#,
            "2025-03-26"
        ),
        r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#
    );
}

#[test]
fn old_clients_get_words_for_kinds_they_lack() {
    let link = r#"{"type":"resource_link","uri":"file:///a","name":"a","title":"The \"A\"","annotations":{"priority":1}}"#;
    let audio = r#"{"type":"audio","data":"QQ==","mimeType":"audio/wav"}"#;
    let image = r#"{"type":"image","data":"QQ==","mimeType":"image/png"}"#;
    let link_words =
        r#"{"type":"text","text":"[resource The \"A\" file:///a]","annotations":{"priority":1}}"#;
    let audio_words = r#"{"type":"text","text":"[audio/wav content, which this client's protocol revision cannot carry]"}"#;
    let versions = [
        ("2025-11-25", link, audio),
        ("2025-06-18", link, audio),
        ("2025-03-26", link_words, audio),
        ("2024-11-05", link_words, audio_words),
    ];
    for (version, link_then, audio_then) in versions {
        assert_eq!(
            legacy(
                "tools/call",
                &format!(r#"{{"content":[{link} , {audio},{image}]}}"#),
                version
            ),
            format!(r#"{{"content":[{link_then} , {audio_then},{image}]}}"#),
            "{version}"
        );
        let message = |block: &str| format!(r#"{{"role":"user","content":{block}}}"#);
        assert_eq!(
            legacy(
                "prompts/get",
                &format!(r#"{{"messages":[{},{}]}}"#, message(link), message(image)),
                version
            ),
            format!(
                r#"{{"messages":[{},{}]}}"#,
                message(link_then),
                message(image)
            ),
            "{version}"
        );
    }
    let described = r#"{"type":"resource_link","uri":"u","name":"n","description":"d"}"#;
    assert_eq!(
        degrade(described, "2024-11-05"),
        r#"{"type":"text","text":"[resource n u: d]"}"#
    );
}

#[test]
fn listed_tools_get_the_schemas_of_the_era() {
    let tools = r##"{"tools":[{"name":"a","outputSchema":{"type":"object","x":1}},{"name":"b","outputSchema":{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{}}},"_meta":{"k":1}}]}"##;
    let wrapped = r##"{"tools":[{"name":"a","outputSchema":{"type":"object","x":1}},{"name":"b","outputSchema":{"type":"object","properties":{"result":{"type":"array","items":{"$ref":"#/properties/result/$defs/x"},"$defs":{"x":{}}}},"required":["result"]},"_meta":{"k":1}}]}"##;
    assert_eq!(legacy("tools/list", tools, "2025-11-25"), wrapped);
}

#[test]
fn freshness_is_the_least_of_its_parts() {
    let read = |text: &str| Freshness::read(&json(text));
    let public = Freshness {
        ttl_ms: 100,
        public: true,
    };
    assert_eq!(read(r#"{"ttlMs":100,"cacheScope":"public"}"#), public);
    for none in [
        "{}",
        r#"{"ttlMs":-5}"#,
        r#"{"ttlMs":"9"}"#,
        r#"{"cacheScope":"Public"}"#,
        "null",
    ] {
        assert_eq!(read(none), Freshness::NONE, "{none}");
    }
    let private = Freshness {
        ttl_ms: 500,
        public: false,
    };
    assert_eq!(
        public.and(private),
        Freshness {
            ttl_ms: 100,
            public: false
        }
    );
}

#[test]
fn trap21_errors_speak_the_clients_era() {
    let show = |error: RpcError| {
        format!(
            "{} {error} {}",
            error.code,
            error.data.as_deref().map_or("-", RawValue::get)
        )
    };
    let error = |code, data: Option<&str>| RpcError {
        code,
        message: "m".into(),
        data: data.map(json),
    };
    assert_eq!(
        show(error_to_modern(error(-32002, None), Some("file:///\"a"))),
        r#"-32602 m {"uri":"file:///\"a"}"#
    );
    assert_eq!(
        show(error_to_modern(
            error(-32002, Some(r#"{"uri":"u","x":1}"#)),
            Some("v")
        )),
        r#"-32602 m {"uri":"u","x":1}"#
    );
    assert_eq!(
        show(error_to_modern(
            error(-32002, Some(r#"{"x":1}"#)),
            Some("v")
        )),
        r#"-32602 m {"x":1,"uri":"v"}"#
    );
    assert_eq!(
        show(error_to_modern(error(-32002, Some("[1]")), None)),
        "-32602 m [1]"
    );
    assert_eq!(
        show(error_to_modern(error(-32002, None), None)),
        "-32602 m -"
    );
    assert_eq!(
        show(error_to_modern(error(-32000, Some("1")), Some("u"))),
        "-32000 m 1"
    );

    let read = "resources/read";
    assert_eq!(
        show(error_to_legacy(read, error(-32602, Some(r#"{"uri":"u"}"#)))),
        r#"-32002 m {"uri":"u"}"#
    );
    assert_eq!(
        show(error_to_legacy(read, error(-32602, None))),
        "-32602 m -"
    );
    assert_eq!(
        show(error_to_legacy(
            "tools/call",
            error(-32602, Some(r#"{"uri":"u"}"#))
        )),
        r#"-32602 m {"uri":"u"}"#
    );
    assert_eq!(
        show(error_to_legacy(read, error(-32022, Some("{}")))),
        "-32603 m -"
    );
    assert_eq!(
        show(error_to_legacy(read, error(-32020, None))),
        "-32603 m -"
    );
    assert_eq!(
        show(error_to_legacy(
            "tools/call",
            error(-32021, Some(r#"{"requiredCapabilities":{"sampling":{}}}"#))
        )),
        r#"-32603 the server needs client capabilities {"sampling":{}}: m -"#
    );
    assert_eq!(
        show(error_to_legacy(read, error(-5, Some("[]")))),
        "-5 m []"
    );
}

proptest! {
    /// A legacy answer sent to a modern client and read back as legacy is the
    /// answer it was.
    #[test]
    fn results_survive_both_rewrites(
        method in prop::sample::select(vec!["tools/call", "tools/list", "prompts/get", "resources/read", "x/y"]),
        extra in prop::collection::btree_map("[a-z]{1,4}", "[0-9]\\.[0-9]0|\\[ ?\\]|\"\\\\u00e9\"", 0..4),
    ) {
        let mut members: Vec<String> = extra.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        members.push(r#""content":[{"type":"text","text":"é\/"} ]"#.to_owned());
        let result = format!("{{{}}}", members.join(","));
        let there = modern(method, &result).unwrap();
        prop_assert_eq!(legacy(method, &there, "2025-11-25"), result);
    }
}
