//! The memory held for clients: one budget for request bodies, responses in
//! flight and stream buffers, with a share for each principal.

mod limit;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

pub use limit::default_budget;

/// Smaller texts are not counted: a connection holds at most one, and costs
/// more than that by itself.
pub const UNCOUNTED: usize = 4 << 10;

/// One share of the budget. Bytes taken from it are also taken from its parents.
#[derive(Debug)]
pub struct Account {
    used: AtomicUsize,
    limit: usize,
    above: Option<Arc<Account>>,
    /// Many principals share it: none of them is to blame when it is full.
    common: bool,
}

/// There is no room for this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error(
        "this credential's answers and requests in flight take all the memory it may have \
         ({} MiB); read or close open answers, then try again", limit >> 20
    )]
    Share { limit: usize },
    #[error("Portway is at its memory limit for requests and answers in flight; try again")]
    Everything,
}

impl Account {
    fn new(limit: usize, above: Option<Arc<Account>>, common: bool) -> Arc<Account> {
        Arc::new(Account {
            used: AtomicUsize::new(0),
            limit,
            above,
            common,
        })
    }

    /// A part of this account with a limit of its own.
    pub fn share(self: &Arc<Account>, limit: usize) -> Arc<Account> {
        Account::new(limit.min(self.limit), Some(self.clone()), false)
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The reason to refuse new work, if there is one.
    pub fn full(&self) -> Option<Full> {
        let above = || self.above.as_ref().and_then(|above| above.full());
        (self.used() >= self.limit)
            .then(|| self.reason())
            .or_else(above)
    }

    fn reason(&self) -> Full {
        if self.common {
            Full::Everything
        } else {
            Full::Share { limit: self.limit }
        }
    }

    /// This account, and those above it.
    fn chain(&self) -> impl Iterator<Item = &Account> {
        std::iter::successors(Some(self), |one| one.above.as_deref())
    }

    /// Counts bytes if there is room for them. An empty share takes any one
    /// text that fits into the whole budget: a limit on memory must not become
    /// a limit on the size of a response.
    pub fn take(self: &Arc<Account>, bytes: usize) -> Result<Charge, Full> {
        let charge = self.charge(bytes);
        for one in self.chain() {
            let used = one.used();
            if used > one.limit && (used > bytes || one.above.is_none()) {
                return Err(one.reason());
            }
        }
        Ok(charge)
    }

    /// Counts bytes that already exist, whether there is room or not.
    pub fn charge(self: &Arc<Account>, bytes: usize) -> Charge {
        for one in self.chain() {
            one.used.fetch_add(bytes, Ordering::Relaxed);
        }
        Charge {
            account: self.clone(),
            bytes,
        }
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        for one in self.account.chain() {
            one.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Charge {
    /// Bytes that are counted as long as a reference exists: the HTTP server
    /// keeps them until the client has received the last one.
    pub fn bind(self: Arc<Charge>, bytes: Bytes) -> Bytes {
        struct CountedBytes(
            Bytes,
            #[expect(dead_code, reason = "dropped with the bytes")] Arc<Charge>,
        );
        impl AsRef<[u8]> for CountedBytes {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(CountedBytes(bytes, self))
    }
}

/// The whole budget and its shares.
#[derive(Debug)]
pub struct Budget {
    everything: Arc<Account>,
    /// The share of all principals but the admin, who may also use the rest.
    clients: Arc<Account>,
    /// Held for a lookup, and only at the first use of a key.
    users: Mutex<HashMap<Arc<str>, Weak<Account>>>,
}

impl Budget {
    pub fn new(bytes: usize) -> Arc<Budget> {
        let everything = Account::new(bytes, None, true);
        let clients = bytes - bytes / 8;
        Arc::new(Budget {
            clients: Account::new(clients, Some(everything.clone()), true),
            everything,
            users: Mutex::default(),
        })
    }

    pub fn limit(&self) -> usize {
        self.everything.limit
    }

    pub fn admin(&self) -> &Arc<Account> {
        &self.everything
    }

    /// The share of clients without a credential.
    pub fn anybody(&self) -> &Arc<Account> {
        &self.clients
    }

    /// The share of one user: half of the budget.
    pub fn user(&self, user: &Arc<str>) -> Arc<Account> {
        let mut users = self.users.lock();
        if let Some(known) = users.get(user).and_then(Weak::upgrade) {
            return known;
        }
        users.retain(|_, account| account.strong_count() > 0);
        let account = self.clients.share(self.limit() / 2);
        users.insert(user.clone(), Arc::downgrade(&account));
        account
    }

    /// The share of one key: a quarter of the budget, within its user's share.
    /// `None` for a key of the admin's.
    pub fn key(&self, user: Option<&Arc<str>>) -> Arc<Account> {
        let limit = self.limit() / 4;
        match user {
            Some(user) => self.user(user).share(limit),
            None => self.clients.share(limit),
        }
    }
}
