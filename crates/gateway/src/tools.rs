//! Requests of programs that do not speak MCP. They are handled like those of a
//! modern client without capabilities. A call of a tool (SPEC D10) always ends
//! with an outcome that a model can read.

use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::format::arguments::{self, InvalidArguments};
use super::format::{Format, ToolOutcome, keys};
use super::{Caller, Client, ClientRequest, Gateway, Reply, View, ability, naming};
use wire::object::{empty, is_object, member, pick, set_member, text};
use wire::result::{ResultType, result_type, to_legacy_result};
use wire::{Era, LEGACY, MODERN, code};

/// Bytes of an error's `data` that are passed on.
const DETAILS: usize = 4096;

/// Similar names that an unknown name's error suggests.
const NEAR: usize = 3;

/// Why a request has no result.
#[derive(Debug)]
pub enum AskError {
    /// There is no such resource or prompt.
    Missing(String),
    /// The server refused the params.
    Invalid(String),
    /// The server requires input from its client first.
    Asks(String),
    /// The server is not connected.
    Away(String),
    Failed(String),
}

impl Gateway {
    /// The result of a request, without the members that only MCP clients
    /// need. Dropping the future cancels the request at its server.
    pub async fn ask(
        &self,
        caller: &Caller,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, AskError> {
        let reply = self.reply(self.view(caller), caller, method, params).await;
        let body = reply.body.whole();
        let result = match outcome_in(&body) {
            Ok(result) => result,
            Err(error) => return Err(ask_error(&reply, error)),
        };
        if result_type(result.get()) != ResultType::Complete {
            let text = "the server requires input from its client first";
            return Err(AskError::Asks(text.to_owned()));
        }
        let plain = to_legacy_result(method, result.get(), LEGACY[0], false);
        let plain = plain.map_err(|error| AskError::Failed(error.to_string()))?;
        let plain = RawValue::from_string(plain.into_owned());
        plain.map_err(|error| AskError::Failed(error.to_string()))
    }

    /// The reply to a client without capabilities.
    async fn reply(
        &self,
        view: Arc<View>,
        caller: &Caller,
        method: &str,
        params: &RawValue,
    ) -> Reply {
        let id = to_raw_value(&1).expect("a number serialises into memory");
        let client = Client {
            era: Era::Modern,
            version: MODERN,
            capabilities: ability::no_capabilities(),
            log_level: None,
            session: None,
        };
        let incoming = ClientRequest::new(&id, method, Some(params));
        let replies = self.request_in(view, caller, &client, incoming);
        replies.last().await
    }

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
    match outcome_in(&reply.body.whole()) {
        Ok(result) if reply.late => ToolOutcome::Timeout(result_text(result)),
        Ok(result) if result_type(result.get()) == ResultType::Complete => {
            ToolOutcome::Result(result.to_owned())
        }
        Ok(_) => ToolOutcome::Failure(
            "The tool wants to ask the user or the client something first, which cannot be \
             answered here."
                .to_owned(),
        ),
        Err(error) => ToolOutcome::Failure(error_text(error)),
    }
}

/// The result in a reply's body, or the error.
fn outcome_in(body: &[u8]) -> Result<&RawValue, &RawValue> {
    let message: Option<&RawValue> = serde_json::from_slice(body).ok();
    let [result, error] = pick(message.unwrap_or(empty()), ["result", "error"]);
    result.ok_or(error.unwrap_or(empty()))
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

fn ask_error(reply: &Reply, error: &RawValue) -> AskError {
    let [message, data] = pick(error, ["message", "data"]);
    let message = message.and_then(text).unwrap_or_default().into_owned();
    let names_uri = data.is_some_and(|data| member(data, "uri").is_some());
    match (reply.error, reply.relayed) {
        (Some(code::MISSING_CAPABILITY), _) => AskError::Asks(message),
        (Some(code::INTERNAL), false) => AskError::Away(message),
        (Some(_), false) => AskError::Missing(message),
        (Some(code::INVALID_PARAMS), true) if names_uri => AskError::Missing(message),
        (Some(code::INVALID_PARAMS), true) => AskError::Invalid(message),
        _ => AskError::Failed(message),
    }
}
