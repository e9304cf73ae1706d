//! Notifications about a changed resource: the clients that get one, and its
//! params.

use serde_json::value::{RawValue, to_raw_value};

use wire::meta::SUBSCRIPTION_ID;
use wire::object::{empty, is_object, member, remove_members, set_member};

/// Whether a change of `uri` concerns a subscription to `followed`: the resource
/// itself, or a part of it. A URI with only the same start is another resource.
pub(super) fn concerns(followed: &str, uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix(followed) else {
        return false;
    };
    let parts = |text: &str| text.starts_with(['/', '?', '#']);
    rest.is_empty() || parts(rest) || followed.ends_with(['/', '?', '#', ':'])
}

/// The server's params for a client that knows the resource as `uri` and, on a
/// listen stream, the stream by its id.
pub(super) fn params(sent: &RawValue, uri: &str, listen: Option<&RawValue>) -> Box<RawValue> {
    let uri = to_raw_value(uri).expect("a text serialises");
    let sent = set_member(if is_object(sent) { sent } else { empty() }, "uri", &uri);
    let meta = member(&sent, "_meta").filter(|meta| is_object(meta));
    // The id of Portway's own listen stream means nothing to the client.
    let meta = meta.map(|meta| remove_members(meta, &[SUBSCRIPTION_ID]));
    let meta = meta.as_deref().unwrap_or(empty());
    match listen {
        Some(id) => set_member(&sent, "_meta", &set_member(meta, SUBSCRIPTION_ID, id)),
        None if meta.get() == "{}" => remove_members(&sent, &["_meta"]).into_owned(),
        None => set_member(&sent, "_meta", meta),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i2_parts_of_a_resource_are_news_and_others_are_not() {
        for (followed, uri, told) in [
            ("a://b/1", "a://b/1", true),
            ("a://b/1", "a://b/1/x", true),
            ("a://b/1", "a://b/1?x", true),
            ("a://b/1", "a://b/1#x", true),
            ("a://b/", "a://b/1", true),
            ("a:", "a:b", true),
            ("a://b/1", "a://b/10", false),
            ("a://b/1", "a://b/", false),
            ("a://b/1.txt", "a://b/1.txt~", false),
        ] {
            assert_eq!(concerns(followed, uri), told, "{followed} {uri}");
        }
    }

    #[test]
    fn i2_news_keep_what_the_server_said() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let said = raw(
            r#"{"uri":"a","x":1.0,"_meta":{"io.modelcontextprotocol/subscriptionId":4,"v":[1]}}"#,
        );
        assert_eq!(
            params(&said, "b", None).get(),
            r#"{"uri":"b","x":1.0,"_meta":{"v":[1]}}"#
        );
        assert_eq!(
            params(&said, "b", Some(&raw("\"l\""))).get(),
            r#"{"uri":"b","x":1.0,"_meta":{"v":[1],"io.modelcontextprotocol/subscriptionId":"l"}}"#
        );
        let plain = raw(r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":4}}"#);
        assert_eq!(params(&plain, "b", None).get(), r#"{"uri":"b"}"#);
    }
}
