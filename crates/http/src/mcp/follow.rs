//! A stream of a legacy session as server-sent events, with ids by which a
//! client can resume it.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use super::reply::{self, KEEP_ALIVE, comment, events, priming};
use gateway::{StreamEvent, StreamReader};
use wire::era;

/// From this revision on a stream may begin with an event that is only an id.
const PRIMING: &str = "2025-11-25";

pub(super) fn takes_priming(version: &str) -> bool {
    era::legacy_at_least(version, PRIMING)
}

/// The kind of stream that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The session's own stream.
    Own,
    /// The response to a request.
    Answer,
    /// All messages, on a connection that cannot be resumed.
    Pipe,
}

/// The id of an event, which a client sends as `Last-Event-ID`.
pub(super) fn event_id(kind: StreamKind, stream: u64, number: u64) -> Option<String> {
    match kind {
        StreamKind::Own => Some(format!("g{stream:x}-{number}")),
        StreamKind::Answer => Some(format!("p{stream:x}-{number}")),
        StreamKind::Pipe => None,
    }
}

/// Parses the kind, stream and number of an event id of ours.
pub(super) fn parse_event_id(id: &str) -> Option<(StreamKind, u64, u64)> {
    let kind = match id.as_bytes().first()? {
        b'g' => StreamKind::Own,
        b'p' => StreamKind::Answer,
        _ => return None,
    };
    let (stream, number) = id[1..].split_once('-')?;
    let stream = u64::from_str_radix(stream, 16).ok()?;
    Some((kind, stream, number.parse().ok()?))
}

pub(super) struct Follow {
    reader: StreamReader,
    kind: StreamKind,
    queued: VecDeque<Bytes>,
    /// Streams without an end of their own end at shutdown.
    closing: Option<CancellationToken>,
}

impl Follow {
    pub(super) fn new(reader: StreamReader, kind: StreamKind) -> Follow {
        Follow {
            reader,
            kind,
            queued: VecDeque::new(),
            closing: None,
        }
    }

    pub(super) fn until(mut self, closing: CancellationToken) -> Follow {
        self.closing = Some(closing);
        self
    }

    /// Sends a first event at once to show that the stream is open; the events
    /// after message `at` follow.
    pub(super) fn greet(mut self, version: &str, at: u64) -> Follow {
        let stream = self.reader.stream().id();
        let first = event_id(self.kind, stream, at)
            .filter(|_| takes_priming(version))
            .map_or_else(comment, |id| priming(&id));
        self.queued.push_back(first);
        self
    }

    /// Queues an encoded event before all others.
    pub(super) fn first(mut self, event: Bytes) -> Follow {
        self.queued.push_back(event);
        self
    }

    /// Queues a message that was read before.
    pub(super) fn again(mut self, event: &StreamEvent) -> Follow {
        let spelled = self.spell(event);
        self.queued.push_back(spelled);
        self
    }

    fn spell(&self, event: &StreamEvent) -> Bytes {
        let id = event_id(self.kind, self.reader.stream().id(), event.number);
        reply::message(id.as_deref(), &event.message)
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(queued) = self.queued.pop_front() {
            return Some(queued);
        }
        let closed = async {
            match &self.closing {
                Some(closing) => closing.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            biased;
            event = self.reader.next() => event?,
            () = closed => return None,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some(comment()),
        };
        Some(self.spell(&event))
    }

    /// The response with the events; holds `guard` while the client reads.
    pub(super) fn response<G: Send + 'static>(self, guard: G) -> Response {
        events(stream::unfold((self, guard), |(mut follow, guard)| async {
            let next = follow.next().await?;
            Some((next, (follow, guard)))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_name_their_stream() {
        for kind in [StreamKind::Own, StreamKind::Answer] {
            let id = event_id(kind, u64::MAX >> 11, 7).unwrap();
            assert_eq!(parse_event_id(&id), Some((kind, u64::MAX >> 11, 7)));
        }
        for odd in ["", "g", "p1", "x1-1", "p-1", "p1-", "pé-1", "p1-1-1", "éé"] {
            assert_eq!(parse_event_id(odd), None, "{odd}");
        }
    }
}
