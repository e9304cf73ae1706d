//! Content negotiation of a client, and headers that must not be repeated.

use http::header::AsHeaderName;
use http::{HeaderMap, header};

/// The forms of a response that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accept {
    pub json: bool,
    pub events: bool,
    /// `text/event-stream` is listed by name.
    pub events_named: bool,
}

/// The spelling of nearly every client.
const USUAL: &str = "application/json, text/event-stream";
const BOTH: Accept = Accept {
    json: true,
    events: true,
    events_named: true,
};

impl Accept {
    /// Clients must accept both; some name only one, and get that one. No
    /// header means that the client accepts everything.
    pub(super) fn of(headers: &HeaderMap) -> Accept {
        let mut accept = Accept::default();
        let mut said = false;
        for line in headers.get_all(header::ACCEPT) {
            if line == USUAL {
                return BOTH;
            }
            for range in line.as_bytes().split(|byte| *byte == b',') {
                let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
                let kind = parts.next().unwrap_or_default();
                said |= !kind.is_empty();
                if parts.any(is_refusal) {
                    continue;
                }
                let is = |name: &str| kind.eq_ignore_ascii_case(name.as_bytes());
                let any = is("*/*");
                accept.json |= any || is("application/json") || is("application/*");
                accept.events_named |= is("text/event-stream");
                accept.events |= any || is("text/event-stream") || is("text/*");
            }
        }
        if said {
            return accept;
        }
        Accept {
            events_named: false,
            ..BOTH
        }
    }

    /// For a client that may not know MCP's streams (`curl` sends `*/*`):
    /// events only if it names them, or accepts nothing else.
    pub(super) fn json_first(self) -> Accept {
        Accept {
            events: self.events_named || !self.json,
            ..self
        }
    }
}

/// Whether the weight is `q=0`, in any spelling.
fn is_refusal(part: &[u8]) -> bool {
    let zero = |weight: &[u8]| weight.iter().all(|byte| matches!(byte, b'0' | b'.'));
    matches!(part, [b'q' | b'Q', b'=', weight @ ..] if !weight.is_empty() && zero(weight))
}

/// A header that two parsers might read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unclear;

/// A header's single value, without the spaces around it.
pub(super) fn single(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&str>, Unclear> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Unclear)?;
            Ok(Some(text.trim_matches([' ', '\t'])))
        }
        (Some(_), Some(_)) => Err(Unclear),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_taken() {
        let both = (true, true);
        let table: [(&[&str], (bool, bool)); 12] = [
            (&[], both),
            (&[""], both),
            (&["*/*"], both),
            (&["application/json, text/event-stream"], both),
            (&["text/event-stream,application/json;q=0.5"], both),
            (&["application/json", "text/event-stream"], both),
            (&["Application/JSON"], (true, false)),
            (&["text/event-stream"], (false, true)),
            (&["text/html"], (false, false)),
            (&["text/*"], (false, true)),
            (&["application/json;q=0, */*;q=0.0"], (false, false)),
            (&["application/json; charset=utf-8"], (true, false)),
        ];
        for (lines, expected) in table {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::ACCEPT, line.parse().unwrap());
            }
            let accept = Accept::of(&headers);
            assert_eq!((accept.json, accept.events), expected, "{lines:?}");
        }
    }

    #[test]
    fn k4_a_wildcard_does_not_ask_for_events() {
        for (line, events) in [
            (None, false),
            (Some("*/*"), false),
            (Some("application/json"), false),
            (Some("application/json, text/*"), false),
            (Some("text/*"), true),
            (Some("text/event-stream"), true),
            (Some("*/*, text/event-stream"), true),
            (Some("text/event-stream;q=0, */*"), false),
            (Some(USUAL), true),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(line) = line {
                headers.insert(header::ACCEPT, line.parse().unwrap());
            }
            let accept = Accept::of(&headers).json_first();
            assert_eq!(accept.events, events, "{line:?}");
        }
    }

    #[test]
    fn t_e1_a_header_given_twice_is_not_read() {
        let mut headers = HeaderMap::new();
        assert_eq!(single(&headers, "mcp-name"), Ok(None));
        headers.append("mcp-name", " a\t".parse().unwrap());
        assert_eq!(single(&headers, "Mcp-Name"), Ok(Some("a")));
        headers.append("mcp-name", "a".parse().unwrap());
        assert_eq!(single(&headers, "mcp-name"), Err(Unclear));
    }
}
