//! The headers of every request to one server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use indexmap::IndexMap;
use url::Url;

use crate::{LogSink, LogStream};

/// Headers that the protocol sets; a definition cannot set them.
const OURS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const ALSO_OURS: &[&str] = &["keep-alive", "last-event-id", "proxy-connection"];

/// The headers of the definition, and those that never change.
pub(super) fn fixed(url: &Url, headers: &IndexMap<String, String>, log: &LogSink) -> HeaderMap {
    let mut fixed = configured(headers, log);
    if let Some(login) = basic_login(url)
        && !fixed.contains_key(header::AUTHORIZATION)
    {
        fixed.insert(header::AUTHORIZATION, login);
    }
    fixed.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    if !fixed.contains_key(header::USER_AGENT) {
        let agent = concat!("portway/", env!("CARGO_PKG_VERSION"));
        fixed.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    }
    fixed
}

/// `https://user:pass@host/` stands for basic authentication.
fn basic_login(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let user = percent_decode(url.username());
    let password = percent_decode(url.password().unwrap_or_default());
    let login = STANDARD.encode([&user[..], b":", &password[..]].concat());
    let mut value = HeaderValue::try_from(format!("Basic {login}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

fn configured(headers: &IndexMap<String, String>, log: &LogSink) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(headers.len() + 2);
    for (name, value) in headers {
        let skip = |why: &str| {
            log(
                LogStream::Portway,
                &format!("header {name:?} is left out: {why}"),
            );
        };
        let Ok(header) = HeaderName::try_from(name) else {
            skip("not a header name");
            continue;
        };
        if is_ours(&header) {
            skip("the protocol sets it");
            continue;
        }
        let Ok(mut value) = HeaderValue::try_from(value) else {
            skip("its value has characters a header cannot carry");
            continue;
        };
        value.set_sensitive(true);
        map.insert(header, value);
    }
    map
}

fn is_ours(name: &HeaderName) -> bool {
    OURS.contains(name) || ALSO_OURS.contains(&name.as_str()) || name.as_str().starts_with("mcp-")
}
