use super::super::arguments::check;
use super::*;

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn d10_arguments_that_break_the_schema_are_named() {
    let table = [
        (json!({"required": ["path"]}), json!({}), "path: is missing"),
        (
            object(json!({"n": {"type": "integer"}})),
            json!({"n": 1.5}),
            "n: must be integer, not number",
        ),
        (
            object(json!({"n": {"type": ["string", "null"]}})),
            json!({"n": []}),
            "n: must be string or null, not array",
        ),
        (
            object(json!({"m": {"enum": ["a", 2]}})),
            json!({"m": "b"}),
            "m: must be one of \"a\", 2",
        ),
        (
            object(json!({"m": {"const": "a"}})),
            json!({"m": "b"}),
            "m: must be \"a\"",
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false}),
            json!({"b": 1}),
            "b: is not an argument",
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"b": 1}),
            "b: must be string, not number",
        ),
        (
            object(
                json!({"l": {"type": "array", "items": object(json!({"x": {"type": "string"}}))}}),
            ),
            json!({"l": [{}, {"x": 1}]}),
            "l[1].x: must be string, not number",
        ),
        (
            object(
                json!({"l": {"prefixItems": [{"type": "string"}], "items": {"type": "number"}}}),
            ),
            json!({"l": ["a", "b"]}),
            "l[1]: must be number, not string",
        ),
        (
            object(json!({"l": {"items": [{"type": "string"}], "additionalItems": false}})),
            json!({"l": ["a", 1]}),
            "l[1]: is not allowed",
        ),
        (
            object(json!({"l": {"minItems": 2}, "s": {"maxLength": 2}})),
            json!({"l": [1], "s": "äöü"}),
            "l: must have at least 2 elements; s: must have at most 2 characters",
        ),
        (
            object(
                json!({"a": {"minimum": 1}, "b": {"maximum": 1}, "c": {"exclusiveMinimum": 1}, "d": {"exclusiveMaximum": 1}}),
            ),
            json!({"a": 0, "b": 2, "c": 1, "d": 1}),
            "a: must be at least 1; b: must be at most 1; c: must be more than 1; d: must be less than 1",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}),
            json!({"a": 1}),
            "a: must be string, not number",
        ),
        (
            json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            "arguments: fits none of its 2 forms (a: is missing)",
        ),
        (
            json!({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({}),
            "a: is missing; b: is missing",
        ),
        (
            json!({"type": "object"}),
            json!([]),
            "arguments: must be object, not array",
        ),
    ];
    for (schema, arguments, wrong) in table {
        let found = check(&schema, &arguments).unwrap_err();
        assert_eq!(found.to_string(), wrong, "{schema}");
    }
}

/// What we do not judge, or cannot, is the server's to judge.
#[test]
fn d10_nothing_is_refused_that_the_schema_allows() {
    let table = [
        (object(json!({"n": {"type": "integer"}})), json!({"n": 1.0})),
        (
            object(json!({"n": {"type": "integer"}})),
            json!({"n": u64::MAX}),
        ),
        (object(json!({"n": {"enum": [1]}})), json!({"n": 1.0})),
        (
            object(json!({"n": {"const": {"a": [1, 2]}}})),
            json!({"n": {"a": [1.0, 2]}}),
        ),
        (object(json!({"n": {"type": "any"}})), json!({"n": {}})),
        (
            object(json!({"n": {"type": "string", "pattern": "^a$", "format": "date"}})),
            json!({"n": "b"}),
        ),
        (
            json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({"x1": 1}),
        ),
        (json!({"not": {"pattern": "x"}}), json!({})),
        (json!({"if": {"pattern": "x"}, "then": false}), json!({})),
        (
            object(json!({"s": {"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}})),
            json!({"s": "a"}),
        ),
        (
            object(json!({"s": {"minLength": 3, "maxLength": 3}})),
            json!({"s": "äöü"}),
        ),
        (
            object(json!({"n": {"minimum": 1, "exclusiveMinimum": true}})),
            json!({"n": 1}),
        ),
        // Draft 7 reads nothing beside a reference.
        (
            json!({"properties": {"a": {"$ref": "#/d", "type": "number"}}, "d": {"type": "string"}}),
            json!({"a": "x"}),
        ),
        (
            object(json!({"a": {"$ref": "https://example.org/s"}})),
            json!({"a": 1}),
        ),
        (object(json!({"a": {"$ref": "#anchor"}})), json!({"a": 1})),
        (
            object(json!({"a": {"$id": "x", "properties": {"b": {"$ref": "#/type"}}}})),
            json!({"a": {"b": 1}}),
        ),
        (json!({"$ref": "#"}), json!({"a": 1})),
        (
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"a": 1}),
        ),
        (json!(true), json!({"a": 1})),
        (
            json!({"required": true, "properties": 5, "enum": "x"}),
            json!({"a": 1}),
        ),
        (
            json!({"properties": {"a": {"required": true, "type": "string"}}}),
            json!({}),
        ),
    ];
    for (schema, arguments) in table {
        assert_eq!(check(&schema, &arguments), Ok(()), "{schema} {arguments}");
    }
}

#[test]
fn d10_a_schema_in_circles_ends() {
    let tree = json!({"$ref": "#/$defs/T", "$defs": {"T": {"type": "object",
        "properties": {"next": {"$ref": "#/$defs/T"}, "v": {"type": "number"}}}}});
    let wrong = check(&tree, &json!({"next": {"next": {"v": "x"}}})).unwrap_err();
    assert_eq!(wrong.to_string(), "next.next.v: must be number, not string");
    let many: Vec<Value> = (0..20).map(|_| json!({"$ref": "#"})).collect();
    assert_eq!(
        check(&json!({"anyOf": many, "required": []}), &json!({})),
        Ok(())
    );
    let values: serde_json::Map<String, Value> =
        (0..100).map(|n| (format!("a{n}"), json!(1))).collect();
    let wrong = check(&json!({"additionalProperties": false}), &values.into()).unwrap_err();
    assert_eq!(wrong.to_string().matches("is not an argument").count(), 5);
}
