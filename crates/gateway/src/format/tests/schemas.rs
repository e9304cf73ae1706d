use super::super::keys;
use super::*;

fn spelled(schema: &Value) -> Value {
    parameters(Some(&raw(schema))).schema.into()
}

/// From what servers list to what models' APIs take.
#[test]
fn d10_what_a_vendor_refuses_is_rewritten() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let table = [
        // As it is.
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}},
                "required": ["a"], "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}},
                "required": ["a"], "additionalProperties": false}),
        ),
        // The top level is an object with properties.
        (json!({"type": "object"}), object(json!({}))),
        (json!({}), object(json!({}))),
        (json!(null), object(json!({}))),
        (json!(true), object(json!({}))),
        (json!({"type": ["object", "null"]}), object(json!({}))),
        (
            json!({"type": "object", "properties": [], "required": true, "enum": [{}], "not": {}}),
            object(json!({})),
        ),
        // Annotations of the document mean nothing elsewhere.
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "type": "object"}),
            object(json!({})),
        ),
        // Arrays have items, schemas are objects.
        (
            object(json!({"a": {"type": "array"}, "b": {"type": ["array", "null"]}, "c": true})),
            object(json!({
                "a": {"type": "array", "items": {}},
                "b": {"type": ["array", "null"], "items": {}},
                "c": {},
            })),
        ),
        // Older drafts.
        (
            object(json!({
                "a": {"type": "array", "items": [{"type": "string"}, true], "additionalItems": {"type": "number"}},
                "b": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "required": true},
                "c": {"type": "any"},
                "d": {"type": "string", "enum": []},
            })),
            object(json!({
                "a": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {"type": "number"}},
                "b": {"type": "number", "minimum": 0, "exclusiveMinimum": 0},
                "c": {},
                "d": {"type": "string"},
            })),
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(spelled(&schema), expected, "{schema}");
    }
}

#[test]
fn d10_references_stand_where_they_lead() {
    let table = [
        (
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "description": "mine"}},
                "$defs": {"A": {"type": "string", "description": "theirs", "minLength": 1}}}),
            json!({"a": {"type": "string", "description": "mine", "minLength": 1}}),
        ),
        (
            json!({"$ref": "#/definitions/Top", "definitions":
                {"Top": {"type": "object", "properties": {"n": {"allOf": [{"$ref": "#/definitions/N"}], "title": "N"}}},
                 "N": {"type": "integer"}}}),
            json!({"n": {"title": "N", "type": "integer"}}),
        ),
        // In a circle: once, then no further.
        (
            json!({"properties": {"tree": {"$ref": "#/$defs/T"}}, "$defs": {"T":
                {"type": "object", "description": "a tree", "properties":
                    {"left": {"$ref": "#/$defs/T"}, "all": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}}}),
            json!({"tree": {"type": "object", "description": "a tree", "properties": {
                "left": {"type": "object", "description": "a tree"},
                "all": {"type": "array", "items": {"type": "object", "description": "a tree"}},
            }}}),
        ),
        // Elsewhere, or nowhere.
        (
            json!({"properties": {"a": {"$ref": "https://example.org/x"}, "b": {"$ref": "#/$defs/none"},
                "c": {"$dynamicRef": "#meta", "type": "object"}}}),
            json!({"a": {}, "b": {}, "c": {"type": "object"}}),
        ),
    ];
    for (schema, properties) in table {
        let spelled = spelled(&schema);
        assert_eq!(spelled["properties"], properties, "{schema}");
        assert!(!spelled.to_string().contains('$'), "{spelled}");
    }
    let whole = json!({"properties": {"again": {"$ref": "#"}}});
    assert!(!spelled(&whole).to_string().contains("$ref"));
}

#[test]
fn d10_a_small_schema_makes_no_large_one() {
    // Each refers to the one before it, twice.
    let mut definitions = serde_json::Map::new();
    definitions.insert("d0".into(), json!({"type": "string"}));
    for n in 1..60 {
        let before = json!({"$ref": format!("#/$defs/d{}", n - 1)});
        let both = json!({"type": "object", "properties": {"a": before, "b": before}});
        definitions.insert(format!("d{n}"), both);
    }
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/d59"}}, "$defs": definitions});
    let text = spelled(&schema).to_string();
    assert!(text.len() < 500_000, "{}", text.len());
    let mut deep = json!({"type": "string"});
    for _ in 0..50 {
        deep = json!({"type": "array", "items": deep});
    }
    spelled(&json!({"properties": {"x": deep}}));
}

#[test]
fn d10_alternatives_at_the_top_are_laid_over_each_other() {
    let base = json!({"type": "object", "required": ["id"], "additionalProperties": false,
        "properties": {"id": {"type": "string"}, "title": {}, "text": {}}});
    let mut any = base.clone();
    any["anyOf"] = json!([{"required": ["title"]}, {"required": ["text"]}]);
    let out = parameters(Some(&raw(&any)));
    assert_eq!(Value::from(out.schema), base);
    assert_eq!(out.note.as_deref(), Some("Needs one of: title; text."));

    let one = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind", "y"]},
        {"type": "object", "properties": {"kind": {"const": "c"}}, "required": ["kind"], "additionalProperties": false},
    ]});
    let out = parameters(Some(&raw(&one)));
    assert_eq!(
        Value::from(out.schema),
        json!({"type": "object", "required": ["kind"], "properties": {
            "kind": {"anyOf": [{"const": "a"}, {"const": "b"}, {"const": "c"}]},
            "x": {"type": "string"}, "y": {"type": "string"},
        }})
    );
    assert_eq!(
        out.note.as_deref(),
        Some("Needs one of: kind and x; kind and y; kind.")
    );

    let all = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "allOf": [
        {"properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": false},
        {"required": ["a", "b"], "description": "both"},
    ]});
    let out = parameters(Some(&raw(&all)));
    assert_eq!(
        Value::from(out.schema),
        json!({"type": "object", "required": ["b", "a"], "description": "both",
            "properties": {"a": {}, "b": {"type": "string"}}})
    );
    assert_eq!(out.note, None);
}

#[test]
fn d10_arguments_that_anthropic_cannot_name_have_another_name_there() {
    let long = "k".repeat(65);
    let schema = json!({"type": "object", "required": ["路径", "ok.1"],
        "properties": {"路径": {"type": "string"}, "ok.1": {}, "a b": {}, long.clone(): {}}});
    let tool = json!({"name": "t", "inputSchema": schema});
    let spelled = &shown(Format::Anthropic, &tool)["input_schema"];
    let names: Vec<&String> = spelled["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 4);
    for name in &names {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        assert!(name.len() <= 64 && name.chars().all(fits), "{name}");
    }
    assert_eq!(spelled["required"], json!([names[0], "ok.1"]));
    let given = json!({names[0]: 1, "ok.1": 2, names[2]: 3, names[3]: 4, "more": 5});
    let restored = keys::restored(Some(&raw(&schema)), &raw(&given)).unwrap();
    let restored: Value = serde_json::from_str(restored.get()).unwrap();
    assert_eq!(
        restored,
        json!({"路径": 1, "ok.1": 2, "a b": 3, long.clone(): 4, "more": 5})
    );
    let plain = json!({"properties": {"a": {}}});
    assert!(keys::restored(Some(&raw(&plain)), &raw(&json!({"a": 1}))).is_none());
    // Others take them as they are.
    let openai = shown(Format::OpenAi, &tool);
    let properties = &openai["function"]["parameters"]["properties"];
    assert!(properties.get("路径").is_some());
}

/// A little that is referred to often would be a lot.
#[test]
fn d10_what_a_server_lists_does_not_grow_without_bound() {
    let long = "x".repeat(20_000);
    let names: Vec<String> = (0..20_000).map(|n| format!("n{n}")).collect();
    let refs = |to: &str, count: usize| -> Map<String, Value> {
        let one = |n| (format!("p{n}"), json!({"$ref": format!("#/$defs/{to}")}));
        (0..count).map(one).collect()
    };
    let same = |to: &str| vec![json!({"$ref": format!("#/$defs/{to}")}); 3000];
    let defs = json!({
        "text": {"type": "string", "description": long, "enum": [long]},
        "key": {"type": "object", "properties": {long.clone(): {"type": "string"}}},
        "loop": {"type": "object", "description": long,
            "properties": {"a": {"$ref": "#/$defs/loop"}, "b": {"$ref": "#/$defs/loop"}}},
        "needs": {"type": "object", "required": names},
    });
    for schema in [
        json!({"$defs": defs, "properties": refs("text", 3000)}),
        json!({"$defs": defs, "properties": refs("key", 3000)}),
        json!({"$defs": defs, "properties": refs("loop", 1000)}),
        json!({"$defs": defs, "anyOf": same("needs")}),
        json!({"$defs": defs, "allOf": same("needs")}),
        json!({"type": "object", "required": names}),
    ] {
        let written = spelled(&schema).to_string().len();
        assert!(written < 4 << 20, "{written} bytes");
    }
}
