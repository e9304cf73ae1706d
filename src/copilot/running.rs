//! A source of tools: a gateway in another process, over its REST API.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use github_copilot_sdk::ToolResultExpanded;
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use url::Url;

use super::source::ToolListing;
use super::{ToolCatalog, ToolSource, ToolSourceError};
use upstream::{HttpClient, ResponseBody};
use wire::sse::Decoder;

/// The limit for a response.
const LARGEST: usize = 64 * 1024 * 1024;
/// An event is at most a record of one server, except for the first event.
const LARGEST_EVENT: usize = 16 * 1024 * 1024;
/// The pause between two checks when there are no events.
const LOOK: Duration = Duration::from_secs(2);
/// Heartbeats are more frequent: after this time the connection is dead.
const QUIET: Duration = Duration::from_secs(60);

/// A gateway in another process. The admin token gives all tools, the key of an
/// entry the tools of the entry.
#[derive(Clone)]
pub struct RemotePortway {
    base: Url,
    key: HeaderValue,
    http: HttpClient,
}

impl fmt::Debug for RemotePortway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemotePortway({})", self.url())
    }
}

impl RemotePortway {
    /// Sends no request yet.
    pub fn new(url: &str, key: &str) -> Result<RemotePortway, ToolSourceError> {
        let plain = |url: &Url| {
            let named = url.has_host() && url.username().is_empty() && url.password().is_none();
            named && matches!(url.scheme(), "http" | "https") && url.query().is_none()
        };
        let base = Url::parse(url).ok().filter(plain);
        // The text before an `@` may be a password.
        let shown = || url.rsplit('@').next().unwrap_or_default().to_owned();
        let base = base.ok_or_else(|| ToolSourceError::BadUrl(shown()))?;
        let mut key =
            HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| ToolSourceError::BadKey)?;
        key.set_sensitive(true);
        let http = HttpClient::new(&base)
            .map_err(|error| ToolSourceError::NoCertificates(error.to_string()))?;
        Ok(RemotePortway { base, key, http })
    }

    fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// A URL below the base, with escaped segments.
    fn address(&self, path: &[&str], filter: Option<&str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(["api", "mcp"]).extend(path);
        }
        url.query_pairs_mut().append_pair("format", "copilot");
        if let Some(filter) = filter {
            url.query_pairs_mut().append_pair("filter", filter);
        }
        url
    }

    async fn ask(
        &self,
        request: http::request::Builder,
        body: Option<&Value>,
    ) -> Result<Response<ResponseBody>, ToolSourceError> {
        let request = request.header(header::AUTHORIZATION, self.key.clone());
        let request = match body {
            Some(_) => request.header(header::CONTENT_TYPE, "application/json"),
            None => request,
        };
        let body = body.map(ToString::to_string).unwrap_or_default();
        let request = request.body(Bytes::from(body));
        let request = request.map_err(|error| self.unexpected(error))?;
        let answer = self.http.request(request).await;
        let answer = answer.map_err(|error| self.unreachable(error.root_cause()))?;
        match answer.status() {
            StatusCode::NOT_MODIFIED => Ok(answer),
            status if status.is_success() => Ok(answer),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ToolSourceError::Denied {
                url: self.url().to_owned(),
            }),
            status => Err(self.refusal(status, answer).await),
        }
    }

    async fn refusal(&self, status: StatusCode, answer: Response<ResponseBody>) -> ToolSourceError {
        let body: Value = match self.read(answer).await {
            Ok(body) => body,
            Err(_) if status == StatusCode::NOT_FOUND => {
                return self.unexpected("it knows no such path");
            }
            Err(error) => return error,
        };
        let message = body["error"]["message"].as_str();
        let message = message.unwrap_or("no reason given").to_owned();
        match status {
            StatusCode::NOT_FOUND => ToolSourceError::NotFound(message),
            status => ToolSourceError::Refused {
                status: status.as_u16(),
                message,
            },
        }
    }

    async fn read<T: DeserializeOwned>(
        &self,
        answer: Response<ResponseBody>,
    ) -> Result<T, ToolSourceError> {
        let body = answer.into_body().collect(LARGEST).await;
        let body = body.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&body).map_err(|error| self.unexpected(error))
    }

    fn unreachable(&self, reason: impl fmt::Display) -> ToolSourceError {
        ToolSourceError::Unreachable {
            url: self.url().to_owned(),
            reason: reason.to_string(),
        }
    }

    fn unexpected(&self, reason: impl fmt::Display) -> ToolSourceError {
        ToolSourceError::Unexpected {
            url: self.url().to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Notifies on every event that may change the tools, until the events end.
    /// Only the admin may subscribe.
    async fn listen(&self, news: &Notify) -> Result<(), ToolSourceError> {
        let mut url = self.address(&["events"], None);
        url.set_query(None);
        let asked = self.ask(Request::get(url.as_str()), None);
        let asked = tokio::time::timeout(QUIET, asked).await;
        let answer = asked.map_err(|_| ToolSourceError::Silent(QUIET))??;
        let mut body = answer.into_body();
        let mut events = Decoder::new(LARGEST_EVENT);
        while let Ok(chunk) = tokio::time::timeout(QUIET, body.chunk()).await {
            let Some(chunk) = chunk.map_err(|error| self.unexpected(error))? else {
                break;
            };
            let taken = events.push(&chunk, |event| match event.name.as_deref() {
                Some("call_started" | "call_ended") => {}
                // On heartbeats too: not every change of a list is an event.
                _ => news.notify_one(),
            });
            taken.map_err(|error| self.unexpected(error))?;
        }
        Ok(())
    }
}

#[async_trait]
impl ToolSource for RemotePortway {
    async fn catalog(
        &self,
        filter: Option<&str>,
        known: Option<&str>,
    ) -> Result<Option<ToolCatalog>, ToolSourceError> {
        let url = self.address(&["tools"], filter);
        let mut request = Request::get(url.as_str());
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let answer = self.ask(request, None).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let tag = answer.headers().get(header::ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let list: ToolListing = self.read(answer).await?;
        Ok(Some(ToolCatalog {
            tag: tag.unwrap_or(list.hash),
            tools: list.tools,
        }))
    }

    async fn call(
        &self,
        filter: Option<&str>,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResultExpanded, ToolSourceError> {
        let url = self.address(&["tools", name, "call"], filter);
        let body = json!({ "arguments": arguments });
        let answer = self.ask(Request::post(url.as_str()), Some(&body)).await?;
        self.read(answer).await
    }

    async fn watch(&self, news: &Notify) {
        let mut may_listen = true;
        loop {
            if may_listen {
                // The stream ends with the gateway, and is refused with the key
                // of an entry.
                let ended = self.listen(news).await;
                may_listen = !matches!(ended, Err(ToolSourceError::Denied { .. }));
            }
            tokio::time::sleep(LOOK).await;
            news.notify_one();
        }
    }
}
