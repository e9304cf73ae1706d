//! Streamable HTTP from 2026-07-28 on: no state, but headers that repeat parts
//! of the body.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::exchange::HttpExchange;
use super::{ExchangeResult, HttpShared};
use crate::client::Headers;
use crate::peer::RequestEncoder;
use crate::reply::{ExchangeFailure, HttpReply};
use crate::{LogStream, UpstreamCall, UpstreamError};
use wire::{Era, code, object};

/// The limit of pages when the tool list is read again.
const PAGES: usize = 100;

/// A request as it will be sent.
pub(super) struct OutgoingRequest<'a> {
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
    /// Set if the name in the params differs from the server's.
    pub name: Option<&'a str>,
    pub body: Bytes,
    /// The limit until the response begins, if nothing else limits it.
    pub begin: Option<Duration>,
}

impl HttpShared {
    pub(super) async fn modern(
        &self,
        spelling: &RequestEncoder,
        flight: &HttpExchange<'_>,
        outgoing: OutgoingRequest<'_>,
    ) -> ExchangeResult {
        let found = self.modern_once(spelling, flight, &outgoing).await;
        let mismatch = matches!(
            &found,
            Err(ExchangeFailure::Rpc { error, .. }) if error.code == code::HEADER_MISMATCH
        );
        if !mismatch || outgoing.method != "tools/call" {
            return found;
        }
        // Refused before it ran, most likely because of headers for a schema
        // that is not known yet: worth reading the list and one retry.
        let before = self.mirrored(spelling, &outgoing)?;
        Box::pin(self.learn_again(spelling)).await?;
        if self.mirrored(spelling, &outgoing)? == before {
            return found;
        }
        Box::pin(self.modern_once(spelling, flight, &outgoing)).await
    }

    async fn modern_once(
        &self,
        spelling: &RequestEncoder,
        flight: &HttpExchange<'_>,
        outgoing: &OutgoingRequest<'_>,
    ) -> ExchangeResult {
        let headers = self.mirrored(spelling, outgoing)?;
        let body = outgoing.body.clone();
        let replied = match outgoing.begin {
            None => self.post(&headers, body, flight.permit).await?,
            Some(limit) => {
                // Boxed: it is rare, and would double the size of every call.
                let post = Box::pin(self.post(&headers, body, flight.permit));
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
            self.tools.learn(&found.to_raw(), |text| {
                (self.receiver.log)(LogStream::Protocol, text)
            });
        }
        Ok(found)
    }

    fn mirrored(
        &self,
        spelling: &RequestEncoder,
        outgoing: &OutgoingRequest<'_>,
    ) -> Result<Headers, ExchangeFailure> {
        let mut headers = Headers::of_post();
        let added = self.tools.mirror(
            &mut headers,
            &spelling.version,
            outgoing.method,
            name_of(outgoing).as_deref(),
            outgoing.params,
        );
        match added {
            Ok(()) => Ok(headers),
            Err(reason) => Err(UpstreamError::Protocol(reason).into()),
        }
    }

    async fn learn_again(&self, spelling: &RequestEncoder) -> Result<(), ExchangeFailure> {
        let mut cursor: Option<Box<RawValue>> = None;
        for _ in 0..PAGES {
            let page = cursor
                .as_deref()
                .map(|cursor| object::set_member(object::empty(), "cursor", cursor));
            let id = self.receiver.pending.next_id();
            let call = UpstreamCall::new("tools/list", self.limits.connect).params(page.as_deref());
            let outgoing = OutgoingRequest {
                method: "tools/list",
                params: call.params,
                name: None,
                body: spelling.request(&call, id)?.into(),
                begin: None,
            };
            let flight = HttpExchange::new(self, Era::Modern, id, None);
            let found = self.modern_once(spelling, &flight, &outgoing).await?;
            let [next] = object::find_members(found.get(), ["nextCursor"]);
            match next
                .filter(|next| *next != "null")
                .and_then(object::parse_part)
            {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        Ok(())
    }
}

/// The value of `Mcp-Name`, for the methods that have one.
fn name_of<'a>(outgoing: &OutgoingRequest<'a>) -> Option<Cow<'a, str>> {
    let member = wire::method::name_param(outgoing.method)?;
    match outgoing.name {
        Some(name) => Some(Cow::Borrowed(name)),
        None => object::text(object::member(outgoing.params?, member)?),
    }
}
