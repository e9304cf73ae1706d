//! Requests of programs that do not speak MCP. They are handled like those of a
//! modern client without capabilities.

use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};

use super::{Caller, Client, ClientRequest, Gateway, Reply, View, ability};
use wire::object::{empty, member, pick, text};
use wire::result::{ResultType, result_type, to_legacy_result};
use wire::{Era, LEGACY, MODERN, code};

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
        let reply = self.reply(self.view(caller), caller, method, params);
        let reply = reply.await;
        let body = reply.body.whole();
        let message: Option<&RawValue> = serde_json::from_slice(&body).ok();
        let [result, error] = pick(message.unwrap_or(empty()), ["result", "error"]);
        let Some(result) = result else {
            return Err(ask_error(&reply, error.unwrap_or(empty())));
        };
        if result_type(result) != ResultType::Complete {
            let text = "the server requires input from its client first";
            return Err(AskError::Asks(text.to_owned()));
        }
        let plain = to_legacy_result(method, result, LEGACY[0], false);
        let plain = plain.map_err(|error| AskError::Failed(error.to_string()))?;
        Ok(plain.into_owned())
    }

    /// The reply to a client without capabilities.
    pub(super) async fn reply(
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
        let incoming = ClientRequest {
            id: &id,
            method,
            params: Some(params),
        };
        let replies = self.request_in(view, caller, &client, incoming);
        replies.last().await
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
