//! An elicitation of a server, shown as a form on the terminal.

use std::io::Write;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::arguments::plain;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::servers::{items, text};
use crate::cli::terminal::{note, safe};

/// Invalid answers to one prompt before the form is cancelled.
const TRIES: usize = 5;

/// The answer to a server when there is no terminal for the question.
pub(super) fn declined(server: &str, params: &Value) -> Value {
    note(&format!(
        "the server {server} asks: {}\ndeclined, for there is no terminal to ask on",
        text(params, "message")
    ));
    json!({"action": "decline"})
}

pub(super) async fn ask(server: &str, params: &Value) -> CliResult<Value> {
    // Indented, so that no line of it looks like a line of Portway.
    let message = text(params, "message").replace('\n', "\n  ");
    say(&format!("The server {server} asks: {message}"));
    let question = match text(params, "mode") {
        "url" => {
            say(&format!("  {}", text(params, "url")));
            "Open this address yourself, if you trust it. Done? [y]es, [n]o, [c]ancel: "
        }
        _ => "Answer? [y]es, [n]o, [c]ancel: ",
    };
    for _ in 0..TRIES {
        let answer = line(question).await?.map(|line| line.to_lowercase());
        return Ok(match answer.as_deref() {
            Some("y" | "yes") if text(params, "mode") == "url" => json!({"action": "accept"}),
            Some("y" | "yes") => match filled(&params["requestedSchema"]).await? {
                Some(content) => json!({"action": "accept", "content": content}),
                None => json!({"action": "cancel"}),
            },
            Some("n" | "no") => json!({"action": "decline"}),
            Some("c" | "cancel") | None => json!({"action": "cancel"}),
            Some(_) => continue,
        });
    }
    Ok(json!({"action": "cancel"}))
}

/// The fields one after the other; `None` if the user cancelled.
async fn filled(schema: &Value) -> CliResult<Option<Map<String, Value>>> {
    let mut content = Map::new();
    let required = items(&schema["required"]);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required.iter().any(|one| one == name);
        match field_of(name, field, needed).await? {
            FieldAnswer::Given(value) => {
                content.insert(name.clone(), value);
            }
            FieldAnswer::LeftOut => {}
            FieldAnswer::GaveUp => return Ok(None),
        }
    }
    Ok(Some(content))
}

enum FieldAnswer {
    Given(Value),
    LeftOut,
    GaveUp,
}

async fn field_of(name: &str, field: &Value, needed: bool) -> CliResult<FieldAnswer> {
    let prompt = prompt(name, field, needed);
    for _ in 0..TRIES {
        let Some(given) = line(&prompt).await? else {
            return Ok(FieldAnswer::GaveUp);
        };
        match (given.as_str(), &field["default"]) {
            ("", Value::Null) if needed => say("  an answer is needed; Ctrl-D cancels"),
            ("", Value::Null) => return Ok(FieldAnswer::LeftOut),
            ("", default) => return Ok(FieldAnswer::Given(default.clone())),
            (given, _) => match read(given, field) {
                Ok(value) => return Ok(FieldAnswer::Given(value)),
                Err(wanted) => say(&format!("  must be {wanted}")),
            },
        }
    }
    Ok(FieldAnswer::GaveUp)
}

fn prompt(name: &str, field: &Value, needed: bool) -> String {
    let mut prompt = match text(field, "title") {
        "" => name.to_owned(),
        title => title.to_owned(),
    };
    match text(field, "description") {
        "" => {}
        description => prompt += &format!(" - {description}"),
    }
    let choices = choices(field);
    if !choices.is_empty() {
        let named = choices.iter().enumerate().map(|(at, (value, title))| {
            let value = plain(value);
            match title {
                Some(title) if *title != value => format!("\n  {}) {title}", at + 1),
                _ => format!("\n  {}) {value}", at + 1),
            }
        });
        prompt += &named.collect::<String>();
        prompt += match text(field, "type") {
            "array" => "\nnumbers, with commas between",
            _ => "\nwhich",
        };
    } else if field["type"] == "boolean" {
        prompt += " (y/n)";
    }
    match &field["default"] {
        Value::Null if needed => prompt += ": ",
        Value::Null => prompt += " (may be left out): ",
        default => prompt += &format!(" [{}]: ", plain(default)),
    }
    prompt
}

/// The values to choose from, with their titles.
fn choices(field: &Value) -> Vec<(Value, Option<String>)> {
    let holder = match text(field, "type") {
        "array" => &field["items"],
        _ => field,
    };
    if let Some(values) = holder["enum"].as_array() {
        let titles = &holder["enumNames"];
        let title = |at: usize| titles[at].as_str().map(str::to_owned);
        let numbered = values.iter().cloned().enumerate();
        return numbered.map(|(at, value)| (value, title(at))).collect();
    }
    let titled = holder["oneOf"].as_array().or(holder["anyOf"].as_array());
    let title = |one: &Value| one["title"].as_str().map(str::to_owned);
    let each = titled.into_iter().flatten();
    each.map(|one| (one["const"].clone(), title(one))).collect()
}

/// An answer as a value that the schema allows, or what the schema allows.
fn read(given: &str, field: &Value) -> Result<Value, String> {
    let choices = choices(field);
    let chosen = |given: &str| {
        let by_number = given.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let by_number = by_number.and_then(|at| choices.get(at));
        let by_name = || {
            let named = |(value, title): &&(Value, Option<String>)| {
                plain(value) == given || title.as_deref() == Some(given)
            };
            choices.iter().find(named)
        };
        // The answer `2` selects the choice named 2 before the second choice.
        let found = by_name().or(by_number).map(|(value, _)| value.clone());
        found.ok_or_else(|| format!("one of 1 to {}", choices.len()))
    };
    match text(field, "type") {
        "array" => given.split(',').map(|one| chosen(one.trim())).collect(),
        _ if !choices.is_empty() => chosen(given),
        "boolean" => match given.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err("y or n".into()),
        },
        "integer" => {
            let number: Result<i64, _> = given.parse();
            number.map(Value::from).map_err(|_| "a whole number".into())
        }
        "number" => number(given).ok_or_else(|| "a number".into()),
        _ => fits(given, field).map(|()| json!(given)),
    }
}

fn number(given: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(given).ok()?;
    value.is_number().then_some(value)
}

fn fits(given: &str, field: &Value) -> Result<(), String> {
    let length = given.chars().count() as u64;
    match (field["minLength"].as_u64(), field["maxLength"].as_u64()) {
        (Some(least), _) if length < least => Err(format!("at least {least} characters long")),
        (_, Some(most)) if length > most => Err(format!("at most {most} characters long")),
        _ => Ok(()),
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", safe(text));
}

/// One line of input; `None` at its end. A thread of its own reads: the read
/// may still block when the program exits, and must not delay the exit.
async fn line(prompt: &str) -> CliResult<Option<String>> {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{}", safe(prompt));
    let _ = stderr.flush();
    let (send, receive) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = send.send(read.map(|length| (length > 0).then_some(line)));
    });
    match receive.await {
        Ok(Ok(line)) => Ok(line.map(|line| line.trim().to_owned())),
        Ok(Err(error)) => Err(Failure::other(format!("cannot read the answer: {error}"))),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_answers_become_what_the_form_says() {
        let env = json!({"type": "string", "oneOf": [
            {"const": "dev", "title": "Development"}, {"const": "2", "title": "Two"}]});
        let many = json!({"type": "array", "items": {"enum": ["a", "b", "c"]}});
        for (given, field, wanted) in [
            ("x", json!({"type": "string"}), json!("x")),
            ("12", json!({"type": "integer"}), json!(12)),
            ("1.5", json!({"type": "number"}), json!(1.5)),
            ("Y", json!({"type": "boolean"}), json!(true)),
            ("no", json!({"type": "boolean"}), json!(false)),
            ("1", env.clone(), json!("dev")),
            ("Development", env.clone(), json!("dev")),
            ("2", env.clone(), json!("2")),
            ("1, c", many.clone(), json!(["a", "c"])),
        ] {
            assert_eq!(read(given, &field), Ok(wanted), "{given}");
        }
        for (given, field) in [
            ("x", json!({"type": "integer"})),
            ("x", json!({"type": "number"})),
            ("maybe", json!({"type": "boolean"})),
            ("3", env),
            ("1,9", many),
            ("ab", json!({"type": "string", "minLength": 3})),
            ("abcd", json!({"type": "string", "maxLength": 3})),
        ] {
            assert!(read(given, &field).is_err(), "{given}");
        }
    }

    #[test]
    fn k7_a_prompt_says_what_may_be_answered() {
        let field = json!({"type": "boolean", "title": "Sure?", "default": true});
        assert_eq!(prompt("sure", &field, true), "Sure? (y/n) [true]: ");
        let field = json!({"type": "string", "description": "Who"});
        assert_eq!(
            prompt("name", &field, false),
            "name - Who (may be left out): "
        );
        let field = json!({"enum": ["a", "b"]});
        assert_eq!(prompt("one", &field, true), "one\n  1) a\n  2) b\nwhich: ");
    }
}
