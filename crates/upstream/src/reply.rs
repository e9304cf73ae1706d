//! The classification of an HTTP response: a message, a stream of messages,
//! nothing, or one of the many failures.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use super::client::{BodyError, KnownHeader, RawResponse, ResponseBody};
use super::endpoint::Endpoint;
use super::events::Events;
use super::{ConnectionLimits, UpstreamError};
use wire::{Outcome, RpcError, code};

/// The limit for reading the body of a refusal, to find its reason.
const REFUSAL: usize = 256 << 10;

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

pub(crate) enum HttpReply {
    Message(Bytes),
    Stream(Box<Events>),
    /// Accepted, without a message.
    Nothing(StatusCode),
}

/// The reason why an HTTP exchange gave no result. Finer than
/// [`UpstreamError`]: it decides what is known about the server's era, and
/// whether the request ran. The texts name the server and hold no secret.
#[derive(Clone, Debug)]
pub enum ExchangeFailure {
    /// The server did not get the request.
    Unsent(String),
    /// The connection broke, and the request may have arrived.
    Broken(String),
    /// 401 or 403.
    Login {
        text: String,
        of_session: bool,
    },
    /// 3xx.
    Moved(String),
    /// 5xx without a JSON-RPC error.
    Outage(String),
    /// 4xx without a JSON-RPC error.
    Refused {
        status: StatusCode,
        text: String,
        /// The server's text mentions a session.
        of_session: bool,
    },
    /// A JSON-RPC error, with any status.
    Rpc {
        status: StatusCode,
        error: RpcError,
    },
    /// Success, but not with the expected content.
    Odd(String),
    Other(UpstreamError),
}

impl From<UpstreamError> for ExchangeFailure {
    fn from(error: UpstreamError) -> ExchangeFailure {
        match error {
            UpstreamError::Rpc(error) => ExchangeFailure::Rpc {
                status: StatusCode::OK,
                error,
            },
            other => ExchangeFailure::Other(other),
        }
    }
}

impl From<ExchangeFailure> for UpstreamError {
    fn from(failure: ExchangeFailure) -> UpstreamError {
        match failure {
            ExchangeFailure::Unsent(text) | ExchangeFailure::Outage(text) => {
                UpstreamError::Unreachable(text)
            }
            ExchangeFailure::Broken(text) => UpstreamError::Lost(text),
            ExchangeFailure::Login { text, .. } => UpstreamError::Login(text),
            ExchangeFailure::Moved(text)
            | ExchangeFailure::Refused { text, .. }
            | ExchangeFailure::Odd(text) => UpstreamError::Protocol(text),
            ExchangeFailure::Rpc { error, .. } => UpstreamError::Rpc(error),
            ExchangeFailure::Other(error) => error,
        }
    }
}

impl ExchangeFailure {
    /// Whether the server refused a request because it does not know the
    /// request's session; such a request did not run. The protocol defines 404;
    /// servers copied from early examples send 400 or 401 and name it.
    pub fn session_lost(&self) -> bool {
        match self {
            ExchangeFailure::Rpc { error, .. } if error.code == code::METHOD_NOT_FOUND => false,
            ExchangeFailure::Rpc {
                status: StatusCode::BAD_REQUEST,
                error,
            } => of_session(&error.message),
            ExchangeFailure::Refused {
                status: StatusCode::BAD_REQUEST,
                of_session,
                ..
            }
            | ExchangeFailure::Login { of_session, .. } => *of_session,
            ExchangeFailure::Rpc { status, .. } | ExchangeFailure::Refused { status, .. } => {
                *status == StatusCode::NOT_FOUND
            }
            _ => false,
        }
    }

    /// Whether a retry of the same request may soon succeed.
    pub fn passing(&self) -> bool {
        match self {
            ExchangeFailure::Unsent(_)
            | ExchangeFailure::Broken(_)
            | ExchangeFailure::Outage(_) => true,
            ExchangeFailure::Rpc { status, .. } => status.is_server_error(),
            ExchangeFailure::Refused { status, .. } => matches!(
                *status,
                StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            ),
            _ => false,
        }
    }
}

impl Endpoint {
    /// Classifies a response by its head, and reads it unless it is a stream.
    pub(crate) async fn read(
        &self,
        response: RawResponse,
        limits: &ConnectionLimits,
    ) -> Result<HttpReply, ExchangeFailure> {
        let status = response.status;
        if status.is_redirection() {
            return Err(self.moved(&response));
        }
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        if let Some(coding) = coding(&response) {
            return Err(ExchangeFailure::Odd(format!(
                "{self} answered in the coding {:?}, which was not asked for",
                self.quote(&coding)
            )));
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(HttpReply::Nothing(status));
        }
        let kind = kind(response.header(KnownHeader::ContentType));
        if kind == EVENT_STREAM {
            let events = Events::new(response.body, limits.message, self.to_string());
            return Ok(HttpReply::Stream(Box::new(events)));
        }
        let is_message = kind.is_empty() || kind == JSON || kind.ends_with("+json");
        let odd = (!is_message).then(|| self.quote(&kind));
        let body = self.body(response.body, limits.response).await?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(HttpReply::Nothing(status));
        }
        let Some(kind) = odd else {
            return Ok(HttpReply::Message(body));
        };
        Err(ExchangeFailure::Odd(format!(
            "{self} answered with {kind:?} instead of an MCP message; is this the right URL? It begins: {}",
            self.quote(&String::from_utf8_lossy(&body))
        )))
    }

    async fn body(&self, body: ResponseBody, limit: usize) -> Result<Bytes, ExchangeFailure> {
        match body.collect(limit).await {
            Ok(whole) => Ok(whole),
            Err(BodyError::TooLarge) => {
                Err(ExchangeFailure::Other(UpstreamError::TooLarge { limit }))
            }
            Err(error) => Err(ExchangeFailure::Broken(format!(
                "{self}: the answer broke off: {}",
                self.quote(&error.to_string())
            ))),
        }
    }

    fn moved(&self, response: &RawResponse) -> ExchangeFailure {
        let status = response.status;
        let target = match self.redirect_host(response) {
            Some(host) => format!(" to {host}"),
            None => String::new(),
        };
        ExchangeFailure::Moved(format!(
            "{self} redirects{target} ({status}); redirects are not followed: \
             put the new address into the definition"
        ))
    }

    async fn refusal(&self, response: RawResponse) -> ExchangeFailure {
        let status = response.status;
        // The reason is useful, but not required.
        let body = match coding(&response) {
            None => self.body(response.body, REFUSAL).await.unwrap_or_default(),
            Some(_) => Bytes::new(),
        };
        let login = status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN;
        let words = match wire::outcome(&body) {
            Some(Outcome::Error(error)) if !login => return ExchangeFailure::Rpc { status, error },
            Some(Outcome::Error(error)) => error.message,
            _ => String::from_utf8_lossy(&body).into_owned(),
        };
        let of_session = of_session(&words);
        let words = match self.quote(&words) {
            words if words.is_empty() => words,
            words => format!(": {words}"),
        };
        if login {
            let text = format!("{self} {} ({status}{words})", self.login_advice(status));
            return ExchangeFailure::Login { text, of_session };
        }
        let text = format!("{self} answered {status}{words}");
        match status.is_server_error() {
            true => ExchangeFailure::Outage(text),
            false => ExchangeFailure::Refused {
                status,
                text,
                of_session,
            },
        }
    }

    fn login_advice(&self, status: StatusCode) -> &'static str {
        match (status, self.has_login()) {
            (StatusCode::UNAUTHORIZED, false) => {
                "wants a login; give its definition an Authorization header"
            }
            (StatusCode::UNAUTHORIZED, true) => {
                "wants another login; check the Authorization header of its definition"
            }
            (_, false) => "refuses us; it may want an Authorization header in its definition",
            (_, true) => "refuses us; check what the Authorization header of its definition may do",
        }
    }
}

/// Whether a response is a stream of events.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    kind(value.map(HeaderValue::as_bytes)) == EVENT_STREAM
}

/// The media type without its parameters; empty if there is none.
fn kind(content_type: Option<&[u8]>) -> Cow<'_, str> {
    let text = str::from_utf8(content_type.unwrap_or_default()).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    match essence.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(essence.to_ascii_lowercase()),
        false => Cow::Borrowed(essence),
    }
}

/// The content coding, if there is one.
fn coding(response: &RawResponse) -> Option<String> {
    let text = response.header(KnownHeader::ContentEncoding)?;
    let text = str::from_utf8(text).unwrap_or("?");
    let text = text.trim().to_ascii_lowercase();
    (!text.is_empty() && text != "identity").then_some(text)
}

fn of_session(words: &str) -> bool {
    words.to_ascii_lowercase().contains("session")
}
