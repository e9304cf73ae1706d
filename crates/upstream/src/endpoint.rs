//! One address of a remote server: the client of its origin, the configured
//! headers, and a form of the address without its secrets.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Method, Response, Uri};
use indexmap::IndexMap;
use url::Url;

use super::client::{
    ClientError, Headers, HttpClient, KnownHeader, RawResponse, ResponseBody, causes, request_uri,
};
use super::lines::quote;
use super::permit::{Permit, WriteGuard};
use super::reply::ExchangeFailure;
use super::{LogSink, UpstreamError};
use config::Redactor;

mod headers;

/// The address that takes a server's messages.
#[derive(Clone)]
pub struct Endpoint {
    client: HttpClient,
    url: Url,
    uri: Uri,
    /// The headers of every request.
    fixed: Headers,
    has_login: bool,
    shown: String,
    redactor: Arc<Redactor>,
}

impl Endpoint {
    pub fn new(
        url: &Url,
        headers: &IndexMap<String, String>,
        log: &LogSink,
        redactor: Arc<Redactor>,
    ) -> Result<Endpoint, UpstreamError> {
        let own = headers::fixed(url, headers, log);
        Endpoint::with(url, &own, redactor)
    }

    /// An endpoint that adds these headers to every request.
    pub fn with(
        url: &Url,
        own: &HeaderMap,
        redactor: Arc<Redactor>,
    ) -> Result<Endpoint, UpstreamError> {
        let url = bare(url);
        let shown = redactor.redact(&shown(&url)).into_owned();
        let bad_url = |error: ClientError| match error {
            ClientError::NoCertificates(_) => UpstreamError::Unreachable(error.to_string()),
            ClientError::BadUrl => UpstreamError::Protocol(format!("{shown}: {error}")),
        };
        let client = HttpClient::new(&url).map_err(bad_url)?;
        let mut fixed = Headers::new();
        fixed.add(&header::HOST, &client.host);
        fixed.add_all(own);
        Ok(Endpoint {
            uri: request_uri(&url).map_err(bad_url)?,
            client,
            shown,
            url,
            has_login: own.contains_key(header::AUTHORIZATION),
            fixed,
            redactor,
        })
    }

    /// Another address of the same server, which the server itself sent.
    pub fn at(&self, reference: &str) -> Result<Endpoint, ExchangeFailure> {
        let odd = |what: &str| ExchangeFailure::Odd(format!("{self} {what}"));
        let target = self
            .url
            .join(reference)
            .map_err(|_| odd("names an address for messages that is none"))?;
        // Our headers, with credentials, go only to the origin in the definition.
        if target.origin() != self.url.origin() {
            let host = target.host_str().unwrap_or("nowhere");
            return Err(odd(&format!(
                "wants its messages sent to another origin ({host})"
            )));
        }
        let url = bare(&target);
        Ok(Endpoint {
            uri: request_uri(&url).map_err(|error| odd(&error.to_string()))?,
            url,
            ..self.clone()
        })
    }

    /// Sends one request; the caller reads the response's body. Dropping the
    /// future, or the response, closes the connection.
    pub async fn send(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
    ) -> Result<Response<ResponseBody>, ExchangeFailure> {
        let sent = self.send_permitted(method, headers, body, None).await;
        sent.map(RawResponse::into_response)
    }

    /// The same, if the permit is still valid once there is a connection.
    pub(crate) async fn send_permitted(
        &self,
        method: Method,
        headers: &Headers,
        body: Bytes,
        permit: Option<&Arc<dyn Permit>>,
    ) -> Result<RawResponse, ExchangeFailure> {
        let connection = self.client.connect().await.map_err(|error| {
            let causes = self.quote(&causes(&*error));
            ExchangeFailure::Unsent(format!("{self} could not be reached: {causes}"))
        })?;
        let passing = WriteGuard::enter(permit)?;
        let headers = [&self.fixed, headers];
        let response = self
            .client
            .exchange(connection, &method, &self.uri, headers, &body, passing);
        response.await.map_err(|error| {
            let causes = self.quote(&causes(&error));
            ExchangeFailure::Broken(format!("{self}: {causes}"))
        })
    }

    /// The host of a redirect's target, if the response has one.
    pub(crate) fn redirect_host(&self, response: &RawResponse) -> Option<String> {
        let location = std::str::from_utf8(response.header(KnownHeader::Location)?).ok()?;
        let target = self.url.join(location).ok()?;
        let host = self.quote(target.host_str()?);
        Some(match target.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    }

    pub(crate) fn has_login(&self) -> bool {
        self.has_login
    }

    /// A server's text in the form that is safe in an error.
    pub fn quote(&self, text: &str) -> String {
        quote(text, &self.redactor)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The URL without its login and fragment, which are not sent.
fn bare(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // These fail only for addresses without a host.
    let _ = (url.set_username(""), url.set_password(None));
    url
}

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}
