//! URIs on an endpoint of many servers: `portway://<server>/<its own URI>`.
//!
//! A plain prefix: it can be removed without a table, works for URIs that no
//! list shows, and keeps templates valid. `ui://` stays, because hosts of MCP
//! Apps identify their pages by it.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::value::RawValue;

use wire::RpcError;
use wire::object::{find_members, map_elements, quote, set_json_member, unquote};
use wire::schema::mentions;

const SCHEME: &str = "portway://";

/// Whether a URI is the same on every endpoint.
pub(crate) fn stays(uri: &str) -> bool {
    uri.starts_with("ui://")
}

/// A server's URI as clients of all servers see it.
pub(crate) fn shared<'a>(server: &str, uri: &'a str) -> Cow<'a, str> {
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
pub(crate) fn split(uri: &str) -> Option<(String, &str)> {
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some((decoded(server)?, own))
}

/// A URI with a mark (SPEC E12) in the place of its server. No server's name is
/// written like a mark.
pub(crate) fn marked(mark: &str, uri: &str) -> String {
    format!("{SCHEME}!{mark}/{uri}")
}

/// The mark and the server's own URI.
pub(crate) fn unmarked(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.strip_prefix('!')?.split_once('/')
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

/// The authority of a URI that stays; those of one page belong together.
pub(crate) fn authority(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix("ui://")?;
    rest.split(['/', '?', '#']).next()
}

/// The use of a URI in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UriRole {
    /// Something to be read.
    Link,
    /// The name of the content beside it, or of the requested resource.
    Content,
}

/// Maps a server's URI to that of an endpoint's clients; `None` as it is.
pub(crate) type UriMapping<'s> = &'s dyn Fn(&str, UriRole) -> Option<String>;

/// The mapping of an endpoint of all servers.
pub(crate) fn to_shared(server: &str) -> impl Fn(&str, UriRole) -> Option<String> + use<'_> {
    move |uri, _| (!stays(uri)).then(|| shared(server, uri).into_owned())
}

/// A server's result with every URI in it as the clients of an endpoint see
/// it; all else as it was written. `result` must be valid JSON.
pub(crate) fn result<'a>(spell: UriMapping<'_>, method: &str, result: &'a str) -> Cow<'a, str> {
    // Most results name no resource at all.
    if !mentions(result, "uri") {
        return Cow::Borrowed(result);
    }
    match method {
        "tools/call" => inside(result, "content", |content| blocks(spell, content)),
        "prompts/get" => inside(result, "messages", |messages| {
            map_elements(messages, |message| {
                inside(message, "content", |content| blocks(spell, content))
            })
        }),
        "resources/read" => inside(result, "contents", |contents| {
            map_elements(contents, |content| {
                with_uri(spell, content, UriRole::Content)
            })
        }),
        _ => Cow::Borrowed(result),
    }
}

/// The data of a server's error: which resource was not found.
pub(crate) fn error(spell: UriMapping<'_>, mut error: RpcError) -> RpcError {
    if let Some(data) = &error.data
        && let Cow::Owned(data) = with_uri(spell, data.get(), UriRole::Content)
    {
        error.data = RawValue::from_string(data).ok();
    }
    error
}

/// An object with one member changed, if it does change.
fn inside<'a>(
    holder: &'a str,
    name: &str,
    change: impl FnOnce(&'a str) -> Cow<'a, str>,
) -> Cow<'a, str> {
    let [member] = find_members(holder, [name]);
    match member.map(change) {
        Some(Cow::Owned(changed)) => Cow::Owned(set_json_member(holder, name, &changed)),
        _ => Cow::Borrowed(holder),
    }
}

/// One content block, or a list of them.
fn blocks<'a>(spell: UriMapping<'_>, content: &'a str) -> Cow<'a, str> {
    if content.starts_with('{') {
        return block(spell, content);
    }
    map_elements(content, |content| block(spell, content))
}

fn block<'a>(spell: UriMapping<'_>, block: &'a str) -> Cow<'a, str> {
    let [kind, resource] = find_members(block, ["type", "resource"]);
    match (kind.and_then(unquote).as_deref(), resource) {
        (Some("resource_link"), _) => with_uri(spell, block, UriRole::Link),
        (Some("resource"), Some(_)) => inside(block, "resource", |resource| {
            with_uri(spell, resource, UriRole::Content)
        }),
        _ => Cow::Borrowed(block),
    }
}

fn with_uri<'a>(spell: UriMapping<'_>, holder: &'a str, role: UriRole) -> Cow<'a, str> {
    inside(holder, "uri", |written| {
        match unquote(written).and_then(|uri| spell(&uri, role)) {
            Some(uri) => Cow::Owned(quote(&uri)),
            None => Cow::Borrowed(written),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn i1_uris_in_results_are_those_of_the_endpoint() {
        for (method, from, to) in [
            (
                "tools/call",
                r#"{"content":[{"type":"text","text":"uri"}, {"x":1e5, "type":"resource_link","uri":"a:b","name":"n"},{"type":"resource","resource":{"uri":"a:c","text":"uri"}},{"type":"resource_link","uri":"ui://x"}],"structuredContent":{"uri":"a:b"}}"#,
                r#"{"content":[{"type":"text","text":"uri"}, {"x":1e5,"type":"resource_link","uri":"portway://s%20s/a:b","name":"n"},{"type":"resource","resource":{"uri":"portway://s%20s/a:c","text":"uri"}},{"type":"resource_link","uri":"ui://x"}],"structuredContent":{"uri":"a:b"}}"#,
            ),
            (
                "prompts/get",
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:c"}}}],"uri":"a:b"}"#,
                r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"portway://s%20s/a:c"}}}],"uri":"a:b"}"#,
            ),
            (
                "resources/read",
                r#"{"contents":[{"uri":"a:b","text":"t"},{"uri":"ui://p"}]}"#,
                r#"{"contents":[{"uri":"portway://s%20s/a:b","text":"t"},{"uri":"ui://p"}]}"#,
            ),
            (
                "completion/complete",
                r#"{"uri":"a:b"}"#,
                r#"{"uri":"a:b"}"#,
            ),
            ("tools/call", r#"{"content":"uri"}"#, r#"{"content":"uri"}"#),
            ("tools/call", r#"["uri"]"#, r#"["uri"]"#),
        ] {
            let mapped = result(&to_shared("s s"), method, from);
            assert_eq!(mapped, to, "{method}");
            assert_eq!(matches!(mapped, Cow::Borrowed(_)), from == to);
        }
    }

    #[test]
    fn i1_errors_name_the_uri_that_was_asked_for() {
        for (from, to) in [
            (
                r#"{"uri":"a:b","x":1}"#,
                r#"{"uri":"portway://s/a:b","x":1}"#,
            ),
            (r#"{"x":1}"#, r#"{"x":1}"#),
            ("[]", "[]"),
        ] {
            let data = RawValue::from_string(from.to_owned()).unwrap();
            let mapped = error(&to_shared("s"), RpcError::new(-32002, "no").with_data(data));
            assert_eq!(mapped.data.unwrap().get(), to);
        }
        assert!(error(&to_shared("s"), RpcError::new(1, "")).data.is_none());
    }

    #[test]
    fn what_nobody_made_is_nobodys() {
        for uri in [
            "",
            "a:b",
            "portway://",
            "portway://s",
            "portway://%2/x",
            "portway://%ff/x",
        ] {
            assert_eq!(split(uri), None, "{uri}");
        }
        assert_eq!(split("portway://s/"), Some(("s".into(), "")));
    }

    proptest! {
        #[test]
        fn i1_uris_find_their_way_back(server in "\\PC{1,20}", uri in "\\PC{0,40}") {
            let made = shared(&server, &uri);
            if stays(&uri) {
                prop_assert_eq!(made, uri.as_str());
            } else {
                prop_assert!(made.ends_with(&uri));
                prop_assert_eq!(split(&made), Some((server, uri.as_str())));
            }
        }
    }
}
