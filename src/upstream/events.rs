//! The events of one HTTP answer.

use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;

use super::UpstreamError;
use super::client::Received;
use super::reply::Failure;
use crate::wire::sse::{Decoder, Event};

/// How long an answered stream may take to end, so that its connection can
/// be used again.
const FINISH_LIMIT: Duration = Duration::from_millis(500);

pub(crate) struct Events {
    body: Received,
    decoder: Decoder,
    chunk: Bytes,
    from: String,
}

impl Events {
    pub fn new(body: Received, limit: usize, from: String) -> Events {
        Events {
            body,
            decoder: Decoder::new(limit),
            chunk: Bytes::new(),
            from,
        }
    }

    /// The next event, or `None` when the server ended the stream. Loses
    /// nothing when it is dropped half way.
    pub async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            let mut rest = &self.chunk[..];
            let event = self.decoder.next(&mut rest);
            let read = self.chunk.len() - rest.len();
            self.chunk.advance(read);
            match event {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(long) => {
                    return Err(Failure::Other(UpstreamError::TooLarge {
                        limit: long.limit,
                    }));
                }
            }
            match self.body.piece().await {
                Ok(Some(piece)) => self.chunk = piece,
                Ok(None) => return Ok(None),
                Err(_) => {
                    return Err(Failure::Broken(format!("{}: the stream broke", self.from)));
                }
            }
        }
    }

    /// Nothing more is wanted: lets the stream end by itself, if it does so
    /// soon, instead of cutting the connection.
    pub fn finish(mut self) {
        match self.body.piece().now_or_never() {
            Some(Ok(None) | Err(_)) => {}
            _ => {
                let rest = async move { while let Ok(Some(_)) = self.body.piece().await {} };
                tokio::spawn(tokio::time::timeout(FINISH_LIMIT, rest));
            }
        }
    }
}
