use std::borrow::Cow;

use crate::era;
use crate::object::{
    Object, find_members, map_elements, parse_part, quote, set_json_member, unquote,
};

/// Whether a revision knows every kind of content block, and structured content.
pub(super) fn knows_all(version: &str) -> bool {
    era::at_least(version, "2025-06-18")
}

/// A content block in words, for clients whose revision lacks its kind:
/// `resource_link` came with 2025-06-18, `audio` with 2025-03-26.
pub(super) fn degrade<'a>(block: &'a str, version: &str) -> Cow<'a, str> {
    let [kind, annotations] = find_members(block, ["type", "annotations"]);
    let words = match kind.and_then(unquote).as_deref() {
        Some("resource_link") => link_in_words(block),
        Some("audio") if !era::at_least(version, "2025-03-26") => {
            let [kind] = find_members(block, ["mimeType"]);
            let kind = kind.and_then(unquote).unwrap_or("audio".into());
            format!("[{kind} content, which this client's protocol revision cannot carry]")
        }
        _ => return Cow::Borrowed(block),
    };
    let mut object = Object::new();
    object.set_text("type", "text");
    object.set_text("text", &words);
    if let Some(annotations) = annotations {
        object.set_json("annotations", annotations);
    }
    Cow::Owned(object.to_json())
}

fn link_in_words(block: &str) -> String {
    let names = ["title", "name", "uri", "description"];
    let [title, name, uri, description] = find_members(block, names);
    let text_of = |json: Option<&str>| json.and_then(unquote).unwrap_or_default().into_owned();
    let name = text_of(title.or(name));
    let (uri, description) = (text_of(uri), text_of(description));
    let colon = if description.is_empty() { "" } else { ": " };
    format!("[resource {name} {uri}{colon}{description}]")
}

/// A tool's answer: its content in kinds the client knows, its structured
/// content an object. True if anything changed.
pub(super) fn call_to_legacy(object: &mut Object<'_>, version: &str, wrapped: bool) -> bool {
    let knows_all = knows_all(version);
    let mut changed = false;
    let mut blocks = object.get("content").map(|content| {
        if knows_all {
            return Cow::Borrowed(content);
        }
        map_elements(content, |block| degrade(block, version))
    });
    if let Some(value) = object.get("structuredContent") {
        let wrap = wrapped || !value.starts_with('{');
        if wrap {
            object.set_json("structuredContent", format!(r#"{{"result":{value}}}"#));
            changed = true;
        }
        // A client that cannot read the structured value gets it as text.
        let unseen = wrap || !knows_all;
        if unseen && !blocks.as_deref().is_some_and(has_text) {
            blocks = Some(Cow::Owned(with_text(blocks.as_deref(), value)));
        }
    }
    match blocks {
        None => object.set_json("content", "[]"),
        Some(Cow::Owned(blocks)) => object.set_json("content", blocks),
        Some(Cow::Borrowed(_)) => return changed,
    }
    true
}

fn has_text(content: &str) -> bool {
    let mut found = false;
    map_elements(content, |block| {
        let [kind] = find_members(block, ["type"]);
        found |= kind.and_then(unquote).as_deref() == Some("text");
        Cow::Borrowed(block)
    });
    found
}

fn with_text(content: Option<&str>, value: &str) -> String {
    let compact = parse_part(value).map(crate::message::compact);
    let text = quote(compact.as_deref().map_or(value, |raw| raw.get()));
    let block = format!(r#"{{"type":"text","text":{text}}}"#);
    let before = content.and_then(|json| json.strip_prefix('[')?.strip_suffix(']'));
    match before.map(str::trim) {
        Some("") | None => format!("[{block}]"),
        Some(blocks) => format!("[{blocks},{block}]"),
    }
}

/// A prompt's messages, each with one block of a kind the client knows.
pub(super) fn prompt_to_legacy(object: &mut Object<'_>, version: &str) -> bool {
    if knows_all(version) {
        return false;
    }
    let mapped = object.get("messages").map(|messages| {
        map_elements(messages, |message| {
            let [block] = find_members(message, ["content"]);
            match block.map(|block| degrade(block, version)) {
                Some(Cow::Owned(block)) => Cow::Owned(set_json_member(message, "content", &block)),
                _ => Cow::Borrowed(message),
            }
        })
    });
    match mapped {
        Some(Cow::Owned(messages)) => object.set_json("messages", messages),
        _ => return false,
    }
    true
}
