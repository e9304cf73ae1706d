//! The event stream of one HTTP response.

use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;

use super::UpstreamError;
use super::client::{BodyError, ResponseBody};
use super::reply::ExchangeFailure;
use wire::sse::{Decoder, Event, EventTooLong};

/// How long a stream may take to end after the response, so that its connection
/// can be reused.
const FINISH_LIMIT: Duration = Duration::from_millis(500);

/// The reason why a stream cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error(transparent)]
    TooLong(#[from] EventTooLong),
    #[error(transparent)]
    Broken(#[from] BodyError),
    #[error("no sign of life for {} s", .0.as_secs())]
    Silent(Duration),
}

pub struct Events {
    body: ResponseBody,
    decoder: Decoder,
    chunk: Bytes,
    from: String,
}

impl Events {
    pub fn new(body: ResponseBody, limit: usize, from: String) -> Events {
        Events {
            body,
            decoder: Decoder::new(limit),
            chunk: Bytes::new(),
            from,
        }
    }

    /// The next event, or `None` when the server ended the stream. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Event>, ExchangeFailure> {
        loop {
            match self.ready() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(long) => {
                    return Err(ExchangeFailure::Other(UpstreamError::TooLarge {
                        limit: long.limit,
                    }));
                }
            }
            match self.more().await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(_) => {
                    return Err(ExchangeFailure::Broken(format!(
                        "{}: the stream broke",
                        self.from
                    )));
                }
            }
        }
    }

    /// The same, for a stream in which at least a comment comes within
    /// `silence`.
    pub async fn next_within(&mut self, silence: Duration) -> Result<Option<Event>, StreamError> {
        loop {
            if let Some(event) = self.ready()? {
                return Ok(Some(event));
            }
            let more = tokio::time::timeout(silence, self.more()).await;
            if !more.map_err(|_| StreamError::Silent(silence))?? {
                return Ok(None);
            }
        }
    }

    /// The next event of the bytes received so far.
    fn ready(&mut self) -> Result<Option<Event>, EventTooLong> {
        let mut rest = &self.chunk[..];
        let event = self.decoder.next(&mut rest);
        let read = self.chunk.len() - rest.len();
        self.chunk.advance(read);
        event
    }

    /// Waits for more bytes, even if only a comment; false if the stream has
    /// ended.
    async fn more(&mut self) -> Result<bool, BodyError> {
        let piece = self.body.chunk().await?;
        let is_more = piece.is_some();
        self.chunk = piece.unwrap_or_default();
        Ok(is_more)
    }

    /// The caller needs no more events: lets the stream end by itself, if it
    /// does so soon, instead of closing the connection.
    pub fn finish(mut self) {
        match self.body.chunk().now_or_never() {
            Some(Ok(None) | Err(_)) => {}
            _ => {
                let rest = async move { while let Ok(Some(_)) = self.body.chunk().await {} };
                tokio::spawn(tokio::time::timeout(FINISH_LIMIT, rest));
            }
        }
    }
}
