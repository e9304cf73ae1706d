//! The access that a key gives, ready for the hot path: one immutable value per
//! entry, replaced as a whole when anything about the entry changes.

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

/// An enabled entry and everything that it exposes.
#[derive(Debug)]
pub struct Grant {
    pub entry: EntryId,
    pub owner: Arc<str>,
    /// `entry:12`
    pub principal: Arc<str>,
    pub name: Arc<str>,
    pub digest: KeyDigest,
    pub expires_at: Option<Timestamp>,
    /// The enabled bindings, by name. The records are shared with the store:
    /// their text is in memory once, however many entries they are bound to.
    pub tools: Vec<Arc<ToolRecord>>,
    pub exposes: ExposedServers,
    /// The tools given beside the bindings, without those whose binding is
    /// disabled.
    pub filter: Option<Filter>,
    pub calls: CallsInFlight,
    /// Milliseconds since 1970; zero for never.
    used: AtomicU64,
    account: OnceLock<Arc<Account>>,
}

impl Grant {
    /// An entry with the tools bound to it and whether each binding is enabled;
    /// `None` for a disabled entry.
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
            // A disabled binding also removes its tool from the filter.
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

    /// Whether both grants give exactly the same access.
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

    /// Whether the filter gives a tool, or may give one of a server.
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

    /// The memory that the holders of its key use. The account outlives a
    /// change of the entry.
    pub fn account(&self, budget: &Budget) -> &Arc<Account> {
        self.account
            .get_or_init(|| budget.key((*self.owner != *ADMIN).then_some(&self.owner)))
    }

    /// Takes over the account and the last use of the previous grant.
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

/// The calls that a grant admits, until it is closed. A change that closes it
/// waits for the calls in flight, so that none is admitted afterwards.
#[derive(Debug, Default)]
pub struct CallsInFlight {
    /// The number of calls, times two; the lowest bit means closed.
    state: AtomicUsize,
    empty: Notify,
}

const CLOSED: usize = 1;
const ONE: usize = 2;

impl CallsInFlight {
    /// Returns whether it is open; a call that entered must leave.
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

    pub fn is_empty(&self) -> bool {
        self.state.load(Ordering::Acquire) < ONE
    }

    /// Admits no further call.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Waits until the calls in flight have left; false if they have not left
    /// within the limit.
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

/// How long a change waits for calls that are about to leave.
const PASSING: Duration = Duration::from_secs(2);

impl GrantDirectory {
    /// The grant of a key now. An unknown, disabled or expired key has none.
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

    /// Replaces grants; `None` removes one. The old grants admit no further
    /// calls, and are returned for [`GrantDirectory::settle`].
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

    /// Waits until no call uses a replaced grant; an error if one still does
    /// after the time limit.
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
