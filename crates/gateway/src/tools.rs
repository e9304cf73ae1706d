//! A call of a tool for a program that speaks no MCP (SPEC D10). It goes the
//! way of a modern client's call that can be asked nothing; what comes of it
//! is told in any case, as a result or in words.

use std::fmt::Display;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::format::{Format, Outcome, arguments, keys};
use super::{Caller, Gateway, Reply, View, naming};
use wire::object::{empty, is_object, pick, set_member, text};
use wire::result::{ResultType, result_type};

/// Bytes of what a server says beside an error's message that are passed on.
const DETAILS: usize = 4096;

/// Names that are held out to who calls a tool that is not there.
const NEAR: usize = 3;

/// How a call ended.
#[derive(Debug)]
pub enum Called {
    Result(Box<RawValue>),
    Failed(String),
    Late(String),
}

impl Called {
    pub fn outcome(&self) -> Outcome<'_> {
        match self {
            Called::Result(result) => Outcome::Result(result),
            Called::Failed(text) => Outcome::Failure(text),
            Called::Late(text) => Outcome::Timeout(text),
        }
    }
}

impl Gateway {
    /// Calls a tool by any of its names; `None` if there is no such tool.
    /// Dropping it gives the call up: its server is told.
    pub async fn call_tool(
        &self,
        caller: &Caller,
        name: &str,
        format: Format,
        arguments: &RawValue,
    ) -> Option<Called> {
        let view = self.view(caller);
        let Some((visible, target)) = view.tool_called(name) else {
            return missing(caller, &view, name).map(Called::Failed);
        };
        let schema = view.input_schema(target);
        let restored = match format {
            Format::Anthropic => keys::restored(schema, arguments),
            _ => None,
        };
        let arguments = restored.as_deref().unwrap_or(arguments);
        if let Some(text) = unfit(visible, schema, arguments) {
            return Some(Called::Failed(text));
        }
        Some(self.called(caller, visible, arguments).await)
    }

    /// As [`Gateway::call_tool`], where the arguments could not be read.
    pub fn refused_call(&self, caller: &Caller, name: &str, why: &str) -> Option<Called> {
        let view = self.view(caller);
        let visible = match view.tool_called(name) {
            Some((visible, _)) => visible,
            None => return missing(caller, &view, name).map(Called::Failed),
        };
        Some(Called::Failed(invalid(visible, why)))
    }

    /// What a model is told that calls a tool which is not there.
    pub fn no_tool(&self, caller: &Caller, name: &str) -> Called {
        let near = self.view(caller).near(name, NEAR);
        let hint = match near.is_empty() {
            true => String::new(),
            false => format!("; did you mean {}?", near.join(", ")),
        };
        Called::Failed(format!("there is no tool {name:?}{hint}"))
    }

    async fn called(&self, caller: &Caller, name: &str, arguments: &RawValue) -> Called {
        // Progress restarts the time limit, and is told only to who asks.
        let params = serde_json::json!({"name": name, "_meta": {"progressToken": 1}});
        let params = to_raw_value(&params).expect("text serialises into memory");
        let params = set_member(&params, "arguments", arguments);
        ended(self.reply(caller, "tools/call", &params).await)
    }
}

/// Why a tool that should be there is not; `None` if it should not.
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

/// What is wrong with the arguments. What cannot be read here is the server's
/// to judge.
fn unfit(name: &str, schema: Option<&RawValue>, arguments: &RawValue) -> Option<String> {
    let schema: Value = serde_json::from_str(schema?.get()).ok()?;
    let arguments: Value = serde_json::from_str(arguments.get()).ok()?;
    let wrong = arguments::check(&schema, &arguments).err()?;
    Some(invalid(name, wrong))
}

fn invalid(name: &str, why: impl Display) -> String {
    format!("Invalid arguments for {name}: {why}")
}

fn ended(reply: Reply) -> Called {
    let body = reply.body.whole();
    let message: Option<&RawValue> = serde_json::from_slice(&body).ok();
    let [result, error] = pick(message.unwrap_or(empty()), ["result", "error"]);
    match (result, error) {
        (Some(result), _) if reply.late => Called::Late(said(result)),
        (Some(result), _) => match result_type(result) {
            ResultType::Complete => Called::Result(result.to_owned()),
            _ => Called::Failed(
                "The tool wants to ask the user or the client something first, which cannot be \
                 answered here."
                    .to_owned(),
            ),
        },
        (None, error) => Called::Failed(error.map(told).unwrap_or_default()),
    }
}

/// The text of a result that we made ourselves.
fn said(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// An error with the server's own details (SPEC D5).
fn told(error: &RawValue) -> String {
    let [message, data] = pick(error, ["message", "data"]);
    let message = message.and_then(text).unwrap_or_default().into_owned();
    match data.filter(|data| data.get().len() <= DETAILS) {
        Some(data) if is_object(data) || data.get().starts_with(['[', '"']) => {
            format!("{message}\n{}", data.get())
        }
        _ => message,
    }
}
