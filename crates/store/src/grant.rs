//! What a key opens, ready for the hot path: one immutable value per entry,
//! replaced as a whole when anything about the entry changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{
    ADMIN, Entry, EntryId, ExposedServers, KeyDigest, StoreErrorKind, Timestamp, ToolRecord,
};
use crate::memory::{Account, Budget};
use config::filters::Filter;

/// An enabled entry and all that it gives.
#[derive(Debug)]
pub struct Grant {
    pub entry: EntryId,
    pub owner: Arc<str>,
    /// `entry:12`
    pub principal: Arc<str>,
    pub name: Arc<str>,
    pub digest: KeyDigest,
    pub expires_at: Option<Timestamp>,
    /// The enabled bindings, by name. The records are those of the store:
    /// their text is in memory once, however many entries they are bound to.
    pub tools: Vec<Arc<ToolRecord>>,
    pub exposes: ExposedServers,
    /// What it gives beside its bindings, without the tools of those that are
    /// switched off.
    pub filter: Option<Filter>,
    pub calls: CallsInFlight,
    /// Milliseconds since 1970; zero for never.
    used: AtomicU64,
    account: OnceLock<Arc<Account>>,
}

impl Grant {
    /// An entry with the tools bound to it and whether each binding is enabled;
    /// `None` for an entry that is switched off.
    pub fn new(
        entry: &Entry,
        bound: impl IntoIterator<Item = (Arc<ToolRecord>, bool)>,
    ) -> Option<Grant> {
        if !entry.enabled {
            return None;
        }
        let (mut tools, mut off) = (Vec::new(), Vec::new());
        for (tool, enabled) in bound {
            if enabled { &mut tools } else { &mut off }.push(tool);
        }
        let mut filter = entry.filter.clone();
        if let Some(filter) = &mut filter {
            tools.retain(|tool| !filter.denies(&tool.server, &tool.tool));
            // A binding that is switched off takes its tool away.
            let key = |tool: &Arc<ToolRecord>| format!("{}:{}", tool.server, tool.tool);
            filter.deny.extend(off.iter().map(key));
        }
        tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let used = entry.key.last_used_at.map_or(0, Timestamp::as_millis);
        Some(Grant {
            entry: entry.id,
            owner: entry.owner.clone(),
            principal: format!("entry:{}", entry.id).into(),
            name: entry.name.as_str().into(),
            digest: entry.key.digest,
            expires_at: entry.key.expires_at,
            tools,
            exposes: entry.exposes.clone(),
            filter,
            calls: CallsInFlight::default(),
            used: AtomicU64::new(used),
            account: OnceLock::new(),
        })
    }

    /// Whether it gives exactly what the other gives.
    pub(super) fn gives_the_same(&self, other: &Grant) -> bool {
        self.digest == other.digest
            && self.expires_at == other.expires_at
            && self.owner == other.owner
            && self.name == other.name
            && self.tools == other.tools
            && self.exposes == other.exposes
            && self.filter == other.filter
    }

    pub fn tool(&self, name: &str) -> Option<&Arc<ToolRecord>> {
        let found = self
            .tools
            .binary_search_by(|tool| tool.name.as_str().cmp(name));
        found.ok().map(|at| &self.tools[at])
    }

    /// Whether its filter gives a tool, or may give one of a server.
    pub fn filter_gives(&self, server: &str, tool: Option<&str>) -> bool {
        self.filter.as_ref().is_some_and(|filter| match tool {
            Some(tool) => filter.grants(server, tool),
            None => filter.may_grant(server),
        })
    }

    pub fn expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    pub fn touch(&self, now: Timestamp) {
        self.used.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// What the holders of its key have in memory. The account outlives a
    /// change of the entry.
    pub fn account(&self, budget: &Budget) -> &Arc<Account> {
        self.account
            .get_or_init(|| budget.key((*self.owner != *ADMIN).then_some(&self.owner)))
    }

    /// Takes over what the grant before it has noted.
    fn inherit(&self, before: &Grant) {
        if let Some(account) = before.account.get() {
            // A new grant has no account yet.
            let _ = self.account.set(account.clone());
        }
        if let Some(used) = before.last_used().filter(|_| self.digest == before.digest) {
            self.touch(used);
        }
    }

    pub(crate) fn last_used(&self) -> Option<Timestamp> {
        let used = self.used.load(Ordering::Relaxed);
        (used > 0).then(|| Timestamp::from_millis(used))
    }
}

/// The calls that a grant lets through, until it is closed. A change that closes
/// it waits for the calls in flight, so that none gets through afterwards.
#[derive(Debug, Default)]
pub struct CallsInFlight {
    /// The number of calls, times two; the lowest bit says closed.
    state: AtomicUsize,
    empty: Notify,
}

const CLOSED: usize = 1;
const ONE: usize = 2;

impl CallsInFlight {
    /// Whether it is open; a call that entered must leave.
    pub fn enter(&self) -> bool {
        let before = self.state.fetch_add(ONE, Ordering::AcqRel);
        if before & CLOSED == 0 {
            return true;
        }
        self.leave();
        false
    }

    pub fn leave(&self) {
        let before = self.state.fetch_sub(ONE, Ordering::AcqRel);
        if before == ONE | CLOSED {
            self.empty.notify_waiters();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether no call is in flight.
    pub fn is_empty(&self) -> bool {
        self.state.load(Ordering::Acquire) < ONE
    }

    /// No call enters from now on.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Waits until the calls in flight have left; false if they have not within
    /// the limit.
    pub async fn emptied(&self, limit: Duration) -> bool {
        let waiting = async {
            loop {
                let mut empty = std::pin::pin!(self.empty.notified());
                empty.as_mut().enable();
                if self.state.load(Ordering::Acquire) < ONE {
                    return;
                }
                empty.await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }
}

/// All grants by key. The lock is held for a lookup or a swap.
#[derive(Debug, Default)]
pub struct GrantDirectory {
    inner: RwLock<GrantMaps>,
}

#[derive(Debug, Default)]
struct GrantMaps {
    by_key: HashMap<KeyDigest, Arc<Grant>>,
    by_entry: HashMap<EntryId, Arc<Grant>>,
}

/// How long a change waits for calls that are just on their way out.
const PASSING: Duration = Duration::from_secs(2);

impl GrantDirectory {
    /// What a key opens now. Unknown, switched off and expired are the same.
    pub fn find(&self, key: &KeyDigest) -> Option<Arc<Grant>> {
        let inner = self.inner.read();
        let grant = inner.by_key.get(key)?;
        // The map has found it by its hash; this compares in constant time.
        let good = grant.digest.matches(key) && !grant.expired(Timestamp::now());
        good.then(|| grant.clone())
    }

    pub fn of_entry(&self, entry: EntryId) -> Option<Arc<Grant>> {
        let inner = self.inner.read();
        inner.by_entry.get(&entry).cloned()
    }

    /// By number: names are not unique.
    pub fn named(&self, name: &str) -> Vec<Arc<Grant>> {
        let inner = self.inner.read();
        let named = inner.by_entry.values().filter(|grant| *grant.name == *name);
        let mut named: Vec<_> = named.cloned().collect();
        named.sort_unstable_by_key(|grant| grant.entry.0);
        named
    }

    pub fn all(&self) -> Vec<Arc<Grant>> {
        let inner = self.inner.read();
        inner.by_entry.values().cloned().collect()
    }

    /// Puts new grants in the place of old ones; `None` takes one away. What
    /// was handed out before does not let anything through any more: the old
    /// grants come back, for [`GrantDirectory::settle`].
    pub fn replace(&self, changed: Vec<(EntryId, Option<Grant>)>) -> Vec<Arc<Grant>> {
        let mut inner = self.inner.write();
        let mut old = Vec::new();
        for (entry, grant) in changed {
            if let Some(before) = inner.by_entry.remove(&entry) {
                inner.by_key.remove(&before.digest);
                before.calls.close();
                if let Some(grant) = &grant {
                    grant.inherit(&before);
                }
                old.push(before);
            }
            if let Some(grant) = grant.map(Arc::new) {
                inner.by_key.insert(grant.digest, grant.clone());
                inner.by_entry.insert(entry, grant);
            }
        }
        old
    }

    /// Waits until nothing passes on the strength of what has been replaced;
    /// an error if something still does after a while.
    pub async fn settle(old: &[Arc<Grant>]) -> Result<(), StoreErrorKind> {
        let until = Instant::now() + PASSING;
        for grant in old {
            let left = until.saturating_duration_since(Instant::now());
            if !grant.calls.emptied(left).await {
                let entry = grant.entry;
                return Err(StoreErrorKind::Unavailable(format!(
                    "it is saved, but a server does not take what entry {entry} was sending it"
                )));
            }
        }
        Ok(())
    }
}
