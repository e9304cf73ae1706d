//! URLs that contain the key of an entry (SPEC E6).

use std::borrow::Cow;

use http::Uri;

pub(super) const PREFIX: &str = "/api/v1/mcp_v2/server/";

/// Whether the key in the URL is the only credential there.
pub(crate) fn is_keyed(uri: &Uri) -> bool {
    uri.path().starts_with(PREFIX)
}

/// The key in a URL, if it is valid text.
pub(crate) fn key_of(uri: &Uri) -> Option<Cow<'_, str>> {
    let rest = uri.path().strip_prefix(PREFIX)?;
    decoded(rest.split('/').next().unwrap_or_default())
}

/// The path of a sibling of the requested one: for `…/sse`, for example,
/// `…/messages`.
pub(crate) fn beside(uri: &Uri, name: &str) -> String {
    let (parent, _) = uri.path().rsplit_once('/').unwrap_or_default();
    format!("{parent}/{name}")
}

fn decoded(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| char::from(*tail.get(at)?).to_digit(16);
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            (b'%', ..) => return None,
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e6_the_key_is_the_segment_after_the_prefix() {
        let key = |rest: &str| {
            let uri: Uri = format!("{PREFIX}{rest}").parse().unwrap();
            assert!(is_keyed(&uri));
            key_of(&uri).map(Cow::into_owned)
        };
        assert_eq!(key("pwk_a-b").as_deref(), Some("pwk_a-b"));
        assert_eq!(key("pwk_a/sse").as_deref(), Some("pwk_a"));
        assert_eq!(key("pwk%5Fa?x=y").as_deref(), Some("pwk_a"));
        assert_eq!(key("").as_deref(), Some(""));
        assert_eq!(key("%ff"), None);
        assert_eq!(key("a%4"), None);
        assert_eq!(key("a%+1"), None);
        assert!(!is_keyed(&"/api/v1/mcp_v2/server".parse().unwrap()));
    }

    #[test]
    fn k4_messages_go_beside_the_stream() {
        let uri: Uri = "/api/v1/mcp_v2/server/pwk_a/sse?x=y".parse().unwrap();
        let beside = beside(&uri, "messages");
        assert_eq!(beside, "/api/v1/mcp_v2/server/pwk_a/messages");
    }
}
