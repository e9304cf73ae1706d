//! The open connections: their limits, their owners, and which of them are
//! closed to make room for another.
//!
//! The owner of a connection is unknown until its first request shows a
//! credential. To make room for a new one, idle connections without an owner
//! are closed first, then busy ones without, then idle ones of others, the
//! oldest first. If none can be closed, a few places are reserved for the admin
//! and for public paths such as `/healthz`; all other clients are refused
//! there.

mod one;
mod spare;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::error::ApiError;
use super::principal::Principal;
use parking_lot::Mutex;
use store::{EntryId, KeyDigest};

pub(super) use one::{ClientConnection, CloseOrder};
pub(super) use spare::Spares;

/// Idle connections without an owner that are closed at a time: finding the
/// oldest needs a scan of all.
const BATCH: usize = 64;
/// The same for connections with an owner.
const FEW: usize = 4;

/// Limits on the number of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub total: usize,
    /// From one address; loopback is exempt.
    pub per_source: usize,
    /// Beside `total`, for the admin and for public paths.
    pub reserve: usize,
    /// Of one user or entry.
    pub share: usize,
}

pub(super) struct ClientConnections {
    caps: Caps,
    start: Instant,
    /// The requests that are being handled and have no response yet.
    handled: AtomicUsize,
    /// The lock is held for a map operation or a scan of all connections, never
    /// across an await.
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    last: u64,
    all: HashMap<u64, ConnectionEntry>,
    /// Connections that stay open, without the reserve.
    regular: usize,
    reserved: usize,
    sources: HashMap<IpAddr, usize>,
    /// By [`ConnectionHolder::share`].
    owners: HashMap<u64, usize>,
}

struct ConnectionEntry {
    connection: Arc<ClientConnection>,
    source: IpAddr,
    owner: ConnectionHolder,
    reserved: bool,
    /// It is being closed and no longer takes a place.
    leaving: bool,
}

/// The principal that the last request on a connection showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectionHolder {
    Unknown,
    Admin,
    /// The admin, through a session of the console.
    Console(Arc<str>),
    User(Arc<str>),
    Entry {
        entry: EntryId,
        key: KeyDigest,
        /// The user who owns the entry; `None` for the admin's.
        user: Option<Arc<str>>,
    },
}

impl ConnectionHolder {
    fn of(principal: &Principal, session: Option<&str>) -> ConnectionHolder {
        match principal {
            Principal::Admin => session.map_or(ConnectionHolder::Admin, |session| {
                ConnectionHolder::Console(session.into())
            }),
            Principal::User(user) => ConnectionHolder::User(user.clone()),
            Principal::Entry(grant) => ConnectionHolder::Entry {
                entry: grant.entry,
                key: grant.digest,
                user: (*grant.owner != *store::ADMIN).then(|| grant.owner.clone()),
            },
        }
    }

    fn is_admin(&self) -> bool {
        matches!(self, ConnectionHolder::Admin | ConnectionHolder::Console(_))
    }

    /// The owner of the share that it counts against: a user has one share,
    /// which includes all entries.
    fn share(&self) -> u64 {
        match self {
            ConnectionHolder::Unknown => UNKNOWN_OWNER,
            ConnectionHolder::Admin | ConnectionHolder::Console(_) => ADMIN,
            ConnectionHolder::User(user)
            | ConnectionHolder::Entry {
                user: Some(user), ..
            } => tag_of_text("user", user),
            ConnectionHolder::Entry { key, .. } => tag_of_key(key),
        }
    }
}

const UNKNOWN_OWNER: u64 = 0;
const ADMIN: u64 = 1;

/// Distinguishes owners without a lock and without a copy.
fn tag(principal: &Principal, session: Option<&str>) -> u64 {
    match principal {
        Principal::Admin => session.map_or(ADMIN, |session| tag_of_text("console", session)),
        Principal::User(user) => tag_of_text("user", user),
        Principal::Entry(grant) => tag_of_key(&grant.digest),
    }
}

fn tag_of_text(kind: &str, text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (kind, text).hash(&mut hasher);
    hasher.finish() | 2
}

fn tag_of_key(digest: &KeyDigest) -> u64 {
    let mut start = [0; 8];
    start.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(start) | 2
}

/// One open connection; dropping it frees its place.
pub(super) struct ConnectionSlot {
    connections: Arc<ClientConnections>,
    pub connection: Arc<ClientConnection>,
    /// There is no room for another one like it.
    pub short: bool,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connection.end();
        let mut open = self.connections.open.lock();
        open.free(self.connection.id);
        open.all.remove(&self.connection.id);
    }
}

impl ClientConnections {
    pub(super) fn new(caps: Caps) -> Arc<ClientConnections> {
        Arc::new(ClientConnections {
            caps,
            start: Instant::now(),
            handled: AtomicUsize::new(0),
            open: Mutex::default(),
        })
    }

    /// Milliseconds since the start.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Reserves a place for a new connection, or `None` if even the reserve is
    /// full. `scarce`: descriptors are scarce, so only the reserve is left.
    pub(super) fn take(
        self: &Arc<ClientConnections>,
        ip: IpAddr,
        scarce: bool,
    ) -> Option<ConnectionSlot> {
        let source = source_of(ip);
        let caps = self.caps;
        let mut open = self.open.lock();
        let here = open.sources.get(&source).copied().unwrap_or(0);
        let crowded = here >= caps.per_source && !source.is_loopback();
        let full = open.regular >= caps.total;
        let reserved = scarce
            || crowded && !open.evict(|held| !held.reserved && held.source == source)
            || full && !open.evict(|held| !held.reserved);
        if reserved && open.reserved >= caps.reserve && !open.evict(|held| held.reserved) {
            return None;
        }
        open.last += 1;
        let connection = Arc::new(ClientConnection::new(open.last, self.now(), self.clone()));
        let held = ConnectionEntry {
            connection: connection.clone(),
            source,
            owner: ConnectionHolder::Unknown,
            reserved,
            leaving: false,
        };
        open.count(&held);
        open.all.insert(connection.id, held);
        Some(ConnectionSlot {
            connections: self.clone(),
            connection,
            short: reserved || open.regular >= caps.total,
        })
    }

    /// Closes some idle connections to free their descriptors; returns whether
    /// there were any.
    pub(super) fn relieve(&self) -> bool {
        self.open.lock().evict(|_| true)
    }

    /// Sets the owner of a connection.
    fn claim(&self, id: u64, principal: &Principal, session: Option<&str>) -> Result<(), ApiError> {
        let owner = ConnectionHolder::of(principal, session);
        let share = owner.share();
        let mut open = self.open.lock();
        let Some(held) = open.all.get(&id).filter(|held| !held.leaving) else {
            return Ok(());
        };
        let (connection, reserved) = (held.connection.clone(), held.reserved);
        let held_share = held.owner.share();
        if !owner.is_admin() {
            if reserved && open.regular >= self.caps.total {
                connection.order(CloseOrder::Finish);
                return Err(ApiError::unavailable("too many connections; try again"));
            }
            let its = open.owners.get(&share).copied().unwrap_or(0);
            // A change of owners within a share takes no more of it.
            let new = held_share != share;
            let mine = |held: &ConnectionEntry| held.owner.share() == share;
            if new && its >= self.caps.share && !open.evict(mine) {
                connection.order(CloseOrder::Finish);
                return Err(ApiError::unavailable(
                    "this user or entry has too many connections open; close some and try again",
                ));
            }
        }
        open.free(id);
        if let Some(mut held) = open.all.remove(&id) {
            held.reserved = reserved && owner.is_admin();
            held.owner = owner;
            held.leaving = false;
            open.count(&held);
            open.all.insert(id, held);
        }
        let tag = tag(principal, session);
        connection.tag.store(tag, Ordering::Relaxed);
        Ok(())
    }

    /// Sends an order to every connection, at shutdown.
    pub(super) fn order_all(&self, order: CloseOrder) {
        for held in self.open.lock().all.values() {
            held.connection.order(order);
        }
    }

    /// Ends every connection with its next response, and those that have been
    /// idle for a while at once.
    pub(super) fn retire_all(&self) {
        for held in self.open.lock().all.values() {
            if held.connection.retire().is_some() {
                held.connection.order(CloseOrder::Finish);
            }
        }
    }

    /// Ends the connections whose owner `gone` reports: each after its current
    /// response, idle ones with their next response or, if no request comes, at
    /// a call of this function a moment later. Streams that have not ended by
    /// then are cut.
    pub(super) fn retire(&self, gone: impl Fn(&ConnectionHolder) -> bool) {
        let mut open = self.open.lock();
        let mut late = Vec::new();
        for (id, held) in &open.all {
            if held.owner == ConnectionHolder::Unknown || held.leaving || !gone(&held.owner) {
                continue;
            }
            match held.connection.retire() {
                Some(CloseOrder::Cut) => late.push(*id),
                Some(CloseOrder::Finish) => held.connection.order(CloseOrder::Finish),
                None => {}
            }
        }
        for id in late {
            open.cut(id);
        }
    }

    /// Ends the admin's connections after their current responses, but for one.
    /// On one that was just used a request may be on its way: it ends with that
    /// response.
    pub(super) fn finish_admin(&self, except: u64) {
        for (id, held) in &self.open.lock().all {
            let connection = &held.connection;
            if held.owner.is_admin()
                && *id != except
                && (connection.retire().is_some() || connection.is_busy())
            {
                connection.order(CloseOrder::Finish);
            }
        }
    }

    /// Cuts those of them that have not ended yet.
    pub(super) fn cut_finished_admin(&self) {
        let mut open = self.open.lock();
        let late = |held: &ConnectionEntry| held.owner.is_admin() && held.connection.is_finishing();
        let ids = open.all.iter().filter(|(_, held)| late(held));
        let ids: Vec<u64> = ids.map(|(id, _)| *id).collect();
        for id in ids {
            open.cut(id);
        }
    }
}

impl OpenConnections {
    fn count(&mut self, held: &ConnectionEntry) {
        if held.reserved {
            self.reserved += 1;
        } else {
            self.regular += 1;
        }
        *self.sources.entry(held.source).or_default() += 1;
        *self.owners.entry(held.owner.share()).or_default() += 1;
    }

    /// Frees the place of a connection, though it may still be open.
    fn free(&mut self, id: u64) {
        let Some(held) = self.all.get_mut(&id).filter(|held| !held.leaving) else {
            return;
        };
        held.leaving = true;
        if held.reserved {
            self.reserved -= 1;
        } else {
            self.regular -= 1;
        }
        let (source, share) = (held.source, held.owner.share());
        less(&mut self.sources, source);
        less(&mut self.owners, share);
    }

    fn cut(&mut self, id: u64) {
        self.free(id);
        if let Some(held) = self.all.get(&id) {
            held.connection.order(CloseOrder::Cut);
        }
    }

    /// Closes the best candidates that `among` selects, the oldest first;
    /// returns whether there were any.
    fn evict(&mut self, among: impl Fn(&ConnectionEntry) -> bool) -> bool {
        let candidates = self.all.iter().filter(|(_, held)| among(held));
        let mut ranked: Vec<(Rank, u64, u64)> = candidates
            .filter_map(|(id, held)| Some((held.rank()?, held.connection.since(), *id)))
            .collect();
        let Some((first, ..)) = ranked.iter().min().copied() else {
            return false;
        };
        ranked.retain(|(rank, ..)| *rank == first);
        let count = match first {
            Rank::UnknownIdle => BATCH.min(ranked.len().div_ceil(8)),
            Rank::UnknownBusy | Rank::Idle | Rank::AdminsIdle => FEW.min(ranked.len().div_ceil(8)),
        };
        if count < ranked.len() {
            ranked.select_nth_unstable(count);
        }
        for (_, _, id) in &ranked[..count] {
            self.cut(*id);
        }
        true
    }
}

/// The order in which connections are closed to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    UnknownIdle,
    UnknownBusy,
    Idle,
    AdminsIdle,
}

impl ConnectionEntry {
    /// `None` for a connection that is never closed to make room.
    fn rank(&self) -> Option<Rank> {
        if self.leaving {
            return None;
        }
        match (&self.owner, self.connection.is_busy()) {
            (ConnectionHolder::Unknown, false) => Some(Rank::UnknownIdle),
            (ConnectionHolder::Unknown, true) => Some(Rank::UnknownBusy),
            (ConnectionHolder::Admin | ConnectionHolder::Console(_), false) => {
                Some(Rank::AdminsIdle)
            }
            (_, false) => Some(Rank::Idle),
            (_, true) => None,
        }
    }
}

/// Removes a count that has reached zero.
fn less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let std::collections::hash_map::Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// The source that an address counts for: one host usually owns a whole IPv6 /64.
pub(super) fn source_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        canonical => canonical,
    }
}

#[cfg(test)]
mod tests;
