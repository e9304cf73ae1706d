//! URIs on an endpoint of many servers: `portway://<server>/<its own URI>`.
//!
//! A plain prefix: it can be taken off again without a table, holds for URIs
//! that no list shows, and leaves templates what they are. `ui://` stays, for
//! hosts of MCP Apps know their pages by it.

use std::borrow::Cow;
use std::fmt::Write as _;

const SCHEME: &str = "portway://";

/// Whether a URI is the same on every endpoint.
pub fn stays(uri: &str) -> bool {
    uri.starts_with("ui://")
}

/// A server's URI as clients of all servers see it.
pub fn shared<'a>(server: &str, uri: &'a str) -> Cow<'a, str> {
    if stays(uri) {
        return Cow::Borrowed(uri);
    }
    let mut out = String::with_capacity(SCHEME.len() + server.len() + 1 + uri.len());
    out.push_str(SCHEME);
    for byte in server.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing into memory");
        }
    }
    out.push('/');
    out.push_str(uri);
    Cow::Owned(out)
}

/// The server in a URI that [`shared`] made, and the URI it has there.
pub fn split(uri: &str) -> Option<(String, &str)> {
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((decoded(server)?, own))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, after) = after.split_at_checked(2)?;
        let hex = std::str::from_utf8(hex).ok()?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
