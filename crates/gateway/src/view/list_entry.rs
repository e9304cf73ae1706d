//! One entry of a list in the spelling of each era.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::ToolTraits;
use fleet::catalog::CatalogItem;
use wire::Era;
use wire::header::{self, ParamHeader};
use wire::invisible::without_tags;
use wire::meta::set_meta_member;
use wire::object::{inner_member, member, set_member, text};
use wire::result::{tool_to_legacy, tool_to_modern};
use wire::schema::mentions;

/// The `_meta` member of entries whose server is not connected.
const STALE: &str = "portway/stale";

/// One entry in both spellings; often they are the same.
pub(super) struct ListEntry {
    pub modern: Arc<RawValue>,
    pub legacy: Arc<RawValue>,
    /// Its server is not connected.
    pub stale: bool,
}

impl ListEntry {
    pub(super) fn same(raw: Arc<RawValue>, stale: bool) -> ListEntry {
        ListEntry {
            modern: raw.clone(),
            legacy: raw,
            stale,
        }
    }

    pub(super) fn spelled(&self, era: Era) -> &Arc<RawValue> {
        match era {
            Era::Modern => &self.modern,
            Era::Legacy => &self.legacy,
        }
    }

    /// As it is listed.
    pub(super) fn shown(&self, era: Era) -> Cow<'_, RawValue> {
        let raw = self.spelled(era);
        if !self.stale {
            return Cow::Borrowed(raw);
        }
        Cow::Owned(set_meta_member(raw, STALE, RawValue::TRUE))
    }
}

/// An entry under another name, for an endpoint of many servers. Invisible
/// characters, which a model would read and a person would not, are removed.
pub(super) fn renamed(item: &CatalogItem, name: &str) -> Arc<RawValue> {
    let text = item.raw.get();
    let mut out = String::with_capacity(text.len() + name.len() + 16);
    out.push_str(&without_tags(&text[..item.key_at.start]));
    out.push_str(&serde_json::to_string(name).expect("a string serialises into memory"));
    out.push_str(&without_tags(&text[item.key_at.end..]));
    let made = RawValue::from_string(out).expect("one string in place of another");
    Arc::from(made)
}

/// A tool ready for a list.
pub(super) struct PreparedTool {
    pub entry: ListEntry,
    pub traits: ToolTraits,
}

/// A prompt, which has no traits of a tool.
impl From<ListEntry> for PreparedTool {
    fn from(entry: ListEntry) -> PreparedTool {
        PreparedTool {
            entry,
            traits: ToolTraits::default(),
        }
    }
}

/// A tool in both spellings. The spelling of its server's era stays as it is,
/// invalid header annotations aside.
pub(super) fn tool(raw: Arc<RawValue>, from: Era, stale: bool) -> PreparedTool {
    let (raw, headers) = with_headers(raw);
    let spelled = |spelling: Cow<'_, RawValue>| match spelling {
        Cow::Borrowed(_) => raw.clone(),
        Cow::Owned(made) => Arc::from(made),
    };
    let (modern, legacy) = match from {
        Era::Modern => (raw.clone(), spelled(tool_to_legacy(&raw))),
        Era::Legacy => (spelled(tool_to_modern(&raw)), raw.clone()),
    };
    PreparedTool {
        traits: ToolTraits {
            task_only: from == Era::Legacy && is_task_only(&raw),
            wrapped: from == Era::Modern && !Arc::ptr_eq(&modern, &legacy),
            headers,
        },
        entry: ListEntry {
            modern,
            legacy,
            stale,
        },
    }
}

/// Whether a tool of revision 2025-11-25 runs only as a task.
fn is_task_only(raw: &RawValue) -> bool {
    mentions(raw.get(), "taskSupport")
        && inner_member(raw, "execution", "taskSupport")
            .and_then(text)
            .as_deref()
            == Some("required")
}

/// HTTP clients drop a tool with an invalid header annotation, so invalid
/// annotations are removed.
fn with_headers(raw: Arc<RawValue>) -> (Arc<RawValue>, Vec<ParamHeader>) {
    if !mentions(raw.get(), "x-mcp-header") {
        return (raw, Vec::new());
    }
    let Some(schema) = member(&raw, "inputSchema") else {
        return (raw, Vec::new());
    };
    match header::param_headers(schema) {
        Ok(headers) => (raw, headers),
        Err(_) => {
            let schema = header::without_annotations(schema);
            let bare = set_member(&raw, "inputSchema", &schema);
            (Arc::from(bare), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::catalog::ListKind;

    fn raw(json: &str) -> Arc<RawValue> {
        Arc::from(RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn only_the_name_changes() {
        for (json, wanted) in [
            (r#"{"name":"a"}"#, r#"{"name":"b\"c"}"#),
            (
                r#"{ "x" : 1e400, "na\u006de":"\u0061","z":{"name":"a"} }"#,
                r#"{ "x" : 1e400, "na\u006de":"b\"c","z":{"name":"a"} }"#,
            ),
        ] {
            let item = CatalogItem::new(ListKind::Tools, raw(json)).unwrap();
            assert_eq!(item.key, "a");
            assert_eq!(renamed(&item, "b\"c").get(), wanted);
        }
    }

    #[test]
    fn trap07_annotations_nobody_can_follow_are_taken_out() {
        let bad = raw(
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}},"z":1}"#,
        );
        let prepared = tool(bad, Era::Modern, false);
        assert!(prepared.traits.headers.is_empty());
        assert_eq!(
            prepared.entry.modern.get(),
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}},"z":1}"#
        );
        let good = raw(
            r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#,
        );
        let prepared = tool(good.clone(), Era::Modern, false);
        assert_eq!(prepared.traits.headers[0].name, "Mcp-Param-A");
        assert!(Arc::ptr_eq(&prepared.entry.modern, &good));
    }

    #[test]
    fn tools_are_spelled_for_the_other_era_only() {
        let odd = r#"{"name":"t","execution":{"taskSupport":"optional"},"outputSchema":{"type":"array"}}"#;
        let modern = tool(raw(odd), Era::Modern, false);
        assert!(modern.traits.wrapped);
        assert_eq!(modern.entry.modern.get(), odd);
        assert!(
            modern
                .entry
                .legacy
                .get()
                .contains(r#""required":["result"]"#)
        );
        let legacy = tool(raw(odd), Era::Legacy, false);
        assert!(!legacy.traits.wrapped && !legacy.traits.task_only);
        let required = odd.replace("optional", "required");
        assert!(tool(raw(&required), Era::Legacy, false).traits.task_only);
        assert!(!tool(raw(&required), Era::Modern, false).traits.task_only);
        assert_eq!(legacy.entry.legacy.get(), odd);
        assert_eq!(
            legacy.entry.modern.get(),
            r#"{"name":"t","outputSchema":{"type":"array"}}"#
        );
    }
}
