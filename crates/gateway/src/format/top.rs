//! The top level of a schema: merges alternatives, since models' APIs accept
//! none there.

use serde_json::{Map, Value, json};

use super::schema::REQUIRED;

/// Characters of the note that describes the alternatives.
const NOTE: usize = 300;

/// The top level: one object, whatever alternatives it had.
pub(super) fn flat(
    mut schema: Map<String, Value>,
    note: &mut Option<String>,
) -> Map<String, Value> {
    for (keyword, all) in [("allOf", true), ("anyOf", false)] {
        if let Some(Value::Array(variants)) = schema.remove(keyword) {
            let variants = variants.into_iter().filter_map(|one| match one {
                Value::Object(one) => Some(flat(one, note)),
                _ => None,
            });
            let variants: Vec<_> = variants.collect();
            if all {
                add(&mut schema, variants);
            } else {
                overlay(&mut schema, variants, note);
            }
        }
    }
    for keyword in ["enum", "const", "not", "type"] {
        schema.remove(keyword);
    }
    let properties = take_properties(&mut schema);
    let mut out = Map::new();
    out.insert("type".into(), "object".into());
    out.insert("properties".into(), properties.into());
    out.extend(schema);
    out
}

/// Merges variants that all apply.
fn add(schema: &mut Map<String, Value>, variants: Vec<Map<String, Value>>) {
    for mut variant in variants {
        for name in required(&variant) {
            require(schema, name);
        }
        for (name, value) in take_properties(&mut variant) {
            properties(schema).entry(name).or_insert(value);
        }
        variant.remove("required");
        variant.remove("type");
        variant.remove("additionalProperties");
        for (keyword, value) in variant {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// Merges variants of which one applies.
fn overlay(
    schema: &mut Map<String, Value>,
    variants: Vec<Map<String, Value>>,
    note: &mut Option<String>,
) {
    let sets: Vec<Vec<String>> = variants.iter().map(required).collect();
    if let Some((first, rest)) = sets.split_first() {
        for name in first {
            if rest.iter().all(|set| set.contains(name)) {
                require(schema, name.clone());
            }
        }
    }
    *note = note.take().or_else(|| in_words(&sets));
    for mut variant in variants {
        for (name, value) in take_properties(&mut variant) {
            either(properties(schema), name, value);
        }
    }
}

/// An argument with different schemas in two variants may have either.
fn either(properties: &mut Map<String, Value>, name: String, value: Value) {
    let Some(known) = properties.get_mut(&name) else {
        properties.insert(name, value);
        return;
    };
    if *known == value || value == json!({}) {
        return;
    }
    match known {
        Value::Object(map) if map.len() == 1 && map.contains_key("anyOf") => {
            if let Some(Value::Array(each)) = map.get_mut("anyOf")
                && !each.contains(&value)
            {
                each.push(value);
            }
        }
        known => *known = json!({"anyOf": [known.take(), value]}),
    }
}

fn in_words(sets: &[Vec<String>]) -> Option<String> {
    let differ = sets.iter().any(|set| set != &sets[0]);
    if !differ {
        return None;
    }
    let sets = sets.iter().map(|set| match set.as_slice() {
        [] => "none of these".to_owned(),
        set => set.join(" and "),
    });
    let mut sets: Vec<String> = sets.collect();
    sets.dedup();
    let text = format!("Needs one of: {}.", sets.join("; "));
    (text.chars().count() <= NOTE).then_some(text)
}

fn required(schema: &Map<String, Value>) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn require(schema: &mut Map<String, Value>, name: String) {
    let names = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(names) = names
        && names.len() < REQUIRED
        && !names.iter().any(|known| *known == name)
    {
        names.push(name.into());
    }
}

/// The schema's own properties, to add to. It must not forbid the additions.
fn properties(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    schema.remove("additionalProperties");
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        *properties = json!({});
    }
    properties.as_object_mut().expect("made an object above")
}

fn take_properties(schema: &mut Map<String, Value>) -> Map<String, Value> {
    match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    }
}
