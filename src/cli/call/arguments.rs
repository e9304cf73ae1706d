//! The arguments of a call, parsed from the command line.

use std::io::Read;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::servers::items;

/// Portway accepts no larger arguments.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) enum TypedArguments {
    /// A JSON object, as it was written.
    Whole(Box<RawValue>),
    Pairs(Vec<(String, String)>),
}

pub(super) fn read(given: &[String]) -> CliResult<TypedArguments> {
    match given {
        [only] if only == "-" => whole("stdin", &text_of("stdin", std::io::stdin().lock())?),
        [only] if only.starts_with('@') => {
            let path = &only[1..];
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::usage(format!("{path}: {error}")))?;
            whole(path, &text_of(path, file)?)
        }
        [only] if only.trim_start().starts_with(['{', '[']) => whole("the arguments", only),
        pairs => {
            let pairs = pairs.iter().map(|pair| match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                _ => Err(Failure::usage(format!(
                    "`{pair}` is no argument: give one JSON object, @FILE, - for stdin, \
                     or NAME=VALUE for each"
                ))),
            });
            pairs.collect::<Result<_, _>>().map(TypedArguments::Pairs)
        }
    }
}

fn text_of(place: &str, from: impl Read) -> CliResult<String> {
    let mut text = String::new();
    match from.take(LARGEST + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > LARGEST => {
            Err(Failure::usage(format!("{place}: is larger than 64 MiB")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("{place}: {error}"))),
    }
}

fn whole(place: &str, text: &str) -> CliResult<TypedArguments> {
    let raw: Box<RawValue> = serde_json::from_str(text)
        .map_err(|error| Failure::usage(format!("{place}: not JSON: {error}")))?;
    if !wire::object::is_object(&raw) {
        let message = format!("{place}: must be a JSON object, {{\"name\": value}}");
        return Err(Failure::usage(message));
    }
    Ok(TypedArguments::Whole(raw))
}

impl TypedArguments {
    pub(super) fn for_schema(self, schema: &Value) -> CliResult<Box<RawValue>> {
        let object = match self {
            TypedArguments::Whole(raw) => return Ok(raw),
            TypedArguments::Pairs(pairs) => typed(&pairs, schema).map_err(Failure::usage)?,
        };
        serde_json::value::to_raw_value(&object).map_err(Failure::other)
    }
}

fn typed(pairs: &[(String, String)], schema: &Value) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (name, text) in pairs {
        let property = &schema["properties"][name];
        if property.is_null() && schema["additionalProperties"] == false {
            return Err(unknown(name, schema));
        }
        let wrong = |kind: String| format!("{name}: must be {kind}, not `{text}`");
        // A list is given as JSON, or one element per argument.
        let listed = kinds(property) == ["array"] && !text.trim_start().starts_with('[');
        if listed {
            let element = value(text, &property["items"]).map_err(wrong)?;
            let list = object.entry(name).or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(element);
            }
        } else if object
            .insert(name.clone(), value(text, property).map_err(wrong)?)
            .is_some()
        {
            return Err(format!("{name}: is given twice"));
        }
    }
    Ok(object)
}

fn unknown(name: &str, schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let known: Vec<&str> = properties.map(|(name, _)| name.as_str()).collect();
    if known.is_empty() {
        return format!("{name}: the tool takes no arguments");
    }
    let known = known.join(", ");
    format!("{name}: the tool does not know it; it takes {known}")
}

/// The text as a value that the schema allows, or what the schema allows.
fn value(text: &str, schema: &Value) -> Result<Value, String> {
    let spelled = |choice: &&Value| plain(choice) == text;
    if let Some(choices) = schema["enum"].as_array() {
        let found = choices.iter().find(spelled).cloned();
        let all: Vec<String> = choices.iter().map(plain).collect();
        return found.ok_or_else(|| format!("one of {}", all.join(", ")));
    }
    let kinds = kinds(schema);
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    if kinds.is_empty() {
        return Ok(parsed.unwrap_or_else(|| Value::from(text)));
    }
    let fits = |value: &Value| kinds.iter().any(|kind| is(value, kind));
    match parsed.filter(|value| !value.is_string() && fits(value)) {
        Some(value) => Ok(value),
        None if kinds.iter().any(|kind| kind == "string") => Ok(Value::from(text)),
        None => {
            let named: Vec<&str> = kinds.iter().map(|kind| named(kind)).collect();
            Err(named.join(" or "))
        }
    }
}

pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The types that a schema allows; empty if it names none.
fn kinds(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().map(plain).collect(),
        _ => {
            let choices = ["anyOf", "oneOf"].into_iter();
            let choices = choices.flat_map(|name| items(&schema[name]));
            let each: Vec<Vec<String>> = choices.map(kinds).collect();
            if each.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            each.concat()
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

fn named(kind: &str) -> &str {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a JSON list",
        "object" => "a JSON object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn from(pairs: &[&str], schema: &Value) -> Result<Value, String> {
        let given: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        match read(&given).map_err(|failure| failure.to_string())? {
            TypedArguments::Pairs(pairs) => typed(&pairs, schema).map(Value::Object),
            TypedArguments::Whole(raw) => Ok(serde_json::from_str(raw.get()).unwrap()),
        }
    }

    #[test]
    fn k7_pairs_become_what_the_schema_says() {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {
            "text": {"type": "string"},
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "on": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "map": {"type": "object"},
            "maybe": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "level": {"enum": ["low", 2]},
            "any": {},
        }});
        for (pairs, wanted) in [
            (&["text=12"][..], json!({"text": "12"})),
            (&["text=a=b"], json!({"text": "a=b"})),
            (&["text="], json!({"text": ""})),
            (&["n=12", "x=1.5"], json!({"n": 12, "x": 1.5})),
            (&["on=true"], json!({"on": true})),
            (&["list=1", "list=2"], json!({"list": [1, 2]})),
            (&["list=[3]"], json!({"list": [3]})),
            (&["map={\"a\":1}"], json!({"map": {"a": 1}})),
            (&["maybe=null"], json!({"maybe": null})),
            (&["maybe=12"], json!({"maybe": "12"})),
            (&["either=12"], json!({"either": 12})),
            (&["either=twelve"], json!({"either": "twelve"})),
            (&["level=2"], json!({"level": 2})),
            (&["any=12"], json!({"any": 12})),
            (&["any=twelve"], json!({"any": "twelve"})),
            (&[], json!({})),
        ] {
            assert_eq!(from(pairs, &schema), Ok(wanted), "{pairs:?}");
        }
        for (pairs, told) in [
            (&["n=1.5"][..], "n: must be a whole number"),
            (&["on=yes"], "on: must be true or false"),
            (&["list=a"], "list: must be a whole number"),
            (&["map=[]"], "map: must be a JSON object"),
            (&["level=high"], "level: must be one of low, 2"),
            (
                &["txt=a"],
                "txt: the tool does not know it; it takes text, n",
            ),
            (&["n=1", "n=2"], "n: is given twice"),
            (&["text"], "`text` is no argument"),
            (&["=x"], "`=x` is no argument"),
        ] {
            let error = from(pairs, &schema).unwrap_err();
            assert!(error.contains(told), "{pairs:?}: {error}");
        }
    }

    #[test]
    fn k7_json_is_taken_as_it_is_or_refused_with_its_place() {
        let schema = Value::Null;
        assert_eq!(from(&[" {\"a\": 1}"], &schema), Ok(json!({"a": 1})));
        for (text, told) in [
            ("[1]", "must be a JSON object"),
            ("{\"a\": }", "line 1 column 7"),
            ("@/no/such/file", "/no/such/file: No such file"),
        ] {
            let error = from(&[text], &schema).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
