//! One request to the server's own endpoint, and its response: MCP of
//! 2026-07-28 over HTTP.

use std::time::Duration;

use http::{Method, Response};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::progress::ProgressLine;
use super::target::CallTarget;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::remote::{LARGEST, Remote};
use upstream::{Events, Headers, ResponseBody, StreamError, ToolHeaders, UpstreamCall};
use wire::{MODERN, Message, Outcome, RpcError, object};

/// Portway sends a heartbeat every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
const METHOD: &str = "tools/call";
/// What this client can answer.
const CAPABILITIES: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

pub(super) struct Exchange<'a> {
    pub remote: &'a Remote,
    pub target: &'a CallTarget,
    pub arguments: &'a RawValue,
    pub limit: Option<Duration>,
    pub verbose: u8,
    pub progress: ProgressLine,
    pub sent: u64,
}

/// The input that the server needs before it continues, or the answers to that.
#[derive(Default)]
pub(super) struct CallInput {
    pub members: Map<String, Value>,
    pub state: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(skip_serializing_if = "Map::is_empty")]
    input_responses: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a RawValue>,
}

impl Exchange<'_> {
    pub(super) async fn round(&mut self, answers: &CallInput) -> CliResult<Box<RawValue>> {
        let limit = self.limit;
        let server = self.target.server.clone();
        let work = async {
            let response = self.send(answers).await?;
            self.result(response).await
        };
        let outcome = match limit {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                Err(Failure::other(format!(
                    "no result from {server:?} within {limit:?} (--timeout): the call is cancelled"
                )))
            }),
        };
        self.progress.clear();
        outcome
    }

    async fn send(&mut self, answers: &CallInput) -> CliResult<Response<ResponseBody>> {
        self.sent += 1;
        let params = to_raw_value(&ToolCallParams {
            name: &self.target.name,
            arguments: self.arguments,
            input_responses: &answers.members,
            request_state: answers.state.as_deref(),
        });
        let params = params.map_err(Failure::other)?;
        let call = UpstreamCall {
            progress: true,
            capabilities: serde_json::from_str(CAPABILITIES).ok(),
            log_level: match self.verbose {
                0 => None,
                1 => Some("info"),
                _ => Some("debug"),
            },
            ..UpstreamCall::new(METHOD, SILENCE).params(Some(&params))
        };
        let body = upstream::modern_request(&call, self.sent).map_err(Failure::other)?;
        let headers = self.headers(&params)?;
        let sent = self
            .remote
            .send(Method::POST, &self.target.path, headers, body.into());
        self.quiet(sent).await?
    }

    /// The headers that repeat parts of the request, as the tool's schema says.
    fn headers(&self, params: &RawValue) -> CliResult<Headers> {
        let CallTarget { name, schema, .. } = self.target;
        let list = json!({"tools": [{"name": name, "inputSchema": schema}]});
        let tools = ToolHeaders::default();
        tools.learn(&to_raw_value(&list).map_err(Failure::other)?, |_| {});
        let mut headers = Headers::new();
        match tools.mirror(&mut headers, MODERN, METHOD, Some(name), Some(params)) {
            Ok(()) => Ok(headers),
            Err(error) => Err(Failure::other(format!(
                "the tool cannot be called: {error}"
            ))),
        }
    }

    async fn quiet<T>(&self, work: impl Future<Output = T>) -> CliResult<T> {
        let waited = tokio::time::timeout(SILENCE, work).await;
        waited.map_err(|_| Failure::unreachable(self.remote.url(), StreamError::Silent(SILENCE)))
    }

    async fn result(&mut self, response: Response<ResponseBody>) -> CliResult<Box<RawValue>> {
        let status = response.status();
        if !upstream::is_event_stream(response.headers()) {
            let body = self.quiet(self.remote.bytes(response)).await??;
            return match wire::outcome(&body) {
                Some(Outcome::Error(error)) => Err(refusal(&error)),
                Some(Outcome::Result(result)) if status.is_success() => {
                    Ok(object::raw(result.into()))
                }
                _ if status.is_success() => Err(self.remote.stranger()),
                _ => {
                    let said = serde_json::from_slice(&body).unwrap_or_default();
                    Err(Failure::refused(status, &said))
                }
            };
        }
        let from = self.remote.url().to_owned();
        let mut events = Events::new(response.into_body(), LARGEST, from);
        loop {
            let event = events.next_within(SILENCE).await;
            let event = event.map_err(|error| match error {
                StreamError::TooLong(_) => Failure::other(error),
                StreamError::Broken(_) => self.cut_off(&error.to_string()),
                StreamError::Silent(_) => Failure::unreachable(self.remote.url(), error),
            })?;
            let Some(event) = event else {
                return Err(self.cut_off("the stream ended before the result"));
            };
            if let Some(result) = self.message(&event.data)? {
                return Ok(result);
            }
        }
    }

    fn cut_off(&self, reason: &str) -> Failure {
        Failure::unreachable(self.remote.url(), format!("the call was cut off: {reason}"))
    }

    /// The result, if the message is the response; notifications are shown.
    fn message(&mut self, json: &[u8]) -> CliResult<Option<Box<RawValue>>> {
        match wire::parse_upstream(json) {
            Ok(Message::Response { outcome, .. }) => match outcome {
                Outcome::Result(result) => return Ok(Some(object::raw(result.into()))),
                Outcome::Error(error) => return Err(refusal(&error)),
            },
            Ok(Message::Notification { method, params }) => {
                let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok());
                let params: Value = params.unwrap_or_default();
                match &*method {
                    "notifications/progress" => self.progress.show(&params),
                    "notifications/message" if self.verbose > 0 => self.progress.log(&params),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(None)
    }
}

fn refusal(error: &RpcError) -> Failure {
    let data = match &error.data {
        Some(data) => format!("\n  {}", wire::compact(data).get()),
        None => String::new(),
    };
    Failure::other(format!("{} ({}){data}", error.message, error.code))
}

/// The input requests of a result that is not complete yet.
pub(super) fn asked(result: &RawValue) -> CliResult<Option<CallInput>> {
    let kind = object::member(result, "resultType").and_then(object::text);
    match kind.as_deref() {
        None | Some("complete") => return Ok(None),
        Some("input_required") => {}
        Some(other) => {
            return Err(Failure::other(format!(
                "the result is of a kind that is not known here: {other:?}"
            )));
        }
    }
    let [requests, state] = object::pick(result, ["inputRequests", "requestState"]);
    let requests = requests.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let state = state.filter(|raw| !object::is_null(raw));
    Ok(Some(CallInput {
        members: requests.unwrap_or_default(),
        state: state.map(ToOwned::to_owned),
    }))
}
