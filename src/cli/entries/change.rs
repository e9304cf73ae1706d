use std::collections::BTreeMap;
use std::process::ExitCode;

use http::Method;
use serde_json::{Value, json};

use super::find;
use super::show::given;
use super::{
    BindArgs, ChangeArgs, CreateArgs, RemoveEntryArgs, RotateKeyArgs, SwitchArgs, UnbindArgs,
};
use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use crate::cli::servers::text;
use crate::cli::terminal::in_one_line;
use crate::cli::terminal::{Terminal, confirm, is_attended, note};

type Environment = BTreeMap<String, String>;

/// The owner of the records that the admin token creates.
const ADMIN: &str = "admin";

fn called(entry: &Value) -> String {
    let id = text(entry, "mcp_instance_id");
    format!("entry {id} {}", in_one_line(text(entry, "name")))
}

fn count(tools: usize) -> String {
    let s = if tools == 1 { "" } else { "s" };
    format!("{tools} tool{s}")
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

pub(super) async fn create(
    args: &CreateArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let bindings = find::bindings(&remote, ADMIN, &args.tools, &args.names, args.allow_missing)
        .await
        .map_err(advised)?;
    let tools = bindings.len();
    let mut new = json!({"name": args.name, "bindings": bindings});
    if let Some(expires) = args.expires {
        new["expires_at"] = json!(expires);
    }
    let filtered = !args.allow.is_empty() || !args.deny.is_empty();
    if filtered {
        new["filter"] = json!({"allow": args.allow, "deny": args.deny});
    }
    let path = format!("{}/with_bindings", find::ENTRIES);
    let answer = remote.post(&path, &new).await.map_err(advised)?;
    if args.ask.json {
        out.json(&answer);
    } else {
        let patterns = if filtered { " and its patterns" } else { "" };
        let tools = count(tools);
        out.line(&format!(
            "{}: made, with {tools}{patterns}",
            called(&answer)
        ));
        given(&answer, &remote, &mut out);
    }
    if tools == 0 && args.allow.is_empty() {
        note(&format!(
            "it has no tools yet: `portway entries bind {} SERVER:TOOL` (SERVER:* for all)",
            text(&answer, "mcp_instance_id")
        ));
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) async fn change(
    args: &ChangeArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let mut change = json!({});
    if let Some(name) = &args.name {
        change["name"] = json!(name);
    }
    if args.no_filter {
        change["filter"] = Value::Null;
    } else if !args.allow.is_empty() || !args.deny.is_empty() {
        // A list that is not given keeps its patterns.
        let patterns = |given: &[String], member: &str| match given.is_empty() {
            true => entry["filter"][member]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            false => given.iter().map(|pattern| json!(pattern)).collect(),
        };
        let (allow, deny) = (patterns(&args.allow, "allow"), patterns(&args.deny, "deny"));
        change["filter"] = json!({"allow": allow, "deny": deny});
    }
    if change == json!({}) {
        let text = "nothing to change: give --name, --allow, --deny or --no-filter";
        return Err(Failure::usage(text));
    }
    let path = find::path(&entry);
    let answer = remote.ask(Method::PATCH, &path, Some(&change)).await?;
    match args.ask.json {
        true => out.json(&answer),
        false => out.line(&format!("{}: changed", called(&answer))),
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) async fn rotate(
    args: &RotateKeyArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let question = format!(
        "Give {} a new key? The old one opens nothing then.",
        called(&entry)
    );
    // A script that rotates keys is not asked for confirmation.
    if is_attended() && !confirm(&question, args.yes)? {
        return out.done(ExitCode::FAILURE);
    }
    let body = match args.expires {
        Some(expires) => json!({"expires_at": expires}),
        None => json!({}),
    };
    let path = format!("{}/rotate_key", find::path(&entry));
    let answer = remote.post(&path, &body).await?;
    if args.ask.json {
        out.json(&answer);
    } else {
        out.line(&format!(
            "{}: has a new key, and the old one opens nothing any more",
            called(&answer)
        ));
        given(&answer, &remote, &mut out);
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) async fn bind(args: &BindArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let owner = text(&entry, "user_id");
    let bindings = find::bindings(&remote, owner, &args.tools, &args.names, args.allow_missing)
        .await
        .map_err(advised)?;
    let path = format!("{}/bindings", find::path(&entry));
    let body = json!({"bindings": bindings});
    let answer = remote.post(&path, &body).await.map_err(advised)?;
    if args.ask.json {
        out.json(&answer);
    } else {
        let tools = count(bindings.len());
        out.line(&format!("{}: bound {tools}", called(&entry)));
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) async fn unbind(
    args: &UnbindArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let bound = find::bound(&remote, &entry, &args.tools).await?;
    for tool in &bound {
        let path = binding(&entry, tool);
        remote.ask(Method::DELETE, &path, None).await?;
    }
    if args.ask.json {
        out.json(&json!({"unbound": bound}));
    } else {
        let tools = count(bound.len());
        out.line(&format!("{}: took {tools} from it", called(&entry)));
    }
    out.done(ExitCode::SUCCESS)
}

fn binding(entry: &Value, tool: &Value) -> String {
    format!("{}/bindings/{}", find::path(entry), tool["tool_id"])
}

pub(super) async fn switch(
    args: &SwitchArgs,
    environment: &Environment,
    on: bool,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let body = json!({"status": on});
    let word = if on { "enabled" } else { "disabled" };
    if args.tools.is_empty() {
        let path = find::path(&entry);
        let answer = remote.ask(Method::PATCH, &path, Some(&body)).await?;
        match args.ask.json {
            true => out.json(&answer),
            false => out.line(&format!("{}: {word}", called(&entry))),
        }
        return out.done(ExitCode::SUCCESS);
    }
    let mut answers = Vec::new();
    for tool in find::bound(&remote, &entry, &args.tools).await? {
        let path = binding(&entry, &tool);
        answers.push(remote.ask(Method::PATCH, &path, Some(&body)).await?);
    }
    match args.ask.json {
        true => out.json(&Value::Array(answers)),
        false => {
            let tools = count(answers.len());
            out.line(&format!("{}: {tools} {word}", called(&entry)));
        }
    }
    out.done(ExitCode::SUCCESS)
}

pub(super) async fn rm(
    args: &RemoveEntryArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let remote = Remote::new(&args.ask.remote, environment)?;
    let mut out = Terminal::new(environment);
    let entry = find::entry(&remote, &args.entry).await?;
    let question = format!("Remove {}? Its key opens nothing then.", called(&entry));
    if !confirm(&question, args.yes)? {
        return out.done(ExitCode::FAILURE);
    }
    remote
        .ask(Method::DELETE, &find::path(&entry), None)
        .await?;
    match args.ask.json {
        true => out.json(&json!({"id": entry["id"], "removed": true})),
        false => out.line(&format!("{}: removed", called(&entry))),
    }
    out.done(ExitCode::SUCCESS)
}
