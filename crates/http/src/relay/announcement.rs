//! Rewrites the first event of the old transport, which names the URL to post
//! to. The service names a URL of its own; the client has to post to ours.

use axum::BoxError;
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use wire::sse::{self, Decoder};

const LONGEST: usize = 16 * 1024;

/// The same events, except that the first one names `here`.
pub(super) fn rewritten(body: Body, here: String) -> Body {
    let first = PendingAnnouncement {
        decoder: Decoder::new(LONGEST),
        here,
    };
    let chunks = body.into_data_stream();
    Body::from_stream(stream::unfold(
        (chunks, Some(first)),
        |(mut chunks, mut first)| async move {
            loop {
                let chunk = chunks.next().await?.map_err(BoxError::from);
                let passed = match (chunk, &mut first) {
                    (Ok(chunk), Some(pending)) => match pending.take(&chunk) {
                        Ok(None) => continue,
                        Ok(Some(bytes)) => {
                            first = None;
                            Ok(bytes)
                        }
                        Err(error) => Err(error),
                    },
                    (chunk, _) => chunk,
                };
                return Some((passed, (chunks, first)));
            }
        },
    ))
}

struct PendingAnnouncement {
    decoder: Decoder,
    here: String,
}

impl PendingAnnouncement {
    /// The rewritten announcement, and the bytes after it.
    fn take(&mut self, mut chunk: &[u8]) -> Result<Option<Bytes>, BoxError> {
        let Some(event) = self.decoder.next(&mut chunk)? else {
            return Ok(None);
        };
        let data = std::str::from_utf8(&event.data)?;
        let (_, query) = data
            .split_once('?')
            .filter(|_| event.name.as_deref() == Some("endpoint"))
            .ok_or("the MCP service announces no address")?;
        let place = format!("{}?{query}", self.here);
        let mut out = Vec::new();
        sse::encode(Some("endpoint"), None, None, place.as_bytes(), &mut out);
        out.extend_from_slice(chunk);
        Ok(Some(out.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k4_the_announced_address_becomes_ours() {
        let mut pending = PendingAnnouncement {
            decoder: Decoder::new(LONGEST),
            here: "/here/messages".to_owned(),
        };
        let head = b"event: endpoint\ndata: /messages?sessionId=a";
        assert_eq!(pending.take(head).unwrap(), None);
        let rest = pending.take(b"b\n\nevent: message\ndata: {}\n\n").unwrap();
        let text = String::from_utf8(rest.unwrap().to_vec()).unwrap();
        assert!(
            text.contains("data: /here/messages?sessionId=ab\n\n"),
            "{text}"
        );
        assert!(text.ends_with("event: message\ndata: {}\n\n"), "{text}");
    }

    #[test]
    fn k4_what_is_no_announcement_is_refused() {
        for odd in [
            "event: message\ndata: /x?y\n\n".to_owned(),
            "event: endpoint\ndata: /messages\n\n".to_owned(),
            format!("event: endpoint\ndata: {}\n\n", "x".repeat(2 * LONGEST)),
        ] {
            let mut pending = PendingAnnouncement {
                decoder: Decoder::new(LONGEST),
                here: "/here".to_owned(),
            };
            assert!(pending.take(odd.as_bytes()).is_err(), "{}", &odd[..30]);
        }
    }
}
