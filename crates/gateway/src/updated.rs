//! That a resource changed: whom it concerns, and in which words.

use serde_json::value::{RawValue, to_raw_value};

use wire::meta::SUBSCRIPTION_ID;
use wire::object::{empty, is_object, member, remove_members, set_member};

/// Whether news of `uri` are for who follows `followed`: the resource itself,
/// or a part of it. One that is only spelled alike is another.
pub(super) fn concerns(followed: &str, uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix(followed) else {
        return false;
    };
    let parts = |text: &str| text.starts_with(['/', '?', '#']);
    rest.is_empty() || parts(rest) || followed.ends_with(['/', '?', '#', ':'])
}

/// What the server said, for a client that knows the resource as `uri` and,
/// on a listen, the change by the listen's id.
pub(super) fn params(said: &RawValue, uri: &str, listen: Option<&RawValue>) -> Box<RawValue> {
    let uri = to_raw_value(uri).expect("a text serialises");
    let said = set_member(if is_object(said) { said } else { empty() }, "uri", &uri);
    let meta = member(&said, "_meta").filter(|meta| is_object(meta));
    // Which listen of ours it came on is nobody's business.
    let meta = meta.map(|meta| remove_members(meta, &[SUBSCRIPTION_ID]));
    let meta = meta.as_deref().unwrap_or(empty());
    match listen {
        Some(id) => set_member(&said, "_meta", &set_member(meta, SUBSCRIPTION_ID, id)),
        None if meta.get() == "{}" => remove_members(&said, &["_meta"]).into_owned(),
        None => set_member(&said, "_meta", meta),
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
