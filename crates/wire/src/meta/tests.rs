use proptest::prelude::*;

use super::*;
use crate::message::code;

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn modern(params: Option<&str>, token: Option<u64>) -> Result<String, Malformed> {
    let (info, capabilities) = (json(r#"{"name":"us"}"#), json("{}"));
    let envelope = Envelope {
        version: "2026-07-28",
        client_info: Some(&info),
        capabilities: &capabilities,
        log_level: None,
    };
    let params = params.map(json);
    written(&ServerParams {
        params: params.as_deref(),
        envelope: Some(&envelope),
        progress_token: token,
        subject: None,
    })
}

fn written(params: &ServerParams<'_>) -> Result<String, Malformed> {
    let mut out = String::new();
    params.write(&mut out).map(|()| out)
}

fn legacy(params: Option<&str>, token: Option<u64>) -> Result<Option<String>, Malformed> {
    let params = params.map(json);
    let params = ServerParams {
        params: params.as_deref(),
        envelope: None,
        progress_token: token,
        subject: None,
    };
    if params.are_absent() {
        return Ok(None);
    }
    written(&params).map(Some)
}

const ENVELOPE: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"us"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}"#
);

#[test]
fn modern_params_get_our_envelope_and_keep_the_rest() {
    let table = [
        (None, None, format!(r#"{{"_meta":{{{ENVELOPE}}}}}"#)),
        (Some("{}"), Some(9), format!(r#"{{"_meta":{{{ENVELOPE},"progressToken":9}}}}"#)),
        (Some(r#"{"_meta":null}"#), None, format!(r#"{{"_meta":{{{ENVELOPE}}}}}"#)),
        // Vendor and trace keys, number spelling, order and layout inside.
        (
            Some(r#"{"name":"t","_meta":{"acme.io/x":1.0e2,"traceparent":"00-a"},"arguments":{ "k" : 10000000000000000001 }}"#),
            None,
            format!(r#"{{"name":"t","_meta":{{"acme.io/x":1.0e2,"traceparent":"00-a",{ENVELOPE}}},"arguments":{{ "k" : 10000000000000000001 }}}}"#),
        ),
        // The client's own envelope is replaced where it stood, its token and
        // log level do not reach the server.
        (
            Some(r#"{"_meta":{"progressToken":"theirs","io.modelcontextprotocol/protocolVersion":"x","a":1,"io.modelcontextprotocol/clientInfo":{"name":"them"},"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/other":true}}"#),
            None,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1,"io.modelcontextprotocol/clientInfo":{"name":"us"},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/other":true}}"#.to_owned(),
        ),
        (
            Some(r#"{"inputResponses":{"k":{}},"requestState":"s"}"#),
            None,
            format!(r#"{{"inputResponses":{{"k":{{}}}},"requestState":"s","_meta":{{{ENVELOPE}}}}}"#),
        ),
    ];
    for (params, token, expected) in table {
        assert_eq!(modern(params, token).unwrap(), expected, "{params:?}");
    }
}

#[test]
fn a_level_is_passed_and_an_absent_client_info_removed() {
    let capabilities = json(r#"{"elicitation":{}}"#);
    let envelope = Envelope {
        version: "2026-07-28",
        client_info: None,
        capabilities: &capabilities,
        log_level: Some("info"),
    };
    let params = json(r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#);
    let expected = concat!(
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"#,
        r#""io.modelcontextprotocol/logLevel":"info"}}"#
    );
    let mut params = ServerParams {
        params: Some(&params),
        envelope: Some(&envelope),
        progress_token: None,
        subject: None,
    };
    assert_eq!(written(&params).unwrap(), expected);
    params.params = None;
    params.envelope = None;
    params.subject = Some(("name", "t"));
    assert_eq!(written(&params).unwrap(), r#"{"name":"t"}"#);
}

#[test]
fn d2_the_subject_is_named_as_its_server_names_it() {
    for (params, expected) in [
        (
            r#"{"a":1,"name":"x","b":2}"#,
            r#"{"a":1,"name":"t\"","b":2}"#,
        ),
        (r#"{"name":"t\u0022","b":2}"#, r#"{"name":"t\u0022","b":2}"#),
        (r#"{"n\u0061me":7}"#, r#"{"n\u0061me":"t\""}"#),
        (r#"{"a":1}"#, r#"{"a":1,"name":"t\""}"#),
    ] {
        let params = ServerParams {
            params: Some(&json(params)),
            envelope: None,
            progress_token: None,
            subject: Some(("name", "t\"")),
        };
        assert_eq!(written(&params).unwrap(), expected);
    }
}

#[test]
fn legacy_params_lose_what_only_modern_servers_know() {
    let table = [
        (None, None, None),
        (None, Some(4), Some(r#"{"_meta":{"progressToken":4}}"#)),
        (Some("{}"), None, Some("{}")),
        (Some("{ }"), None, Some("{}")),
        (Some(r#"{"_meta":{}}"#), None, Some(r#"{"_meta":{}}"#)),
        (
            Some(r#"{"_meta":{"v":1}, "a" : 1}"#),
            None,
            Some(r#"{"_meta":{"v":1},"a":1}"#),
        ),
        (
            Some(
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"cursor":""}"#,
            ),
            None,
            Some(r#"{"cursor":""}"#),
        ),
        (
            Some(
                r#"{"name":"t","inputResponses":{},"arguments":{"requestState":1},"requestState":"s","_meta":{"b":2,"io.modelcontextprotocol/x":1,"progressToken":"p","a":1}}"#,
            ),
            Some(12),
            Some(
                r#"{"name":"t","arguments":{"requestState":1},"_meta":{"b":2,"progressToken":12,"a":1}}"#,
            ),
        ),
        // An escape does not smuggle a reserved key through.
        (
            Some(
                r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"x","io\u002emodelcontextprotocol/y":1}}"#,
            ),
            None,
            Some("{}"),
        ),
        (Some(r#"{"_meta":{"progressToken":1}}"#), None, Some("{}")),
    ];
    for (params, token, expected) in table {
        assert_eq!(
            legacy(params, token).unwrap().as_deref(),
            expected,
            "{params:?}"
        );
    }
}

#[test]
fn t_e4_params_with_a_member_twice_are_refused() {
    let wide = format!("{{{}}}", vec![r#""k":1"#; 2000].join(","));
    let table = [
        (
            r#"{"name":"a","name":"b"}"#,
            "params member `name` occurs twice",
        ),
        (
            r#"{"name":"a","\u006eame":"b"}"#,
            "params member `name` occurs twice",
        ),
        (
            r#"{"_meta":{},"_meta":{}}"#,
            "params member `_meta` occurs twice",
        ),
        (
            r#"{"_meta":{"x":1,"x":1}}"#,
            "params member `x` occurs twice",
        ),
        (
            r#"{"_meta":7}"#,
            "`params` and `_meta` must be objects of at most 1024 members",
        ),
        (
            "[]",
            "`params` and `_meta` must be objects of at most 1024 members",
        ),
        (
            &wide,
            "`params` and `_meta` must be objects of at most 1024 members",
        ),
    ];
    for (params, why) in table {
        for bad in [
            modern(Some(params), None).unwrap_err(),
            legacy(Some(params), None).unwrap_err(),
        ] {
            assert_eq!(
                (bad.code(), bad.to_string().as_str()),
                (code::INVALID_PARAMS, why),
                "{params}"
            );
        }
    }
}

#[test]
fn envelopes_are_read_and_checked() {
    let read = |meta: &str| {
        let params = json(&format!(r#"{{"_meta":{meta}}}"#));
        let shown = RequestParams::read(Some(&params)).and_then(|found| {
            let RequestEnvelope {
                version,
                capabilities,
                log_level,
            } = found.require()?;
            let token = found.progress_token.unwrap_or("-");
            Ok(format!("{version} {capabilities} {log_level:?} {token}"))
        });
        shown.unwrap_or_else(|bad| {
            assert_eq!(bad.code(), code::INVALID_PARAMS);
            bad.to_string()
        })
    };
    let v = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let c = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let both = "`params._meta` lacks io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities";
    let table = [
        (format!("{{{v},{c}}}"), "2026-07-28 {} None -"),
        (
            format!(
                r#"{{{v},{c},"progressToken":"p7","io.modelcontextprotocol/logLevel":"alert","io.modelcontextprotocol/clientInfo":{{"name":"x"}}}}"#
            ),
            r#"2026-07-28 {} Some(Alert) "p7""#,
        ),
        (
            format!(r#"{{{v},{c},"io.modelcontextprotocol/clientInfo":5,"progressToken":null}}"#),
            "2026-07-28 {} None -",
        ),
        ("{}".to_owned(), both),
        ("null".to_owned(), both),
        ("[]".to_owned(), "`params._meta` must be an object"),
        (
            format!("{{{v}}}"),
            "`params._meta` lacks io.modelcontextprotocol/clientCapabilities",
        ),
        (
            format!("{{{c}}}"),
            "`params._meta` lacks io.modelcontextprotocol/protocolVersion",
        ),
        (
            format!("{{{v},{v},{c}}}"),
            "`params._meta` lacks io.modelcontextprotocol/protocolVersion",
        ),
        (
            format!(r#"{{{c},"io.modelcontextprotocol/protocolVersion":5}}"#),
            "`params._meta` has a bad value for io.modelcontextprotocol/protocolVersion",
        ),
        (
            format!(r#"{{{v},"io.modelcontextprotocol/clientCapabilities":[]}}"#),
            "`params._meta` has a bad value for io.modelcontextprotocol/clientCapabilities",
        ),
        (
            format!(r#"{{{v},{c},"io.modelcontextprotocol/logLevel":"loud"}}"#),
            "`params._meta` has a bad value for io.modelcontextprotocol/logLevel",
        ),
        (
            format!(r#"{{{v},{c},"progressToken":1.5}}"#),
            "`params._meta` has a bad value for progressToken",
        ),
    ];
    for (meta, expected) in table {
        assert_eq!(read(&meta), expected, "{meta}");
    }
    assert!(!RequestParams::read(None).unwrap().is_modern());
    let params = json(&format!(r#"{{"_meta":{{{v}}}}}"#));
    assert!(RequestParams::read(Some(&params)).unwrap().is_modern());
}

#[test]
fn levels_are_ordered_by_severity() {
    let names = [
        "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
    ];
    let levels: Vec<LogLevel> = names.iter().map(|name| name.parse().unwrap()).collect();
    assert!(levels.is_sorted());
    assert!(
        levels
            .iter()
            .zip(names)
            .all(|(level, name)| level.as_str() == name)
    );
    assert_eq!("Info".parse::<LogLevel>(), Err(BadLogLevel));
}

#[test]
fn progress_is_read_and_retokened_in_place() {
    let params = json(r#"{"progress":0.10,"progressToken":3,"total":1,"message":"m","x":[ ]}"#);
    let read = progress(Some(&params)).unwrap();
    assert_eq!(
        (read.token.get(), read.progress.unwrap().get()),
        ("3", "0.10")
    );
    assert_eq!(
        with_progress_token(&params, &json(r#""p""#)).get(),
        r#"{"progress":0.10,"progressToken":"p","total":1,"message":"m","x":[ ]}"#
    );
    assert!(progress(Some(&json("{}"))).is_none() && progress(None).is_none());
    assert!(progress(Some(&json(r#"{"progressToken":1,"progressToken":2}"#))).is_none());
}

#[test]
fn meta_keys_are_read_and_set() {
    let params = json(r#"{"uri":"u","_meta":{"a":1}}"#);
    let set = set_meta_member(&params, SUBSCRIPTION_ID, &number(31));
    assert_eq!(
        set.get(),
        r#"{"uri":"u","_meta":{"a":1,"io.modelcontextprotocol/subscriptionId":31}}"#
    );
    assert_eq!(meta_member(&set, SUBSCRIPTION_ID).unwrap().get(), "31");
    let set = set_meta_member(&json("{}"), "k", &number(1));
    assert_eq!(set.get(), r#"{"_meta":{"k":1}}"#);
    assert!(meta_member(&json(r#"{"_meta":null}"#), "k").is_none());
}

proptest! {
    /// There and back: members that are not MCP's own return unchanged.
    #[test]
    fn vendor_keys_survive_both_rewrites(
        before in prop::collection::btree_map("[a-z]{1,4}", "[0-9]|\"[a-z/é]{0,4}\"", 0..4),
        meta in prop::collection::btree_map("(acme\\.io/)?[a-z]{1,6}", "[0-9]|\\{\"a\": 1e5\\}", 1..5),
        token in prop::option::of(any::<u64>()),
    ) {
        let members = |map: &std::collections::BTreeMap<String, String>| {
            let pairs: Vec<String> = map.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
            pairs.join(",")
        };
        let comma = if before.is_empty() { "" } else { "," };
        let params = format!("{{{}{comma}\"_meta\":{{{}}}}}", members(&before), members(&meta));
        let there = modern(Some(&params), token).unwrap();
        prop_assert_eq!(legacy(Some(&there), None).unwrap().unwrap(), params);
    }
}
