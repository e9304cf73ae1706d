//! The events of one HTTP answer.

use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::UpstreamError;
use super::reply::Failure;
use crate::wire::sse::{Decoder, Event};

/// How long an answered stream may take to end, so that its connection can
/// be used again.
const FINISH_LIMIT: Duration = Duration::from_millis(500);

pub(crate) struct Events {
    body: Incoming,
    decoder: Decoder,
    chunk: Bytes,
    from: String,
}

impl Events {
    pub fn new(body: Incoming, limit: usize, from: String) -> Events {
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
            match self.body.frame().await {
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(_)) => {
                    return Err(Failure::Broken(format!("{}: the stream broke", self.from)));
                }
                None => return Ok(None),
            }
        }
    }

    /// Nothing more is wanted: lets the stream end by itself, if it does so
    /// soon, instead of cutting the connection.
    pub fn finish(mut self) {
        match self.body.frame().now_or_never() {
            Some(None | Some(Err(_))) => {}
            _ => {
                let rest = async move { while let Some(Ok(_)) = self.body.frame().await {} };
                tokio::spawn(tokio::time::timeout(FINISH_LIMIT, rest));
            }
        }
    }
}
