//! Checks of the listed tools: names, descriptions, schemas.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value};

use crate::Experiment;
use crate::finding::{Verdict, bad, counted, note, ok, short, warn};
use crate::report::LabReport;
use crate::report::Section::Tools;
use config::TransportKind;
use wire::header::param_headers;

/// The size of one tool in bytes; a model reads it with every request.
const HUGE: usize = 16 << 10;
/// The size of all tools together.
const HUGE_LIST: usize = 256 << 10;
const LONGEST_NAME: usize = 128;
const DEEPEST: usize = 32;
/// The most tools named in one finding.
const NAMED: usize = 5;

const TYPES: &[&str] = &[
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Keywords whose value is a schema, a list of schemas, or a map of them.
const ONE: &[&str] = &[
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
];
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const MAP: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// Each kind of fault and the tools that have it.
type ToolFaults = BTreeMap<&'static str, Vec<String>>;

pub(crate) fn examine(experiment: &Experiment, tools: &[Value], report: &mut LabReport) {
    if tools.is_empty() {
        return;
    }
    let over_http = experiment.spec.transport() != TransportKind::Stdio;
    let mut troubles = ToolFaults::new();
    let mut names = HashSet::new();
    for tool in tools {
        look(tool, over_http, &mut names, &mut troubles);
    }
    for (kind, of) in &troubles {
        let (id, verdict) = verdict(kind, of);
        report.add(Tools, id, verdict);
    }
    let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
    report.fact("toolBytes", bytes);
    let count = counted(tools.len(), "tool");
    let found = format!("{count}, {bytes} bytes for the model to read");
    let verdict = if bytes > HUGE_LIST {
        warn(
            found,
            "bind only the tools that an agent needs to its entry",
        )
    } else {
        ok(found)
    };
    report.add(Tools, "list", verdict);
    renamed(experiment, tools, report);
}

/// Reports the names that models see instead of the tool's own (SPEC D2).
fn renamed(experiment: &Experiment, tools: &[Value], report: &mut LabReport) {
    let own = tools.iter().filter_map(|tool| tool["name"].as_str());
    let own: Vec<&str> = own.collect::<BTreeSet<_>>().into_iter().collect();
    let odd = (experiment.respelled_names)(&experiment.shown_name, &own);
    let odd = odd.iter().map(|(own, shown)| format!("{own} as {shown}"));
    let odd: Vec<String> = odd.collect();
    if !odd.is_empty() {
        let (count, names) = (counted(odd.len(), "name"), several(&odd));
        let found = format!("{count} spelled differently for models: {names}");
        report.add(Tools, "names", note(found));
    }
}

fn verdict(kind: &str, of: &[String]) -> (&'static str, Verdict) {
    let found = format!("{}: {}", counted(of.len(), "tool"), several(of));
    let (id, unusable, todo) = match kind {
        "twice" => (
            "duplicate name",
            true,
            "only one of them can be called: rename the others",
        ),
        "nameless" => ("name", true, "a tool needs a name"),
        "odd name" => (
            "name",
            false,
            "1 to 128 letters, digits, _ - . are safe everywhere",
        ),
        "no description" => ("description", false, "a model chooses by the description"),
        "no schema" => (
            "schema",
            true,
            "inputSchema must be an object with \"type\": \"object\"",
        ),
        "huge" => (
            "size",
            false,
            "shorten descriptions and enums: it costs with every request",
        ),
        "annotation" => (
            "x-mcp-header",
            true,
            "over HTTP clients must drop such a tool",
        ),
        _ => (
            "schema",
            false,
            "models and clients may refuse it: fix the schema",
        ),
    };
    let verdict = if unusable {
        bad(found, todo)
    } else {
        warn(found, todo)
    };
    (id, verdict)
}

fn several(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn look<'t>(
    tool: &'t Value,
    over_http: bool,
    names: &mut HashSet<&'t str>,
    troubles: &mut ToolFaults,
) {
    let name = tool["name"].as_str().unwrap_or_default();
    let shown = short(name, 64).into_owned();
    let mut trouble = |kind: &'static str, detail: String| {
        troubles.entry(kind).or_default().push(detail);
    };
    if name.is_empty() {
        trouble("nameless", short(&tool.to_string(), 60).into_owned());
        return;
    }
    if !names.insert(name) {
        trouble("twice", shown.clone());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.len() > LONGEST_NAME || !name.chars().all(fits) {
        trouble("odd name", format!("{shown:?}"));
    }
    if tool["description"]
        .as_str()
        .is_none_or(|text| text.trim().is_empty())
    {
        trouble("no description", shown.clone());
    }
    if tool.to_string().len() > HUGE {
        trouble(
            "huge",
            format!("{shown} ({} bytes)", tool.to_string().len()),
        );
    }
    let schema = &tool["inputSchema"];
    if schema["type"] != "object" {
        trouble("no schema", shown.clone());
    } else if let Err(reason) = check(schema, schema, 0) {
        trouble("schema", format!("{shown}: {reason}"));
    }
    if let Some(output) = tool.get("outputSchema")
        && let Err(reason) = check(output, output, 0)
    {
        trouble("schema", format!("{shown}: outputSchema: {reason}"));
    }
    let raw = serde_json::value::to_raw_value(schema).ok();
    if over_http && raw.is_some_and(|raw| param_headers(&raw).is_err()) {
        trouble("annotation", shown);
    }
}

/// Checks the basics of the metaschema: other validators fail on violations.
fn check(schema: &Value, root: &Value, depth: usize) -> Result<(), String> {
    let object = match schema {
        Value::Object(object) => object,
        Value::Bool(_) => return Ok(()),
        _ => return Err("a schema must be an object".into()),
    };
    if depth > DEEPEST {
        return Err(format!("is nested more than {DEEPEST} deep"));
    }
    if let Some(kind) = object.get("type") {
        check_type(kind)?;
    }
    check_required(object, depth)?;
    if let Some(values) = object.get("enum")
        && values.as_array().is_none_or(Vec::is_empty)
    {
        return Err("enum must be a list of values".into());
    }
    if let Some(target) = object.get("$ref") {
        check_ref(target, root)?;
    }
    let within = |label: &str, inner: &Value| {
        check(inner, root, depth + 1).map_err(|reason| format!("{label}: {reason}"))
    };
    let given = |words: &'static [&str]| {
        let given = words.iter().map(|word| (*word, object.get(*word)));
        given.filter_map(|(word, inner)| Some((word, inner?)))
    };
    for (keyword, inner) in given(ONE) {
        within(keyword, inner)?;
    }
    for (keyword, inner) in given(LIST) {
        let list = inner.as_array();
        for one in list.ok_or(format!("{keyword} must be a list"))? {
            within(keyword, one)?;
        }
    }
    for (keyword, inner) in given(MAP) {
        let map = inner.as_object();
        for (name, one) in map.ok_or(format!("{keyword} must be an object"))? {
            within(&short(name, 40), one)?;
        }
    }
    Ok(())
}

fn check_type(kind: &Value) -> Result<(), String> {
    let known = |one: &Value| one.as_str().is_some_and(|one| TYPES.contains(&one));
    let fits = match kind {
        Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(known),
        one => known(one),
    };
    if fits {
        return Ok(());
    }
    Err(format!("{} is no type", short(&kind.to_string(), 40)))
}

/// At the root, every required property must also be described.
fn check_required(object: &Map<String, Value>, depth: usize) -> Result<(), String> {
    let Some(required) = object.get("required") else {
        return Ok(());
    };
    let names = required
        .as_array()
        .ok_or("required must be a list of names")?;
    for name in names {
        let name = name.as_str().ok_or("required must be a list of names")?;
        let described = object
            .get("properties")
            .is_some_and(|all| all.get(name).is_some());
        if depth == 0 && !described && !object.contains_key("$ref") && !object.contains_key("allOf")
        {
            return Err(format!(
                "{name:?} is required, but not among the properties"
            ));
        }
    }
    Ok(())
}

fn check_ref(target: &Value, root: &Value) -> Result<(), String> {
    let target = target.as_str().ok_or("$ref must be a text")?;
    if target == "#" {
        return Ok(());
    }
    match target.strip_prefix('#') {
        Some(pointer) if pointer.starts_with('/') && root.pointer(pointer).is_none() => {
            Err(format!("$ref {target:?} leads nowhere"))
        }
        Some(_) => Ok(()),
        None => Err(format!(
            "$ref {:?} leads out of the schema",
            short(target, 60)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn k7_lab_knows_schemas_that_others_refuse() {
        let fine = [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": true}}),
            json!({"type": "object", "$defs": {"x": {"enum": [1]}},
                   "properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"]}),
        ];
        for schema in fine {
            assert_eq!(check(&schema, &schema, 0), Ok(()), "{schema}");
        }
        for (schema, word) in [
            (json!({"type": "strnig"}), "no type"),
            (json!({"properties": []}), "properties"),
            (json!({"properties": {"a": 7}}), "a: "),
            (json!({"required": "a"}), "required"),
            (json!({"required": ["a"]}), "not among"),
            (json!({"enum": []}), "enum"),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/x"}}}),
                "nowhere",
            ),
            (
                json!({"items": {"$ref": "https://example.org/x"}}),
                "out of",
            ),
            (json!({"anyOf": {}}), "anyOf"),
        ] {
            let error = check(&schema, &schema, 0).unwrap_err();
            assert!(error.contains(word), "{schema}: {error}");
        }
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"items": deep});
        }
        assert!(check(&deep, &deep, 0).unwrap_err().contains("deep"));
    }
}
