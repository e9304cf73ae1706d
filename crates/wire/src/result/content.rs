use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::era;
use crate::message::compact;
use crate::object::{
    Object, each_element, is_object, map_elements, member, pick, quote, raw, set_member, text,
};

/// A content block in words, for clients whose revision lacks its kind:
/// `resource_link` came with 2025-06-18, `audio` with 2025-03-26.
pub(crate) fn degrade<'a>(block: &'a RawValue, version: &str) -> Cow<'a, RawValue> {
    if era::at_least(version, "2025-06-18") {
        return Cow::Borrowed(block);
    }
    let [kind, annotations] = pick(block, ["type", "annotations"]);
    let words = match kind.and_then(text).as_deref() {
        Some("resource_link") => link_in_words(block),
        Some("audio") if !era::at_least(version, "2025-03-26") => {
            let kind = member(block, "mimeType")
                .and_then(text)
                .unwrap_or("audio".into());
            format!("[{kind} content, which this client's protocol revision cannot carry]")
        }
        _ => return Cow::Borrowed(block),
    };
    let mut object = Object::new();
    object.set_text("type", "text");
    object.set_text("text", &words);
    if let Some(annotations) = annotations {
        object.set("annotations", annotations);
    }
    Cow::Owned(object.into_raw())
}

fn link_in_words(block: &RawValue) -> String {
    let [title, name, uri, description] = pick(block, ["title", "name", "uri", "description"]);
    let text_of = |raw: Option<&RawValue>| raw.and_then(text).unwrap_or_default().into_owned();
    let name = text_of(title.or(name));
    let (uri, description) = (text_of(uri), text_of(description));
    let colon = if description.is_empty() { "" } else { ": " };
    format!("[resource {name} {uri}{colon}{description}]")
}

/// A tool's answer: its content in kinds the client knows, its structured
/// content an object. True if anything changed.
pub(super) fn call_to_legacy<'a>(
    result: &'a RawValue,
    object: &mut Object<'a>,
    version: &str,
    wrapped: bool,
) -> bool {
    let [content, structured] = pick(result, ["content", "structuredContent"]);
    let mut changed = false;
    let mut blocks = content.map(|content| map_elements(content, |block| degrade(block, version)));
    if let Some(value) = structured {
        let wrap = wrapped || !is_object(value);
        if wrap {
            object.set_json(
                "structuredContent",
                format!(r#"{{"result":{}}}"#, value.get()),
            );
            changed = true;
        }
        // A client that cannot read the structured value gets it as text.
        let unseen = wrap || !era::at_least(version, "2025-06-18");
        if unseen && !blocks.as_deref().is_some_and(has_text) {
            blocks = Some(Cow::Owned(with_text(blocks.as_deref(), value)));
        }
    }
    match blocks {
        None => object.set_json("content", "[]"),
        Some(Cow::Owned(blocks)) => object.set_json("content", String::from(blocks.get())),
        Some(Cow::Borrowed(_)) => return changed,
    }
    true
}

fn has_text(content: &RawValue) -> bool {
    let mut found = false;
    each_element(content, |block| {
        found |= member(block, "type").and_then(text).as_deref() == Some("text");
    });
    found
}

fn with_text(content: Option<&RawValue>, value: &RawValue) -> Box<RawValue> {
    let block = format!(
        r#"{{"type":"text","text":{}}}"#,
        quote(compact(value).get())
    );
    let before = content.and_then(|raw| raw.get().strip_prefix('[')?.strip_suffix(']'));
    match before.map(str::trim) {
        Some("") | None => raw(format!("[{block}]")),
        Some(blocks) => raw(format!("[{blocks},{block}]")),
    }
}

/// A prompt's messages, each with one block of a kind the client knows.
pub(super) fn prompt_to_legacy<'a>(
    result: &'a RawValue,
    object: &mut Object<'a>,
    version: &str,
) -> bool {
    let Some(messages) = member(result, "messages") else {
        return false;
    };
    let mapped = map_elements(messages, |message| {
        match member(message, "content").map(|block| degrade(block, version)) {
            Some(Cow::Owned(block)) => Cow::Owned(set_member(message, "content", &block)),
            _ => Cow::Borrowed(message),
        }
    });
    match mapped {
        Cow::Owned(messages) => object.set_json("messages", String::from(messages.get())),
        Cow::Borrowed(_) => return false,
    }
    true
}
