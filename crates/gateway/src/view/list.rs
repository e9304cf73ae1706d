//! One list of a view: pages made once per era, and cursors that are valid only
//! for the list they were made for.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::list_entry::ListEntry;
use crate::body::PreparedResult;
use fleet::catalog::ListKind;
use wire::message::compact;
use wire::meta::{SERVER_INFO, set_meta_member};
use wire::object::{each_member, empty, is_null, member, text};
use wire::result::Freshness;
use wire::{Era, RpcError, code};

/// Far more than any model takes, so that clients which read only the first
/// page miss nothing.
const PAGE_ENTRIES: usize = 2000;
const PAGE_BYTES: usize = 4 << 20;
const TAG: usize = 8;

pub(super) struct ViewList {
    pub kind: ListKind,
    pub entries: Vec<ListEntry>,
    pub freshness: Freshness,
    /// Further members of the result, as the server had them.
    pub rest: Option<Box<RawValue>>,
    /// The `serverInfo` in a modern result.
    pub info: Arc<RawValue>,
    /// The server has no such list.
    pub missing: bool,
    /// Each page is made at its first request.
    modern: OnceLock<Vec<OnceLock<PreparedResult>>>,
    legacy: OnceLock<Vec<OnceLock<PreparedResult>>>,
    /// Bytes of the pages made so far.
    paged: AtomicUsize,
    pub tag: OnceLock<[u8; TAG]>,
}

impl ViewList {
    pub(super) fn new(kind: ListKind, info: Arc<RawValue>) -> ViewList {
        ViewList {
            kind,
            entries: Vec::new(),
            freshness: Freshness::NONE,
            rest: None,
            info,
            missing: false,
            modern: OnceLock::new(),
            legacy: OnceLock::new(),
            paged: AtomicUsize::new(0),
            tag: OnceLock::new(),
        }
    }

    /// Bytes of its entries, pages aside. Text that is shared with other lists
    /// counts in each of them.
    pub(super) fn weight(&self) -> usize {
        let size = |entry: &ListEntry| {
            let (modern, legacy) = (entry.modern.get().len(), entry.legacy.get().len());
            let shared = Arc::ptr_eq(&entry.modern, &entry.legacy);
            128 + if shared { modern } else { modern + legacy }
        };
        self.entries.iter().map(size).sum()
    }

    /// The pages made so far, in bytes.
    pub(super) fn paged(&self) -> usize {
        self.paged.load(Ordering::Relaxed)
    }

    pub(super) fn page(
        &self,
        era: Era,
        params: Option<&RawValue>,
    ) -> Result<PreparedResult, RpcError> {
        let cell = match era {
            Era::Modern => &self.modern,
            Era::Legacy => &self.legacy,
        };
        let pages = cell.get_or_init(|| self.chunks().iter().map(|_| OnceLock::new()).collect());
        let cursor = params.and_then(|params| member(params, "cursor"));
        let number = match cursor.filter(|cursor| !is_null(cursor)) {
            None => 0,
            Some(cursor) => self.number_of(cursor).ok_or_else(bad_cursor)?,
        };
        let page = pages.get(number).ok_or_else(bad_cursor)?;
        Ok(page.get_or_init(|| self.make_page(era, number)).clone())
    }

    fn make_page(&self, era: Era, number: usize) -> PreparedResult {
        let chunks = self.chunks();
        let page = ListPage {
            list: self,
            era,
            entries: chunks[number],
            next: (number + 1 < chunks.len()).then(|| self.cursor(number + 1)),
        };
        let raw = serde_json::value::to_raw_value(&page);
        let raw = raw.expect("raw values serialise into memory");
        let page = PreparedResult::new(&compact(&raw));
        self.paged.fetch_add(page.value().len(), Ordering::Relaxed);
        page
    }

    /// The entries page by page; at least one page. The same for both eras,
    /// so a cursor is too.
    fn chunks(&self) -> Vec<&[ListEntry]> {
        let mut chunks = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            let size = entry.modern.get().len().max(entry.legacy.get().len());
            if at - start >= PAGE_ENTRIES || (at > start && bytes + size > PAGE_BYTES) {
                chunks.push(&self.entries[start..at]);
                (start, bytes) = (at, 0);
            }
            bytes += size;
        }
        chunks.push(&self.entries[start..]);
        chunks
    }

    fn cursor(&self, number: usize) -> String {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let mut bytes = self.tag().to_vec();
        bytes.extend(number.to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn number_of(&self, cursor: &RawValue) -> Option<usize> {
        let bytes = URL_SAFE_NO_PAD.decode(text(cursor)?.as_bytes()).ok()?;
        let (tag, number) = bytes.split_at_checked(TAG)?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        // The first page has none.
        (tag == self.tag() && number > 0).then_some(number as usize)
    }

    /// A hash of the entries: a cursor is valid for an equal list after a
    /// restart and on another replica, and for no other list.
    fn tag(&self) -> [u8; TAG] {
        *self.tag.get_or_init(|| {
            let mut hasher = Sha256::new();
            hasher.update(self.kind.method());
            for entry in &self.entries {
                hasher.update([0]);
                hasher.update(entry.modern.get());
            }
            let mut tag = [0; TAG];
            tag.copy_from_slice(&hasher.finalize()[..TAG]);
            tag
        })
    }

    /// Of the entries in modern spelling, in an order of our own.
    pub(super) fn hash(&self) -> String {
        let mut entries: Vec<&str> = self
            .entries
            .iter()
            .map(|entry| entry.modern.get())
            .collect();
        entries.sort_unstable();
        let mut hasher = Sha256::new();
        for entry in entries {
            hasher.update(entry);
            hasher.update([0]);
        }
        let digest = hasher.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn bad_cursor() -> RpcError {
    let message = "cursor: the list has changed; start from the first page";
    RpcError::new(code::INVALID_PARAMS, message)
}

struct ListPage<'a> {
    list: &'a ViewList,
    era: Era,
    entries: &'a [ListEntry],
    next: Option<String>,
}

impl Serialize for ListPage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = self.list;
        let mut map = serializer.serialize_map(None)?;
        let entries = self.entries.iter().map(|entry| entry.shown(self.era));
        map.serialize_entry(list.kind.member(), &entries.collect::<Vec<_>>())?;
        if let Some(cursor) = &self.next {
            map.serialize_entry("nextCursor", cursor)?;
        }
        let mut rest = list.rest.as_deref().map(Cow::Borrowed);
        if self.era == Era::Modern {
            map.serialize_entry("resultType", "complete")?;
            map.serialize_entry("ttlMs", &list.freshness.ttl_ms)?;
            map.serialize_entry("cacheScope", "private")?;
            let holder = rest.as_deref().unwrap_or(empty());
            rest = Some(Cow::Owned(set_meta_member(holder, SERVER_INFO, &list.info)));
        }
        if let Some(rest) = &rest {
            let mut outcome = Ok(());
            each_member(rest, |key, value| {
                if outcome.is_ok() {
                    outcome = map.serialize_entry(&key.decoded(), value);
                }
            });
            outcome?;
        }
        map.end()
    }
}
