//! A call of a tool for a program that does not speak MCP (SPEC D10). It is
//! handled like a call of a modern client without capabilities; it always ends
//! with an outcome that a model can read.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::format::arguments::{self, InvalidArguments};
use super::format::{Format, ToolOutcome, keys};
use super::{Caller, Gateway, Reply, View, naming};
use wire::object::{empty, is_object, pick, set_member, text};
use wire::result::{ResultType, result_type};

/// Bytes of an error's `data` that are passed on.
const DETAILS: usize = 4096;

/// Similar names that an unknown name's error suggests.
const NEAR: usize = 3;

impl Gateway {
    /// Calls a tool by any of its names; `None` if there is no such tool. An
    /// `Err` in place of arguments is the reason that they cannot be read.
    /// Dropping the future cancels the call at its server.
    pub async fn call_tool(
        &self,
        view: Arc<View>,
        caller: &Caller,
        name: &str,
        format: Format,
        arguments: Result<&RawValue, &str>,
    ) -> Option<ToolOutcome> {
        let Some((visible, target)) = view.tool_called(name) else {
            return missing(caller, &view, name).map(ToolOutcome::Failure);
        };
        let invalid = |reason: &dyn Display| {
            let text = format!("Invalid arguments for {visible}: {reason}");
            Some(ToolOutcome::Failure(text))
        };
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(reason) => return invalid(&reason),
        };
        let schema = view.input_schema(target);
        let restored = match format {
            Format::Anthropic => keys::restored(schema, arguments),
            _ => None,
        };
        let arguments = restored.as_deref().unwrap_or(arguments);
        if let Err(reason) = check(schema, arguments) {
            return invalid(&reason);
        }
        // Progress restarts the time limit, and servers send it only to a
        // client with a token.
        let params = serde_json::json!({"name": visible, "_meta": {"progressToken": 1}});
        let params = to_raw_value(&params).expect("text serialises into memory");
        let params = set_member(&params, "arguments", arguments);
        let reply = self.reply(view, caller, "tools/call", &params).await;
        Some(outcome(reply))
    }
}

impl View {
    /// The outcome for a model that calls a tool which does not exist.
    pub fn unknown_tool(&self, name: &str) -> ToolOutcome {
        let near = self.near(name, NEAR);
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", near.join(", "))
        };
        ToolOutcome::Failure(format!("there is no tool {name:?}{hint}"))
    }
}

/// The reason that a tool which the caller should have is missing; `None` if
/// the caller should not have it.
fn missing(caller: &Caller, view: &View, name: &str) -> Option<String> {
    if let Some(grant) = caller.scope.grant() {
        let meant = |own: &str| own == name || naming::fitted(own, naming::is_allowed) == name;
        let granted = grant.tools.iter().any(|tool| meant(&tool.name));
        if granted || grant.filter.is_none() {
            return granted.then(|| format!("{name}: it is not available now"));
        }
    }
    let absent = view.absent(name).map(|server| &**server);
    let server = absent.or_else(|| view.absent_server(name))?;
    Some(format!("{name}: server {server:?} is not connected"))
}

/// Checks the arguments against the tool's schema. The server validates what
/// cannot be checked here.
fn check(schema: Option<&RawValue>, arguments: &RawValue) -> Result<(), InvalidArguments> {
    let value = |raw: &RawValue| -> Option<Value> { serde_json::from_str(raw.get()).ok() };
    match (schema.and_then(value), value(arguments)) {
        (Some(schema), Some(arguments)) => arguments::check(&schema, &arguments),
        _ => Ok(()),
    }
}

fn outcome(reply: Reply) -> ToolOutcome {
    let body = reply.body.whole();
    let message: Option<&RawValue> = serde_json::from_slice(&body).ok();
    let [result, error] = pick(message.unwrap_or(empty()), ["result", "error"]);
    match result {
        Some(result) if reply.late => ToolOutcome::Timeout(result_text(result)),
        Some(result) if result_type(result) == ResultType::Complete => {
            ToolOutcome::Result(result.to_owned())
        }
        Some(_) => ToolOutcome::Failure(
            "The tool wants to ask the user or the client something first, which cannot be \
             answered here."
                .to_owned(),
        ),
        None => ToolOutcome::Failure(error.map(error_text).unwrap_or_default()),
    }
}

/// The text of a result that Portway itself made.
fn result_text(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// An error with the server's own details (SPEC D5).
fn error_text(error: &RawValue) -> String {
    let [message, data] = pick(error, ["message", "data"]);
    let message = message.and_then(text).unwrap_or_default().into_owned();
    match data.filter(|data| data.get().len() <= DETAILS) {
        Some(data) if is_object(data) || data.get().starts_with(['[', '"']) => {
            format!("{message}\n{}", data.get())
        }
        _ => message,
    }
}
