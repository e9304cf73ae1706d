//! Requests the lists of a server, page by page, within bounds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};

use super::{Catalog, CatalogItem, ListFacts, ListKind};
use upstream::{Connection, UpstreamCall, UpstreamError};
use wire::meta::SERVER_INFO;
use wire::object::{self, Object};
use wire::result::Freshness;
use wire::{Era, code};

/// A few examples suffice for a server with ten thousand invalid entries.
const REMARKS: usize = 20;
const PAGES: usize = 1000;
const ITEMS: usize = 10_000;
const BYTES: usize = 32 << 20;

/// Requests every list that the server declares. A failing tool list is an
/// error of the server; another list may fail without failing the rest.
pub async fn list(connection: &Connection, limit: Duration) -> Result<Catalog, UpstreamError> {
    let mut catalog = Catalog::default();
    for kind in ListKind::ALL {
        let mut list = ListBuilder::new(kind, connection.peer().era);
        match list.pages(connection, limit).await {
            Ok(()) => {}
            Err(error) if kind == ListKind::Tools => return Err(of_tools(error)),
            Err(UpstreamError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {
                list.facts.missing = true;
            }
            Err(error @ (UpstreamError::Rpc(_) | UpstreamError::Timeout { .. })) => {
                list.items.clear();
                list.remarks
                    .push(format!("{} failed: {error}", kind.method()));
            }
            Err(error) => return Err(error),
        }
        catalog.remarks.append(&mut list.remarks);
        catalog.put(kind, list.items, list.facts);
    }
    Ok(catalog)
}

fn of_tools(error: UpstreamError) -> UpstreamError {
    match error {
        UpstreamError::Rpc(error) => UpstreamError::Protocol(format!(
            "tools/list failed: {} (code {})",
            error.message, error.code
        )),
        UpstreamError::Timeout { limit } => {
            UpstreamError::Protocol(format!("tools/list: {}", UpstreamError::Timeout { limit }))
        }
        other => other,
    }
}

/// One list while its pages are read.
struct ListBuilder {
    kind: ListKind,
    era: Era,
    items: Vec<CatalogItem>,
    facts: ListFacts,
    keys: HashSet<String>,
    cursors: HashSet<String>,
    bytes: usize,
    full: bool,
    remarks: Vec<String>,
}

impl ListBuilder {
    fn new(kind: ListKind, era: Era) -> ListBuilder {
        ListBuilder {
            kind,
            era,
            items: Vec::new(),
            facts: ListFacts::default(),
            keys: HashSet::new(),
            cursors: HashSet::new(),
            bytes: 0,
            full: false,
            remarks: Vec::new(),
        }
    }

    async fn pages(
        &mut self,
        connection: &Connection,
        limit: Duration,
    ) -> Result<(), UpstreamError> {
        if !connection.peer().offers(self.kind.capability()) {
            return Ok(());
        }
        let mut cursor: Option<String> = None;
        for number in 0..PAGES {
            let params = cursor.map(|cursor| serde_json::json!({ "cursor": cursor }));
            let params = params.map(|params| to_raw_value(&params).expect("text serialises"));
            let call = UpstreamCall::new(self.kind.method(), limit).params(params.as_deref());
            let page = connection.background(call).await?.to_raw();
            self.judge(&page, number);
            cursor = self.add(&page)?;
            if cursor.is_none() || self.full {
                break;
            }
        }
        if cursor.is_some() || self.full {
            self.remark("cut short: too many pages or entries".into());
        }
        if self.kind == ListKind::Tools {
            self.leave_out(connection);
        }
        Ok(())
    }

    /// Removes the tools that the protocol forbids a client to call.
    fn leave_out(&mut self, connection: &Connection) {
        let remarks = &mut self.remarks;
        self.items.retain(|tool| {
            let fault = connection.tool_fault(&tool.key);
            if let Some(fault) = fault.as_ref().filter(|_| remarks.len() < REMARKS) {
                remarks.push(format!("tool {:?} was left out: {fault}", tool.key));
            }
            fault.is_none()
        });
    }

    fn remark(&mut self, text: String) {
        if self.remarks.len() < REMARKS {
            self.remarks.push(format!("{}: {text}", self.kind.method()));
        }
    }

    /// Records the facts that a page states about the whole list.
    fn judge(&mut self, page: &RawValue, number: usize) {
        let freshness = match self.era {
            Era::Modern => Freshness::read(page),
            Era::Legacy => Freshness::NONE,
        };
        if number == 0 {
            self.facts.freshness = freshness;
            self.facts.rest = rest(page, self.kind);
        } else {
            self.facts.freshness = self.facts.freshness.and(freshness);
        }
    }

    /// Adds one page; returns the cursor of the next.
    fn add(&mut self, page: &RawValue) -> Result<Option<String>, UpstreamError> {
        let kind = self.kind;
        let malformed = |what: &str| {
            let method = kind.method();
            UpstreamError::Protocol(format!("the answer to {method} is not one: {what}"))
        };
        if !object::is_object(page) {
            return Err(malformed("it is no object"));
        }
        let [entries, next] = object::pick(page, [kind.member(), "nextCursor"]);
        let Some(entries) = entries else {
            return Err(malformed(&format!("no member {:?}", kind.member())));
        };
        let next = next.filter(|next| !object::is_null(next)).map(|next| {
            let text = object::text(next).map(Cow::into_owned);
            text.ok_or_else(|| malformed("nextCursor is no string"))
        });
        let next = next.transpose()?;
        if !object::each_element(entries, |entry| self.entry(entry)) {
            return Err(malformed(&format!("{:?} is no list", kind.member())));
        }
        Ok(match next {
            Some(cursor) if !self.cursors.insert(cursor.clone()) => {
                self.remark("the server repeats a cursor; stopped there".into());
                None
            }
            next => next,
        })
    }

    fn entry(&mut self, entry: &RawValue) {
        let raw = Arc::from(wire::compact(entry).into_owned());
        let Some(item) = CatalogItem::new(self.kind, raw) else {
            let key = self.kind.key();
            return self.remark(format!("an entry without {key:?} was left out"));
        };
        self.bytes += entry.get().len();
        if self.items.len() >= ITEMS || self.bytes > BYTES {
            self.full = true;
        } else if self.keys.insert(item.key.clone()) {
            if item.hides {
                self.remark(format!("{:?} has characters that cannot be seen", item.key));
            }
            self.items.push(item);
        } else {
            let key = item.key;
            self.remark(format!("{key:?} is listed twice; the first one counts"));
        }
    }
}

/// The members of a page that are neither entries nor protocol fields.
fn rest(page: &RawValue, kind: ListKind) -> Option<Box<RawValue>> {
    let mut object = Object::read(page)?;
    object.retain(|name| {
        !matches!(name, "nextCursor" | "resultType" | "ttlMs" | "cacheScope")
            && name != kind.member()
    });
    if let Some(mut meta) = object.open("_meta").flatten()
        && meta.remove(SERVER_INFO)
    {
        if meta.is_empty() {
            object.remove("_meta");
        } else {
            object.set_object("_meta", meta);
        }
    }
    (!object.is_empty()).then(|| wire::compact(&object.into_raw()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    /// The list after these pages, and the cursor of the last page.
    fn gathered(era: Era, pages: &[&str]) -> (ListBuilder, Option<String>) {
        let mut list = ListBuilder::new(ListKind::Tools, era);
        let mut cursor = None;
        for (number, page) in pages.iter().enumerate() {
            let page = raw(page);
            list.judge(&page, number);
            cursor = list.add(&page).unwrap();
        }
        (list, cursor)
    }

    #[test]
    fn c3_pages_make_one_list_as_fresh_as_its_oldest_part() {
        let pages = [
            r#"{"tools":[{"name":"a"}],"nextCursor":"","ttlMs":9000,"cacheScope":"public","resultType":"complete","x":[1.0],"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":1}}"#,
            r#"{"tools":[ {"name":"b", "z":1e2} ],"ttlMs":500,"cacheScope":"public","y":1}"#,
        ];
        let (list, cursor) = gathered(Era::Modern, &pages);
        assert_eq!(cursor, None);
        let names: Vec<&str> = list.items.iter().map(|item| item.key.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(list.items[1].raw.get(), r#"{"name":"b", "z":1e2}"#);
        assert_eq!(list.facts.freshness.ttl_ms, 500);
        let rest = list.facts.rest.as_ref().unwrap().get();
        assert_eq!(rest, r#"{"x":[1.0],"_meta":{"k":1}}"#);
        // The caching fields of a legacy server are ignored.
        let (list, _) = gathered(Era::Legacy, &pages);
        assert_eq!(list.facts.freshness, Freshness::NONE);
        let (list, _) = gathered(Era::Modern, &[r#"{"tools":[],"resultType":"complete"}"#]);
        assert!(list.facts.rest.is_none());
    }

    #[test]
    fn t_c4_odd_entries_are_left_out_and_told() {
        let page = r#"{"tools":[{"name":"x","n":1},{"name":"x","n":2},{"name":""},{"n":1},7,{"name":"h\u200b"}]}"#;
        let (list, _) = gathered(Era::Modern, &[page]);
        assert_eq!(list.items.len(), 2);
        assert_eq!(list.items[0].raw.get(), r#"{"name":"x","n":1}"#);
        assert!(list.items[1].hides);
        let told = list.remarks.join("\n");
        for words in ["listed twice", "without \"name\"", "cannot be seen"] {
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn c4_what_is_no_list_is_an_error() {
        for page in [
            "[]",
            "{}",
            r#"{"tools":{}}"#,
            r#"{"tools":[],"nextCursor":1}"#,
        ] {
            let mut list = ListBuilder::new(ListKind::Tools, Era::Modern);
            assert!(list.add(&raw(page)).is_err(), "{page}");
        }
        let twice = r#"{"tools":[],"nextCursor":"a"}"#;
        let (list, cursor) = gathered(Era::Modern, &[twice, twice]);
        assert_eq!(cursor, None);
        assert!(list.remarks[0].contains("repeats a cursor"));
    }
}
