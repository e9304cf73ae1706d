use http::Method;
use serde_json::{Value, json};

use super::find;
use super::show::given;
use super::{
    BindArgs, ChangeArgs, CreateArgs, PatternArgs, RemoveEntryArgs, RotateKeyArgs, SwitchArgs,
    UnbindArgs,
};
use crate::cli::Environment;
use crate::cli::failure::{CommandResult, Failure};
use crate::cli::servers::{items, text};
use crate::cli::terminal::{confirm, in_one_line, is_attended, note};
use lab::counted;

/// The owner of the records that the admin token creates.
const ADMIN: &str = "admin";

fn called(entry: &Value) -> String {
    let id = text(entry, "mcp_instance_id");
    format!("entry {id} {}", in_one_line(text(entry, "name")))
}

/// Adds advice for the usual mistakes: two tools with the same name, and a
/// misspelt one.
fn advised(failure: Failure) -> Failure {
    match failure {
        Failure::Refused { message, .. } if message.contains("two bound tools") => Failure::usage(
            format!("{message}: give one of them another name with --as"),
        ),
        Failure::Refused { message, .. } if message.contains("allow_missing: true") => {
            Failure::usage(message.replace("allow_missing: true", "--allow-missing"))
        }
        failure => failure,
    }
}

pub(super) async fn create(args: &CreateArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let bindings = find::bindings(&remote, ADMIN, &args.tools, &args.names, args.allow_missing)
        .await
        .map_err(advised)?;
    let tools = bindings.len();
    let mut new = json!({"name": args.name, "bindings": bindings});
    if let Some(expires) = args.expires {
        new["expires_at"] = json!(expires);
    }
    let PatternArgs { allow, deny } = &args.patterns;
    let filtered = !allow.is_empty() || !deny.is_empty();
    if filtered {
        new["filter"] = json!({"allow": allow, "deny": deny});
    }
    let path = format!("{}/with_bindings", find::ENTRIES);
    let answer = remote.post(&path, &new).await.map_err(advised)?;
    if args.ask.json {
        out.json(&answer);
    } else {
        let patterns = if filtered { " and its patterns" } else { "" };
        let tools = counted(tools, "tool");
        out.line(&format!(
            "{}: made, with {tools}{patterns}",
            called(&answer)
        ));
        given(&answer, &remote, &mut out);
    }
    if tools == 0 && allow.is_empty() {
        note(&format!(
            "it has no tools yet: `portway entries bind {} SERVER:TOOL` (SERVER:* for all)",
            text(&answer, "mcp_instance_id")
        ));
    }
    out.done(true)
}

pub(super) async fn change(args: &ChangeArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.one.ask.open(environment)?;
    let entry = find::entry(&remote, &args.one.entry).await?;
    let mut change = json!({});
    if let Some(name) = &args.name {
        change["name"] = json!(name);
    }
    let PatternArgs { allow, deny } = &args.patterns;
    if args.no_filter {
        change["filter"] = Value::Null;
    } else if !allow.is_empty() || !deny.is_empty() {
        // A list that is not given keeps its patterns.
        let patterns = |given: &[String], member: &str| match given {
            [] => json!(items(&entry["filter"][member])),
            given => json!(given),
        };
        let (allow, deny) = (patterns(allow, "allow"), patterns(deny, "deny"));
        change["filter"] = json!({"allow": allow, "deny": deny});
    }
    if change == json!({}) {
        let text = "nothing to change: give --name, --allow, --deny or --no-filter";
        return Err(Failure::usage(text));
    }
    let path = find::path(&entry);
    let answer = remote.ask(Method::PATCH, &path, Some(&change)).await?;
    let line = format!("{}: changed", called(&answer));
    out.answer(args.one.ask.json, &answer, &line);
    out.done(true)
}

pub(super) async fn rotate(args: &RotateKeyArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.one.ask.open(environment)?;
    let entry = find::entry(&remote, &args.one.entry).await?;
    let question = format!(
        "Give {} a new key? The old one opens nothing then.",
        called(&entry)
    );
    // A script that rotates keys is not asked for confirmation.
    if is_attended() && !confirm(&question, args.yes)? {
        return out.done(false);
    }
    let mut body = json!({});
    if let Some(expires) = args.expires {
        body["expires_at"] = json!(expires);
    }
    let path = format!("{}/rotate_key", find::path(&entry));
    let answer = remote.post(&path, &body).await?;
    if args.one.ask.json {
        out.json(&answer);
    } else {
        out.line(&format!(
            "{}: has a new key, and the old one opens nothing any more",
            called(&answer)
        ));
        given(&answer, &remote, &mut out);
    }
    out.done(true)
}

pub(super) async fn bind(args: &BindArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let entry = find::entry(&remote, &args.entry).await?;
    let owner = text(&entry, "user_id");
    let bindings = find::bindings(&remote, owner, &args.tools, &args.names, args.allow_missing)
        .await
        .map_err(advised)?;
    let path = format!("{}/bindings", find::path(&entry));
    let body = json!({"bindings": bindings});
    let answer = remote.post(&path, &body).await.map_err(advised)?;
    let line = format!(
        "{}: bound {}",
        called(&entry),
        counted(bindings.len(), "tool")
    );
    out.answer(args.ask.json, &answer, &line);
    out.done(true)
}

pub(super) async fn unbind(args: &UnbindArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.ask.open(environment)?;
    let entry = find::entry(&remote, &args.entry).await?;
    let bound = find::bound(&remote, &entry, &args.tools).await?;
    for tool in &bound {
        let path = binding(&entry, tool);
        remote.ask(Method::DELETE, &path, None).await?;
    }
    let line = format!(
        "{}: took {} from it",
        called(&entry),
        counted(bound.len(), "tool")
    );
    out.answer(args.ask.json, &json!({"unbound": bound}), &line);
    out.done(true)
}

fn binding(entry: &Value, tool: &Value) -> String {
    format!("{}/bindings/{}", find::path(entry), tool["tool_id"])
}

pub(super) async fn switch(
    args: &SwitchArgs,
    environment: &Environment,
    on: bool,
) -> CommandResult {
    let (remote, mut out) = args.one.ask.open(environment)?;
    let entry = find::entry(&remote, &args.one.entry).await?;
    let body = json!({"status": on});
    let word = if on { "enabled" } else { "disabled" };
    if args.tools.is_empty() {
        let path = find::path(&entry);
        let answer = remote.ask(Method::PATCH, &path, Some(&body)).await?;
        let line = format!("{}: {word}", called(&entry));
        out.answer(args.one.ask.json, &answer, &line);
        return out.done(true);
    }
    let mut answers = Vec::new();
    for tool in find::bound(&remote, &entry, &args.tools).await? {
        let path = binding(&entry, &tool);
        answers.push(remote.ask(Method::PATCH, &path, Some(&body)).await?);
    }
    let line = format!(
        "{}: {} {word}",
        called(&entry),
        counted(answers.len(), "tool")
    );
    out.answer(args.one.ask.json, &Value::Array(answers), &line);
    out.done(true)
}

pub(super) async fn rm(args: &RemoveEntryArgs, environment: &Environment) -> CommandResult {
    let (remote, mut out) = args.one.ask.open(environment)?;
    let entry = find::entry(&remote, &args.one.entry).await?;
    let question = format!("Remove {}? Its key opens nothing then.", called(&entry));
    if !confirm(&question, args.yes)? {
        return out.done(false);
    }
    remote
        .ask(Method::DELETE, &find::path(&entry), None)
        .await?;
    let line = format!("{}: removed", called(&entry));
    out.answer(
        args.one.ask.json,
        &json!({"id": entry["id"], "removed": true}),
        &line,
    );
    out.done(true)
}
