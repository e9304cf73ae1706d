//! Relays entries whose MCP service is another Portway (`MCP_SERVICE_URL`, SPEC
//! E6): the guard has found the entry here, its key goes there as `X-API-KEY`,
//! and bodies pass both ways unchanged. Of the client's headers only those that
//! describe the request are relayed, so none of its credentials can be.

mod announcement;
mod body;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use upstream::{ClientError, HttpClient, ResponseBody, SendError};
use url::Url;

use super::error::{ApiError, Code, nothing_there};
use super::json::read_body;
use super::mcp;

/// A client that accepts events gets some long before this, if only a comment.
const HEAD: Duration = Duration::from_secs(60);
/// A client that accepts only JSON waits for the whole call.
const WHOLE: Duration = Duration::from_secs(3600);

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Headers with this prefix are part of the protocol, in both directions.
const PROTOCOL: &str = "mcp-";
const ASKED: [HeaderName; 6] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
const ANSWERED: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::CACHE_CONTROL,
    header::ALLOW,
    header::RETRY_AFTER,
    HeaderName::from_static("x-accel-buffering"),
];

#[derive(Clone)]
pub struct Relay(Arc<RelayState>);

struct RelayState {
    client: HttpClient,
    /// The URL above `/mcp`, `/sse` and `/messages`, without a final slash.
    base: String,
    max_response: usize,
    closing: CancellationToken,
}

impl Relay {
    /// `service` is the other Portway, or its `/mcp`.
    pub fn new(
        service: &Url,
        max_response: usize,
        closing: CancellationToken,
    ) -> Result<Relay, ClientError> {
        let mut base = service.clone();
        base.set_query(None);
        base.set_fragment(None);
        // Credentials in it would not be sent, and could be shown.
        let _ = (base.set_username(""), base.set_password(None));
        let base = base.as_str().trim_end_matches('/');
        let base = base.strip_suffix("/mcp").unwrap_or(base).to_owned();
        Ok(Relay(Arc::new(RelayState {
            client: HttpClient::new(service)?,
            base,
            max_response,
            closing,
        })))
    }
}

type Relayed = Result<Response, ApiError>;

pub(super) async fn message(State(relay): State<Relay>, request: Request) -> Relayed {
    let place = with_filter("mcp", request.uri());
    relay.pass(request, &place).await
}

/// A filter that narrows the entry is passed on; nothing else of the query is.
fn with_filter(place: &str, asked: &Uri) -> String {
    let query = asked.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    match pairs.find(|(name, _)| name == "filter") {
        Some((name, filter)) => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            let query = query.append_pair(&name, &filter).finish();
            format!("{place}?{query}")
        }
        None => place.to_owned(),
    }
}

pub(super) async fn sse_message(State(relay): State<Relay>, request: Request) -> Relayed {
    let query = request.uri().query().unwrap_or_default();
    let place = format!("messages?{query}");
    relay.pass(request, &place).await
}

/// The old transport: the URL it announces is one of ours.
pub(super) async fn open_sse(State(relay): State<Relay>, request: Request) -> Relayed {
    let here = mcp::beside(request.uri(), "messages");
    let place = with_filter("sse", request.uri());
    let response = relay.pass(request, &place).await?;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    Ok(response.map(|body| announcement::rewritten(body, here)))
}

impl Relay {
    async fn pass(&self, request: Request, place: &str) -> Relayed {
        let (head, body) = request.into_parts();
        let key = mcp::key_of(&head.uri).ok_or_else(nothing_there)?;
        let mut key = HeaderValue::from_str(&key).map_err(|_| nothing_there())?;
        key.set_sensitive(true);
        let takes_events = mcp::takes_events(&head.headers);
        let patience = if takes_events { HEAD } else { WHOLE };
        let uri: Uri = format!("{}/{place}", self.0.base)
            .parse()
            .map_err(|_| ApiError::bad_request("the query cannot be read"))?;
        let mut request = http::Request::new(read_body(body).await?);
        *request.method_mut() = head.method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        keep(&head.headers, &ASKED, headers);
        headers.insert(API_KEY, key);
        let sent = tokio::time::timeout(patience, self.0.client.request(request));
        match sent.await {
            Ok(Ok(response)) => self.back(response),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => {
                let text = "the MCP service did not answer in time";
                Err(ApiError::new(Code::Timeout, text))
            }
        }
    }

    fn back(&self, response: http::Response<ResponseBody>) -> Relayed {
        let (head, body) = response.into_parts();
        let status = head.status;
        match status {
            // The service knows a change to the entry that we have not seen.
            StatusCode::UNAUTHORIZED => {
                warn!("the MCP service does not take the key of an entry");
                return Err(nothing_there());
            }
            // A redirect is not followed: the key is for this service alone.
            StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                return Err(odd(status));
            }
            _ if status.is_redirection() || status.is_informational() => return Err(odd(status)),
            _ => {}
        }
        let length = body.length();
        if length.is_some_and(|length| length > self.0.max_response as u64) {
            let text = "the MCP service answers with more than PORTWAY_MAX_RESPONSE";
            return Err(ApiError::new(Code::BadGateway, text));
        }
        let events = head
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let body = if events {
            body::endless(body, self.0.closing.clone())
        } else {
            body::whole(body, self.0.max_response)
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        keep(&head.headers, &ANSWERED, headers);
        if let Some(length) = length.filter(|_| !events) {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        Ok(response)
    }
}

fn keep(from: &HeaderMap, named: &[HeaderName], to: &mut HeaderMap) {
    for (name, value) in from {
        if name.as_str().starts_with(PROTOCOL) || named.contains(name) {
            to.append(name, value.clone());
        }
    }
}

fn odd(status: StatusCode) -> ApiError {
    ApiError::new(
        Code::BadGateway,
        format!("the MCP service answers with status {}", status.as_u16()),
    )
}

fn failed(error: &SendError) -> ApiError {
    let answer = match error {
        SendError::Connect(_) => ApiError::unavailable("the MCP service cannot be reached"),
        SendError::Exchange(_) => {
            ApiError::new(Code::BadGateway, "the MCP service ended the connection")
        }
    };
    answer.with_cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e6_the_service_is_named_with_or_without_its_path() {
        let base = |url: &str| {
            let relay = Relay::new(&url.parse().unwrap(), 1, CancellationToken::new());
            relay.unwrap().0.base.clone()
        };
        assert_eq!(base("http://a:1"), "http://a:1");
        assert_eq!(base("http://a:1/mcp"), "http://a:1");
        assert_eq!(base("http://a:1/mcp/?x=y"), "http://a:1");
        assert_eq!(base("http://u:p@a:1/below/mcp"), "http://a:1/below");
    }

    #[test]
    fn g3_no_credential_of_the_client_goes_along() {
        let mut from = HeaderMap::new();
        for name in [
            "authorization",
            "cookie",
            "x-api-key",
            "connection",
            "te",
            "upgrade",
            "proxy-authorization",
            "origin",
            "host",
            "accept",
            "mcp-session-id",
            "mcp-param-region",
        ] {
            from.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        let mut to = HeaderMap::new();
        keep(&from, &ASKED, &mut to);
        let mut kept: Vec<_> = to.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["accept", "mcp-param-region", "mcp-session-id"]);
    }
}
