//! Streamable HTTP from 2026-07-28 on: no state, but headers that say what
//! the body says.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::exchange::HttpExchange;
use super::{ExchangeResult, HttpShared, VERSION};
use crate::client::Headers;
use crate::peer::{RequestEncoder, empty_object};
use crate::reply::{ExchangeFailure, HttpReply};
use crate::{LogStream, UpstreamCall, UpstreamError};
use wire::header::{self, ParamHeader};
use wire::{Era, code, object};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Tools whose headers are remembered.
const TOOLS: usize = 10_000;
/// Pages of a list read to learn them again.
const PAGES: usize = 100;

/// A request as it will be sent.
pub(super) struct ModernRequest<'a> {
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    /// Where the params do not say it as the server does.
    pub name: Option<&'a str>,
    pub body: Bytes,
    /// How long the answer may take to begin, where nothing else limits it.
    pub begin: Option<Duration>,
}

impl HttpShared {
    pub(super) async fn modern(
        &self,
        spelling: &RequestEncoder,
        flight: &HttpExchange<'_>,
        outgoing: ModernRequest<'_>,
    ) -> ExchangeResult {
        let found = self.modern_once(spelling, flight, &outgoing).await;
        let mismatch = matches!(
            &found,
            Err(ExchangeFailure::Rpc { error, .. }) if error.code == code::HEADER_MISMATCH
        );
        if !mismatch || outgoing.method != "tools/call" {
            return found;
        }
        // Refused before it ran, most likely for headers that follow a schema
        // we have not seen: worth one look and one more try.
        let before = self.tools.headers_of(&outgoing)?;
        Box::pin(self.learn_again(spelling)).await?;
        if self.tools.headers_of(&outgoing)? == before {
            return found;
        }
        Box::pin(self.modern_once(spelling, flight, &outgoing)).await
    }

    async fn modern_once(
        &self,
        spelling: &RequestEncoder,
        flight: &HttpExchange<'_>,
        outgoing: &ModernRequest<'_>,
    ) -> ExchangeResult {
        let mut headers = self.tools.headers_of(outgoing)?;
        plain(&mut headers, &VERSION, &spelling.version)?;
        plain(&mut headers, &METHOD, outgoing.method)?;
        if let Some(name) = name_of(outgoing) {
            plain(&mut headers, &NAME, &header::encode_value(&name))?;
        }
        let body = outgoing.body.clone();
        let replied = match outgoing.begin {
            None => self.post(headers, body, flight.permit).await?,
            Some(limit) => {
                // Boxed: it is rare, and would double what every call takes.
                let post = Box::pin(self.post(headers, body, flight.permit));
                tokio::time::timeout(limit, post)
                    .await
                    .map_err(|_| UpstreamError::Timeout { limit })??
            }
        };
        let found = match replied.reply {
            HttpReply::Stream(events) => Box::pin(self.follow(flight, None, events)).await?,
            other => flight.only(other)?,
        };
        if outgoing.method == "tools/list" {
            self.tools.learn(&found, |text| {
                (self.receiver.log)(LogStream::Protocol, text)
            });
        }
        Ok(found)
    }

    async fn learn_again(&self, spelling: &RequestEncoder) -> Result<(), ExchangeFailure> {
        let mut cursor: Option<Box<RawValue>> = None;
        for _ in 0..PAGES {
            let page = cursor
                .as_deref()
                .map(|cursor| object::set_member(empty_object(), "cursor", cursor));
            let id = self.receiver.pending.next_id();
            let call = UpstreamCall::new("tools/list", self.limits.connect).params(page.as_deref());
            let outgoing = ModernRequest {
                method: "tools/list",
                params: call.params,
                name: None,
                body: spelling.request(&call, id)?.into(),
                begin: None,
            };
            let flight = HttpExchange::new(self, Era::Modern, id, None);
            let found = self.modern_once(spelling, &flight, &outgoing).await?;
            let next = object::member(&found, "nextCursor").filter(|next| !object::is_null(next));
            match next {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        Ok(())
    }
}

/// What `Mcp-Name` repeats of the body, for the methods that have one.
fn name_of<'a>(outgoing: &ModernRequest<'a>) -> Option<Cow<'a, str>> {
    let member = wire::method::name_param(outgoing.method)?;
    match outgoing.name {
        Some(name) => Some(Cow::Borrowed(name)),
        None => object::text(object::member(outgoing.params?, member)?),
    }
}

fn plain(headers: &mut Headers, name: &HeaderName, text: &str) -> Result<(), ExchangeFailure> {
    match headers.add_text(name, text) {
        true => Ok(()),
        false => Err(UpstreamError::Protocol("a value no header can carry".into()).into()),
    }
}

/// Which arguments of which tools go into headers, learnt from the lists that
/// pass through. The lock is held for a map operation.
#[derive(Default)]
pub(super) struct ToolHeaders(Mutex<HashMap<String, Result<Vec<ParamHeader>, String>>>);

#[derive(Deserialize)]
struct ToolListPage<'a> {
    #[serde(borrow)]
    tools: Vec<ToolEntry<'a>>,
}

#[derive(Deserialize)]
struct ToolEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

impl ToolHeaders {
    /// Why a tool must not be offered: its schema asks for headers that
    /// cannot be.
    pub(super) fn fault(&self, tool: &str) -> Option<String> {
        self.0.lock().get(tool)?.as_ref().err().cloned()
    }

    pub(super) fn learn(&self, list: &RawValue, log: impl Fn(&str)) {
        let Ok(ToolListPage { tools }) = serde_json::from_str(list.get()) else {
            return;
        };
        for ToolEntry { name, schema } in tools {
            let headers = match schema.map(header::param_headers) {
                Some(Ok(headers)) => Ok(headers),
                Some(Err(reason)) => {
                    log(&format!("tool {name:?} cannot be offered: {reason}"));
                    Err(reason.to_string())
                }
                None => Ok(Vec::new()),
            };
            let mut known = self.0.lock();
            if headers.as_ref().is_ok_and(Vec::is_empty) {
                known.remove(&*name);
            } else if known.len() < TOOLS || known.contains_key(&*name) {
                known.insert(name.into_owned(), headers);
            }
        }
    }

    fn headers_of(&self, outgoing: &ModernRequest<'_>) -> Result<Headers, ExchangeFailure> {
        let mut map = Headers::new();
        let (Some(name), Some(params), "tools/call") =
            (name_of(outgoing), outgoing.params, outgoing.method)
        else {
            return Ok(map);
        };
        let values = match self.0.lock().get(&*name) {
            None => return Ok(map),
            Some(Ok(headers)) => header::param_values(headers, object::member(params, "arguments")),
            Some(Err(reason)) => return Err(UpstreamError::Protocol(reason.clone()).into()),
        };
        for (name, value) in values {
            if let Ok(name) = HeaderName::try_from(name) {
                plain(&mut map, &name, &value)?;
            }
        }
        Ok(map)
    }
}
