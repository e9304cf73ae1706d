//! The list entry of each bound tool, made once and shared by the views of all
//! entries that the tool is bound to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::ToolTraits;
use super::list_entry::{self, ListEntry, PreparedTool};
use fleet::Offer;
use fleet::catalog::CatalogItem;
use store::{ToolId, ToolRecord};
use wire::Era;
use wire::invisible::without_tags;
use wire::object::set_member;

/// Views own the texts; this holds only weak references.
///
/// The lock is held for a lookup, never while a text is made.
#[derive(Default)]
pub(super) struct ToolTexts(Mutex<TextIndex>);

#[derive(Default)]
struct TextIndex {
    by_tool: HashMap<ToolId, ToolText>,
    /// At this number of texts those that no view uses are removed.
    sweep_at: usize,
}

struct ToolText {
    record: Weak<ToolRecord>,
    /// The server's own entry that it was made of, and how.
    raw: Weak<RawValue>,
    era: Era,
    stale: bool,
    modern: Weak<RawValue>,
    legacy: Weak<RawValue>,
    traits: ToolTraits,
}

/// Fewer texts are not worth a sweep.
const SWEEP: usize = 1024;

impl ToolTexts {
    /// The tool of a record, under the record's name and description.
    pub(super) fn get(
        &self,
        record: &Arc<ToolRecord>,
        item: &CatalogItem,
        offer: &Offer,
    ) -> PreparedTool {
        let mut known = self.0.lock();
        let text = known.by_tool.get(&record.id);
        if let Some(prepared) = text.and_then(|text| text.of(record, item, offer)) {
            return prepared;
        }
        drop(known);
        let raw = described(list_entry::renamed(item, &record.name), record);
        let prepared = list_entry::tool(raw, offer.peer.era, offer.stale);
        known = self.0.lock();
        known.put(record.id, ToolText::new(record, item, offer, &prepared));
        prepared
    }
}

impl TextIndex {
    fn put(&mut self, id: ToolId, text: ToolText) {
        self.by_tool.insert(id, text);
        if self.by_tool.len() > self.sweep_at.max(SWEEP) {
            self.by_tool
                .retain(|_, text| text.modern.strong_count() > 0);
            self.sweep_at = self.by_tool.len() * 2;
        }
    }
}

impl ToolText {
    fn new(
        record: &Arc<ToolRecord>,
        item: &CatalogItem,
        offer: &Offer,
        prepared: &PreparedTool,
    ) -> ToolText {
        ToolText {
            record: Arc::downgrade(record),
            raw: Arc::downgrade(&item.raw),
            era: offer.peer.era,
            stale: offer.stale,
            modern: Arc::downgrade(&prepared.entry.modern),
            legacy: Arc::downgrade(&prepared.entry.legacy),
            traits: prepared.traits.clone(),
        }
    }

    /// The text, if it was made of exactly this and a view still has it.
    fn of(
        &self,
        record: &Arc<ToolRecord>,
        item: &CatalogItem,
        offer: &Offer,
    ) -> Option<PreparedTool> {
        let same = std::ptr::eq(self.record.as_ptr(), Arc::as_ptr(record))
            && std::ptr::eq(self.raw.as_ptr(), Arc::as_ptr(&item.raw))
            && self.era == offer.peer.era
            && self.stale == offer.stale;
        if !same {
            return None;
        }
        Some(PreparedTool {
            entry: ListEntry {
                modern: self.modern.upgrade()?,
                legacy: self.legacy.upgrade()?,
                stale: self.stale,
            },
            traits: self.traits.clone(),
        })
    }
}

fn described(raw: Arc<RawValue>, record: &ToolRecord) -> Arc<RawValue> {
    let Some(description) = &record.description else {
        return raw;
    };
    let quoted = serde_json::Value::from(description.as_str()).to_string();
    match RawValue::from_string(without_tags(&quoted).into_owned()) {
        Ok(description) => Arc::from(set_member(&raw, "description", &description)),
        Err(_) => raw,
    }
}
