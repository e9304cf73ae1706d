//! The latest events, in order and bounded. A newer event on the same subject
//! replaces the older one: a slow reader gets the latest of each, once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use gateway::Renames;
use gateway::activity::CallRecord;

/// Room for all servers twice, and some thousand calls.
const KEPT: usize = 8192;

#[derive(Clone, Debug)]
pub(super) enum News {
    Server(Arc<str>),
    Removed(Arc<str>),
    Catalog(Arc<str>),
    Renamed(Arc<Renames>),
    Entries,
    Call(Arc<CallRecord>),
}

/// The subject on which a newer event replaces an older one: its kind, and the
/// server if it has one.
type Subject = (&'static str, Option<Arc<str>>);

impl News {
    fn subject(&self) -> Option<Subject> {
        match self {
            News::Server(name) | News::Removed(name) => Some(("server", Some(name.clone()))),
            News::Catalog(name) => Some(("catalog", Some(name.clone()))),
            News::Entries => Some(("entries", None)),
            News::Renamed(_) | News::Call(_) => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Ring {
    last: u64,
    /// The last event that was dropped without a newer one in its place.
    floor: u64,
    items: BTreeMap<u64, News>,
    latest: HashMap<Subject, u64>,
}

impl Ring {
    /// The number of the newest event.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn push(&mut self, news: News) {
        self.last += 1;
        if let Some(subject) = news.subject()
            && let Some(older) = self.latest.insert(subject, self.last)
        {
            self.items.remove(&older);
        }
        self.items.insert(self.last, news);
        while self.items.len() > KEPT {
            let Some((number, old)) = self.items.pop_first() else {
                break;
            };
            self.floor = number;
            if let Some(subject) = old.subject() {
                self.latest.remove(&subject);
            }
        }
    }

    /// The first `most` after `seen`; `None` if some were dropped.
    pub(super) fn after(&self, seen: u64, most: usize) -> Option<Vec<(u64, News)>> {
        if seen < self.floor || seen > self.last {
            return None;
        }
        let newer = self.items.range(seen + 1..).take(most);
        let newer = newer.map(|(number, news)| (*number, news.clone()));
        Some(newer.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> News {
        News::Server(name.into())
    }

    #[test]
    fn g4_who_is_behind_gets_the_latest_of_each_once() {
        let mut ring = Ring::default();
        for _ in 0..100_000 {
            ring.push(server("a"));
            ring.push(server("b"));
            ring.push(News::Catalog("a".into()));
        }
        ring.push(News::Removed("b".into()));
        let late = ring.after(0, usize::MAX).unwrap();
        let kinds: Vec<String> = late.iter().map(|(_, news)| format!("{news:?}")).collect();
        assert_eq!(
            kinds,
            [r#"Server("a")"#, r#"Catalog("a")"#, r#"Removed("b")"#]
        );
        assert_eq!(late.last().unwrap().0, ring.last());
        assert!(ring.after(ring.last(), 1).unwrap().is_empty());
        assert!(ring.after(ring.last() + 1, 1).is_none());
    }

    #[test]
    fn g4_what_is_gone_without_a_newer_word_is_a_gap() {
        let mut ring = Ring::default();
        for n in 0..KEPT + 10 {
            ring.push(server(&n.to_string()));
        }
        assert!(ring.after(0, 1).is_none());
        assert!(ring.after(9, 1).is_none());
        assert_eq!(ring.after(10, usize::MAX).unwrap().len(), KEPT);
        assert_eq!(ring.latest.len(), KEPT);
    }
}
