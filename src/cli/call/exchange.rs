//! One request to the server's own endpoint, and its response: MCP of
//! 2026-07-28 over HTTP.

use std::time::Duration;

use http::{Method, Response, header};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::progress::ProgressLine;
use super::target::CallTarget;
use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use upstream::ResponseBody;
use wire::header::{encode_value, param_headers, param_values};
use wire::{MODERN, object, sse};

/// Portway sends a heartbeat every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);
const LARGEST: usize = 64 * 1024 * 1024;
const METHOD: &str = "tools/call";
const TOKEN: &str = "portway-call";

pub(super) struct Exchange<'a> {
    pub remote: &'a Remote,
    pub target: &'a CallTarget,
    pub arguments: &'a RawValue,
    pub limit: Option<Duration>,
    pub verbose: u8,
    pub progress: ProgressLine,
    pub sent: u64,
}

/// The answers to the server's last input requests.
#[derive(Default)]
pub(super) struct InputAnswers {
    pub responses: Option<Map<String, Value>>,
    pub state: Option<Box<RawValue>>,
}

/// The input that the server needs before it continues.
pub(super) struct InputRequests {
    pub requests: Map<String, Value>,
    pub state: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct ToolCallRequest<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: ToolCallParams<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
struct ServerAnswer {
    method: Option<String>,
    params: Option<Value>,
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

impl Exchange<'_> {
    pub(super) async fn round(&mut self, answers: &InputAnswers) -> Result<Box<RawValue>, Failure> {
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

    async fn send(&mut self, answers: &InputAnswers) -> Result<Response<ResponseBody>, Failure> {
        self.sent += 1;
        let request = ToolCallRequest {
            jsonrpc: "2.0",
            id: self.sent,
            method: METHOD,
            params: ToolCallParams {
                name: &self.target.name,
                arguments: self.arguments,
                input_responses: answers.responses.as_ref(),
                request_state: answers.state.as_deref(),
                meta: meta(self.verbose),
            },
        };
        let body = serde_json::to_vec(&request).map_err(Failure::other)?;
        let mut head = self
            .remote
            .request(Method::POST, &self.target.path)
            .header(header::CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", METHOD)
            .header("mcp-name", &*encode_value(&self.target.name));
        for (name, value) in self.mirrored()? {
            head = head.header(name, value);
        }
        let sent = self.remote.send(head, body);
        self.quiet(sent).await?
    }

    /// The arguments that the tool's schema also mirrors in headers.
    fn mirrored(&self) -> Result<Vec<(String, String)>, Failure> {
        let schema = serde_json::value::to_raw_value(&self.target.schema);
        let headers = schema.ok().map(|schema| param_headers(&schema));
        match headers {
            Some(Ok(headers)) => Ok(param_values(&headers, Some(self.arguments))),
            Some(Err(error)) => Err(Failure::other(format!(
                "the tool cannot be called: {error}"
            ))),
            None => Ok(Vec::new()),
        }
    }

    async fn quiet<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let waited = tokio::time::timeout(SILENCE, work).await;
        waited.map_err(|_| {
            let what = format!("no sign of life for {} s", SILENCE.as_secs());
            Failure::unreachable(self.remote.url(), what)
        })
    }

    async fn result(&mut self, response: Response<ResponseBody>) -> Result<Box<RawValue>, Failure> {
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE);
        let streams = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !streams {
            let body = self.quiet(self.remote.bytes(response)).await??;
            if !status.is_success() {
                let said: Value = serde_json::from_slice(&body).unwrap_or_default();
                return Err(match said["error"]["code"].is_number() {
                    true => refusal(&said["error"]),
                    false => Failure::refused(status, &said),
                });
            }
            let found = self.message(&body)?;
            return found.ok_or_else(|| self.remote.stranger());
        }
        let mut decoder = sse::Decoder::new(LARGEST);
        let mut body = response.into_body();
        loop {
            let chunk = self.quiet(body.chunk()).await?;
            let chunk = chunk.map_err(|error| self.cut_off(&error.to_string()))?;
            let Some(chunk) = chunk else {
                return Err(self.cut_off("the stream ended before the result"));
            };
            let mut input = &chunk[..];
            while let Some(event) = decoder.next(&mut input).map_err(Failure::other)? {
                if let Some(result) = self.message(&event.data)? {
                    return Ok(result);
                }
            }
        }
    }

    fn cut_off(&self, reason: &str) -> Failure {
        Failure::unreachable(self.remote.url(), format!("the call was cut off: {reason}"))
    }

    /// The result, if the message is the response; notifications are shown.
    fn message(&mut self, json: &[u8]) -> Result<Option<Box<RawValue>>, Failure> {
        let Ok(message) = serde_json::from_slice::<ServerAnswer>(json) else {
            return Ok(None);
        };
        if let Some(error) = &message.error {
            return Err(refusal(error));
        }
        let params = message.params.unwrap_or_default();
        match message.method.as_deref() {
            Some("notifications/progress") => self.progress.show(&params),
            Some("notifications/message") if self.verbose > 0 => self.progress.log(&params),
            _ => {}
        }
        Ok(message.result)
    }
}

fn refusal(error: &Value) -> Failure {
    let text = error["message"].as_str().unwrap_or("no reason given");
    let data = match &error["data"] {
        Value::Null => String::new(),
        data => format!("\n  {data}"),
    };
    Failure::other(format!("{text} ({}){data}", error["code"]))
}

fn meta(verbose: u8) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {
            "name": "portway",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
        "progressToken": TOKEN,
    });
    let level = match verbose {
        0 => return meta,
        1 => "info",
        _ => "debug",
    };
    meta["io.modelcontextprotocol/logLevel"] = json!(level);
    meta
}

/// The input requests of a result that is not complete yet.
pub(super) fn asked(result: &RawValue) -> Result<Option<InputRequests>, Failure> {
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
    let requests = object::member(result, "inputRequests");
    let requests = requests.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let state = object::member(result, "requestState").filter(|raw| !object::is_null(raw));
    Ok(Some(InputRequests {
        requests: requests.unwrap_or_default(),
        state: state.map(ToOwned::to_owned),
    }))
}
