//! Messages that clients post. The body alone decides the era; the headers are
//! compared with it.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::value::RawValue;

use super::accept::{Accept, Unclear, single};
use super::legacy::SESSION;
use super::reply::{accepted, json};
use super::{McpApi, legacy, modern};
use crate::error::{ApiError, Code};
use crate::json::read_body;
use gateway::{Caller, ClientRequest};
use wire::message::{Fault, Malformed, is_batch};
use wire::meta::RequestParams;
use wire::{Era, Message, RpcError, code, era};

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

pub(crate) async fn message(
    State(mcp): State<McpApi>,
    caller: Caller,
    request: Request,
) -> Response {
    let (Parts { headers, .. }, body) = request.into_parts();
    mcp.post(&caller, &headers, read_body(body)).await
}

impl McpApi {
    /// Responds to the message in `body`.
    pub(crate) async fn post(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        body: impl Future<Output = Result<Bytes, ApiError>>,
    ) -> Response {
        let accept = Accept::of(headers);
        if !accept.json && !accept.events {
            return not_acceptable().into_response();
        }
        let body = match body.await {
            Ok(body) => body,
            Err(error) => return error.into_response(),
        };
        let post = Post {
            mcp: self,
            caller,
            headers,
            accept,
        };
        let answer = if is_batch(&body) {
            legacy::batch(post, &body).await
        } else {
            match wire::parse(&body) {
                Ok(message) => post.route(message).await,
                Err(malformed) => {
                    if let Some(id) = malformed.deep_answer() {
                        legacy::unreadable_answer(post, id, &malformed);
                    }
                    Err(McpRefusal::from(malformed))
                }
            }
        };
        answer.unwrap_or_else(McpRefusal::into_response)
    }
}

/// A request to one of the endpoints, without its body.
#[derive(Clone, Copy)]
pub(super) struct Post<'a> {
    pub mcp: &'a McpApi,
    pub caller: &'a Caller,
    pub headers: &'a HeaderMap,
    pub accept: Accept,
}

impl<'a> Post<'a> {
    async fn route(self, message: Message<'_>) -> Result<Response, McpRefusal> {
        let named = self.named_version();
        let says_modern =
            matches!(named, Ok(Some(version)) if Era::of(version) == Some(Era::Modern));
        match message {
            Message::Request { id, method, params } => {
                let refused = |refusal: McpRefusal| refusal.of(id.raw());
                let found = RequestParams::read(params).map_err(|e| refused(e.into()))?;
                let incoming = ClientRequest {
                    id: id.raw(),
                    method: &method,
                    params,
                    found,
                };
                if found.is_modern() || says_modern {
                    let envelope = found.require().map_err(|e| refused(e.into()))?;
                    let answer = modern::request(self, incoming, envelope).await;
                    return answer.map_err(refused);
                }
                let version = self.known_version().map_err(refused)?;
                let answer = legacy::request(self, version, incoming).await;
                answer.map_err(refused)
            }
            // Without a session a notification has no effect: it is harmless in
            // either era.
            Message::Notification { .. } if says_modern => Ok(accepted()),
            Message::Notification { .. } if !self.headers.contains_key(SESSION) => {
                self.known_version()?;
                Ok(accepted())
            }
            message => {
                self.known_version()?;
                legacy::told(self, message)
            }
        }
    }

    fn named_version(&self) -> Result<Option<&'a str>, Unclear> {
        single(self.headers, &VERSION)
    }

    /// A legacy client may omit the version, but must not send an unknown one.
    pub(super) fn known_version(&self) -> Result<Option<&'static str>, McpRefusal> {
        let known = match self.named_version() {
            Ok(None) => return Ok(None),
            Ok(Some(version)) => era::known_legacy(version),
            Err(Unclear) => None,
        };
        known.map(Some).ok_or_else(|| {
            let known = wire::LEGACY.join(", ");
            let text = format!("MCP-Protocol-Version is none of {known}");
            McpRefusal::new(code::INVALID_REQUEST, text)
        })
    }
}

/// Why a message is refused: a JSON-RPC error, and its status.
#[derive(Debug)]
pub(super) struct McpRefusal {
    pub status: StatusCode,
    pub error: RpcError,
    pub id: Option<Box<RawValue>>,
}

impl McpRefusal {
    /// A refusal with 400, as most are.
    pub(super) fn new(code: i64, message: impl Into<String>) -> McpRefusal {
        McpRefusal::with(StatusCode::BAD_REQUEST, RpcError::new(code, message))
    }

    pub(super) fn with(status: StatusCode, error: RpcError) -> McpRefusal {
        McpRefusal {
            status,
            error,
            id: None,
        }
    }

    pub(super) fn of(mut self, id: &RawValue) -> McpRefusal {
        self.id.get_or_insert_with(|| id.to_owned());
        self
    }
}

impl From<Malformed> for McpRefusal {
    fn from(malformed: Malformed) -> McpRefusal {
        McpRefusal {
            status: StatusCode::BAD_REQUEST,
            error: RpcError::from(&malformed),
            id: malformed.id().map(ToOwned::to_owned),
        }
    }
}

impl From<Fault> for McpRefusal {
    fn from(fault: Fault) -> McpRefusal {
        Malformed::from(fault).into()
    }
}

impl IntoResponse for McpRefusal {
    fn into_response(self) -> Response {
        json(self.status, wire::error(self.id.as_deref(), &self.error))
    }
}

pub(super) fn not_acceptable() -> ApiError {
    ApiError::new(
        Code::NotAcceptable,
        "the answer is application/json or text/event-stream; Accept must name them",
    )
}
