use proptest::prelude::*;

use super::*;

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn values_are_encoded_only_where_they_must_be() {
    let table = [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b,c;d=\"e\"", "a b,c;d=\"e\""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("\tx", "=?base64?CXg=?="),
        ("x\t", "=?base64?eAk=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="),
        ("nul\0", "=?base64?bnVsAA==?="),
        ("del\u{7f}", "=?base64?ZGVsfw==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?BASE64?literal?=", "=?BASE64?literal?="),
        ("=?base64?open", "=?base64?open"),
        // Start and end of the marker may not share characters.
        ("=?base64?=", "=?base64?="),
    ];
    for (value, header) in table {
        assert_eq!(encode_value(value), header);
        assert_eq!(decode_value(header).unwrap(), value);
    }
}

#[test]
fn headers_are_decoded_exactly() {
    let table = [
        (" \t plain \t", Ok("plain")),
        ("=?base64??=", Ok("")),
        ("=?Base64?eA==?=", Ok("=?Base64?eA==?=")),
        ("x=?base64?eA==?=", Ok("x=?base64?eA==?=")),
        ("in\tside", Ok("in\tside")),
        ("=?base64?eA?=", Err(BadHeader::Base64)),
        ("=?base64?eA== ?=", Err(BadHeader::Base64)),
        ("=?base64?e-_=?=", Err(BadHeader::Base64)),
        ("=?base64?!!!!?=", Err(BadHeader::Base64)),
        ("=?base64?/w==?=", Err(BadHeader::Base64)),
        ("é", Err(BadHeader::Characters)),
        ("a\nb", Err(BadHeader::Characters)),
        ("a\u{7f}", Err(BadHeader::Characters)),
    ];
    for (header, expected) in table {
        assert_eq!(
            decode_value(header).as_deref(),
            expected.as_deref(),
            "{header:?}"
        );
    }
}

#[test]
fn t_e1_headers_match_bodies_by_value() {
    let table = [
        ("crm_find", r#""crm_find""#, true),
        (" crm_find ", r#""crm_find""#, true),
        ("crm_find", r#""CRM_find""#, false),
        ("safe", r#""danger""#, false),
        ("=?base64?c2FmZQ==?=", r#""safe""#, true),
        ("a/b", r#""a\/b""#, true),
        ("", r#""""#, true),
        ("42", "42", true),
        ("42.0", "42", true),
        ("42", "42.0", true),
        ("42", "4.2e1", true),
        ("-0", "0", true),
        ("42", r#""42""#, true),
        ("42", "43", false),
        ("9007199254740993", "9007199254740992", false),
        ("042", "42", false),
        ("0x2a", "42", false),
        ("+42", "42", false),
        ("true", "true", true),
        ("True", "true", false),
        ("1", "true", false),
        ("null", "null", false),
        ("{}", "{}", false),
    ];
    for (header, body, expected) in table {
        assert_eq!(matches(header, body), Ok(expected), "{header} {body}");
    }
    assert_eq!(matches("=?base64?*?=", "\"x\""), Err(BadHeader::Base64));
}

#[test]
fn numbers_compare_by_value_at_any_size() {
    let same = |a: &str, b: &str| Number::parse(a).unwrap() == Number::parse(b).unwrap();
    assert!(same("1e2", "100") && same("0.10", "1E-1") && same("-0.0", "0e5"));
    assert!(same("120e-1", "12") && same("-1.50e+3", "-1500"));
    assert!(!same("1", "-1") && !same("123456789012345678901", "123456789012345678900"));
    for bad in [
        "", "-", ".5", "5.", "1e", "1e+", "01", "1_0", "Infinity", "NaN", "1e1234567890",
    ] {
        assert_eq!(Number::parse(bad), None, "{bad}");
    }
}

fn annotations(schema: &str) -> Result<Vec<String>, InvalidAnnotation> {
    let headers = param_headers(&json(schema))?;
    let show = |h: &ParamHeader| format!("{}={}:{:?}", h.name, h.path.join("/"), h.kind);
    Ok(headers.iter().map(show).collect())
}

#[test]
fn annotations_are_found_through_properties() {
    let table: [(&str, &[&str]); 7] = [
        (r#"{"type":"object"}"#, &[]),
        ("true", &[]),
        (
            r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"q":{"type":"string"}}}"#,
            &["Mcp-Param-Region=region:String"],
        ),
        (
            r#"{"properties":{"o":{"type":"object","properties":{"n":{"x-mcp-header":"N","type":"integer"}}},"b":{"x-mcp-header":"B","type":"boolean"}}}"#,
            &["Mcp-Param-N=o/n:Integer", "Mcp-Param-B=b:Boolean"],
        ),
        // A property of that name is no annotation, nor is data.
        (
            r#"{"properties":{"x-mcp-header":{"type":"number"},"properties":{"type":"string","x-mcp-header":"P"}}}"#,
            &["Mcp-Param-P=properties:String"],
        ),
        (
            r#"{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":1},"examples":[{"x-mcp-header":1}]}},"$defs":{"x-mcp-header":{"type":"string"}}}"#,
            &[],
        ),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp\u002dheader":"A"}}}"#,
            &["Mcp-Param-A=a:String"],
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(annotations(schema).unwrap(), expected, "{schema}");
    }
}

#[test]
fn one_invalid_annotation_spoils_the_tool() {
    let property = |property: &str| format!(r#"{{"properties":{{"a":{property}}}}}"#);
    let annotated = r#"{"type":"string","x-mcp-header":"A"}"#;
    let at_a = "#/properties/a".to_owned();
    for name in [
        r#""""#, r#""a b""#, r#""a:b""#, r#""é""#, r#""a\nb""#, "5", "null", r#"["A"]"#,
    ] {
        let schema = property(&format!(r#"{{"type":"string","x-mcp-header":{name}}}"#));
        assert_eq!(
            annotations(&schema),
            Err(InvalidAnnotation::Name(at_a.clone())),
            "{name}"
        );
    }
    for kind in [
        r#""number""#,
        r#""object""#,
        r#""array""#,
        r#""null""#,
        r#"["string","null"]"#,
        "1",
    ] {
        let schema = property(&format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#));
        assert_eq!(
            annotations(&schema),
            Err(InvalidAnnotation::Type(at_a.clone())),
            "{kind}"
        );
    }
    let untyped = property(r#"{"x-mcp-header":"A"}"#);
    assert_eq!(annotations(&untyped), Err(InvalidAnnotation::Type(at_a)));

    let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"Aa"},"b":{"type":"string","x-mcp-header":"aA"}}}"#;
    assert_eq!(
        annotations(twice),
        Err(InvalidAnnotation::Twice("aA".to_owned()))
    );

    let places = [
        (r#"{"type":"string","x-mcp-header":"A"}"#.to_owned(), "#/"),
        (
            property(&format!(r#"{{"type":"array","items":{annotated}}}"#)),
            "#/properties/a/items",
        ),
        (
            property(&format!(r#"{{"prefixItems":[{annotated}]}}"#)),
            "#/properties/a/prefixItems/0",
        ),
        (
            property(&format!(r#"{{"oneOf":[{{}},{annotated}]}}"#)),
            "#/properties/a/oneOf/1",
        ),
        (
            property(&format!(r#"{{"if":{annotated}}}"#)),
            "#/properties/a/if",
        ),
        (
            property(&format!(
                r#"{{"not":{{"properties":{{"b":{annotated}}}}}}}"#
            )),
            "#/properties/a/not/properties/b",
        ),
        (
            format!(r#"{{"$defs":{{"d":{annotated}}},"properties":{{}}}}"#),
            "#/$defs/d",
        ),
        (
            format!(r#"{{"additionalProperties":{annotated}}}"#),
            "#/additionalProperties",
        ),
        (
            format!(r#"{{"allOf":[{{"properties":{{"b":{annotated}}}}}]}}"#),
            "#/allOf/0/properties/b",
        ),
    ];
    for (schema, place) in places {
        assert_eq!(
            annotations(&schema),
            Err(InvalidAnnotation::Place(place.into())),
            "{schema}"
        );
    }
    let deep = format!(
        "{}{annotated}{}",
        r#"{"properties":{"a":"#.repeat(200),
        "}}".repeat(200)
    );
    assert_eq!(annotations(&deep), Err(InvalidAnnotation::Depth));
}

fn headers() -> Vec<ParamHeader> {
    param_headers(&json(
        r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"o":{"properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}}"#,
    ))
    .unwrap()
}

#[test]
fn arguments_are_mirrored_where_present() {
    let table: [(&str, &[(&str, &str)]); 9] = [
        ("{}", &[]),
        (r#"{"s":null,"o":{"b":null}}"#, &[]),
        (r#"{"o":5}"#, &[]),
        (
            r#"{"s":"x","i":7,"o":{"b":false}}"#,
            &[
                ("Mcp-Param-S", "x"),
                ("Mcp-Param-I", "7"),
                ("Mcp-Param-B", "false"),
            ],
        ),
        (
            r#"{"s":"a\r\nX: y"}"#,
            &[("Mcp-Param-S", "=?base64?YQ0KWDogeQ==?=")],
        ),
        (
            r#"{"s":"","i":-7.0}"#,
            &[("Mcp-Param-S", ""), ("Mcp-Param-I", "-7")],
        ),
        (r#"{"i":1e3}"#, &[("Mcp-Param-I", "1000")]),
        (r#"{"i":1.5,"s":{}}"#, &[("Mcp-Param-I", "1.5")]),
        (r#"{"s":"a","s":"b"}"#, &[]),
    ];
    for (arguments, expected) in table {
        let values = param_values(&headers(), Some(&json(arguments)));
        let values: Vec<(&str, &str)> = values.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(values, expected, "{arguments}");
    }
    assert!(param_values(&headers(), None).is_empty());
}

#[test]
fn t_e1_mirrored_arguments_are_held_against_the_body() {
    let check = |sent: &[(&str, &'static str)], arguments: &str| {
        let sent = sent.to_vec();
        check_params(&headers(), Some(&json(arguments)), move |name| {
            let hit = sent
                .iter()
                .find(|(sent, _)| sent.eq_ignore_ascii_case(name));
            hit.map(|(_, value)| *value)
        })
        .map_err(|why| why.to_string())
    };
    let err = |why: &str| Err(why.to_owned());
    assert_eq!(check(&[], "{}"), Ok(()));
    assert_eq!(
        check(
            &[("mcp-param-s", "x"), ("MCP-PARAM-I", "42.0")],
            r#"{"s":"x","i":42}"#
        ),
        Ok(())
    );
    assert_eq!(check(&[], r#"{"s":null}"#), Ok(()));
    assert_eq!(
        check(&[], r#"{"s":"x"}"#),
        err("header Mcp-Param-S is missing")
    );
    assert_eq!(
        check(&[("Mcp-Param-S", "y")], r#"{"s":"x"}"#),
        err("header Mcp-Param-S does not match the body")
    );
    assert_eq!(
        check(&[("Mcp-Param-S", "x")], "{}"),
        err("header Mcp-Param-S does not match the body")
    );
    assert_eq!(
        check(&[("Mcp-Param-S", "x")], r#"{"s":"x","s":"y"}"#),
        err("the argument for header Mcp-Param-S occurs twice")
    );
    assert_eq!(
        check(&[("Mcp-Param-S", "=?base64?*?=")], r#"{"s":"x"}"#),
        err("header Mcp-Param-S has a base64 marker, but its content is not base64 of UTF-8 text")
    );
    assert_eq!(check(&[("Mcp-Param-Unknown", "x")], "{}"), Ok(()));
}

proptest! {
    #[test]
    fn any_value_survives_a_header(value in any::<String>()) {
        let header = encode_value(&value);
        prop_assert!(header.bytes().all(|b| (b' '..=b'~').contains(&b)));
        prop_assert_eq!(header.trim(), &*header);
        prop_assert_eq!(&*decode_value(&header).unwrap(), &value);
    }

    #[test]
    fn what_we_mirror_passes_our_own_check(s in any::<String>(), i in -(1i64 << 53)..1 << 53, b: bool) {
        let arguments = json(&serde_json::json!({"s": s, "i": i, "o": {"b": b}}).to_string());
        let sent = param_values(&headers(), Some(&arguments));
        prop_assert_eq!(sent.len(), 3);
        let get = |name: &str| sent.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        prop_assert_eq!(check_params(&headers(), Some(&arguments), get), Ok(()));
    }

    #[test]
    fn no_schema_makes_the_walk_panic(text in r#"\{("(properties|items|type|x-mcp-header|a)":|\{|\}|\[|\]|,|"string"|1){0,30}\}"#) {
        if let Ok(schema) = RawValue::from_string(text) {
            let _ = param_headers(&schema);
        }
    }
}
