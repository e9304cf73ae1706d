use super::*;
use crate::header::without_annotations;

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn only_a_root_of_type_object_suits_a_legacy_client() {
    for (schema, wraps) in [
        (r#"{"type":"object"}"#, false),
        (r#"{"properties":{},"type":"object"}"#, false),
        (r#"{"type":["object"]}"#, true),
        (r#"{"type":"array","items":{}}"#, true),
        (r#"{"anyOf":[{"type":"object"}]}"#, true),
        (r#"{"type":"object","type":"array"}"#, true),
        ("true", true),
        ("{}", true),
    ] {
        assert_eq!(needs_wrapping(&json(schema)), wraps, "{schema}");
    }
}

#[test]
fn wrapped_schemas_keep_their_pointers() {
    let table = [
        ("true", "true"),
        (
            r#"{"type":"string", "x":1.0}"#,
            r#"{"type":"string", "x":1.0}"#,
        ),
        (r##"{"$ref":"#"}"##, r##"{"$ref":"#/properties/result"}"##),
        (
            r##"{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n/x"},{"type":"null"}]}}}"##,
            r##"{"type":"array","items":{"$ref":"#/properties/result/$defs/n"},"$defs":{"n":{"anyOf":[{"$ref":"#/properties/result/$defs/n/x"},{"type":"null"}]}}}"##,
        ),
        // Escaped spellings are followed too.
        (
            r##"{"items":{"\u0024ref":"\u0023/a"}}"##,
            r##"{"items":{"\u0024ref":"#/properties/result/a"}}"##,
        ),
        // Anchors, other documents, and names and data that look like references.
        (
            r##"{"items":{"$ref":"#anchor"},"contains":{"$ref":"https://x/y#/z"},"not":{"$dynamicRef":"#/q"}}"##,
            r##"{"items":{"$ref":"#anchor"},"contains":{"$ref":"https://x/y#/z"},"not":{"$dynamicRef":"#/properties/result/q"}}"##,
        ),
        (
            r##"{"properties":{"$ref":{"const":{"$ref":"#/a"}}},"default":{"$ref":"#/b"},"enum":[{"$ref":"#/c"}],"x-vendor":{"$ref":"#/d"},"$ref":5}"##,
            r##"{"properties":{"$ref":{"const":{"$ref":"#/a"}}},"default":{"$ref":"#/b"},"enum":[{"$ref":"#/c"}],"x-vendor":{"$ref":"#/d"},"$ref":5}"##,
        ),
        // A schema with an id of its own is the root its pointers mean.
        (
            r##"{"$defs":{"r":{"$id":"urn:r","items":{"$ref":"#/a"}},"s":{"$id":"#s","items":{"$ref":"#/a"}}}}"##,
            r##"{"$defs":{"r":{"$id":"urn:r","items":{"$ref":"#/a"}},"s":{"$id":"#s","items":{"$ref":"#/properties/result/a"}}}}"##,
        ),
    ];
    for (schema, inner) in table {
        let expected = format!(
            r#"{{"type":"object","properties":{{"result":{inner}}},"required":["result"]}}"#
        );
        assert_eq!(
            wrap_output_schema(&json(schema)).get(),
            expected,
            "{schema}"
        );
    }
}

#[test]
fn the_dialect_stays_at_the_root() {
    let schema =
        json(r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"}"#);
    assert_eq!(
        wrap_output_schema(&schema).get(),
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"result":{"type":"string"}},"required":["result"]}"#
    );
}

#[test]
fn trap07_annotations_can_be_taken_out() {
    let table = [
        (r#"{"type":"object", "a":1}"#, r#"{"type":"object", "a":1}"#),
        (
            r#"{"x-mcp-header":"R","properties":{"x-mcp-header":{"x-mcp-header":"A","type":"number"}},"items":[{"x-mcp-header":1}],"default":{"x-mcp-header":1},"x-vendor":{"x-mcp-header":"V","k":1}}"#,
            r#"{"properties":{"x-mcp-header":{"type":"number"}},"items":[{}],"default":{"x-mcp-header":1},"x-vendor":{"k":1}}"#,
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(
            without_annotations(&json(schema)).get(),
            expected,
            "{schema}"
        );
    }
}
