//! The sessions in memory: those in use, within bounds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::memory::StreamMemory;
use super::stream::MessageStream;
use super::token::{Serial, SessionToken};
use super::{Caller, Scope, Session, SessionState};
use crate::seal::{Seal, SealPurpose, unix_seconds};
use store::Grant;

const MAX_LIVE: usize = 16_384;
/// Sessions of one user or principal, so that others have room.
const MAX_PER_SHARE: usize = MAX_LIVE / 2;
const MAX_ENDED: usize = 16_384;
const IDLE: Duration = Duration::from_secs(30 * 60);
/// For a session whose id holds all of its state. Most idle sessions are of
/// clients that disconnected without ending them.
const PLAIN_IDLE: Duration = Duration::from_secs(20);
const TEND: Duration = Duration::from_secs(15);

pub struct Sessions {
    seal: Arc<Seal>,
    memory: Arc<StreamMemory>,
    clock: Instant,
    /// The lock is held for map operations, never across an await.
    live: Mutex<LiveSessions>,
}

#[derive(Default)]
struct LiveSessions {
    /// By the id the client sends.
    sessions: HashMap<Box<str>, Arc<Session>>,
    /// By [`Caller::share`].
    shares: HashMap<Arc<str>, usize>,
    ended: HashSet<Serial>,
    /// The same, oldest first.
    ended_order: VecDeque<Serial>,
}

/// The reason that a session is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSession {
    /// Never opened, of another principal or endpoint, expired or ended: the
    /// client does not learn which.
    #[error("unknown session")]
    Unknown,
    #[error("too many sessions in use")]
    Full,
}

impl Sessions {
    pub fn new(seal: Arc<Seal>) -> Sessions {
        Sessions {
            seal,
            memory: Arc::default(),
            clock: Instant::now(),
            live: Mutex::default(),
        }
    }

    /// How many bytes all streams may keep together.
    pub(crate) fn set_room(&self, bytes: usize) {
        self.memory.set_room(bytes);
    }

    #[cfg(test)]
    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The id of a new session, which takes no memory until it is used.
    pub fn open(&self, caller: &Caller, version: &'static str, capabilities: &RawValue) -> String {
        let token = SessionToken::new(version, capabilities);
        self.seal
            .seal(SealPurpose::Session, &owner(caller), &token.encode())
    }

    /// The session with this id, if it is one of this caller's.
    pub fn find(&self, caller: &Caller, id: &str) -> Result<Arc<Session>, NoSession> {
        if let Some(session) = self.live.lock().sessions.get(id) {
            if !session.is_of(caller) || session.expires <= unix_seconds() {
                return Err(NoSession::Unknown);
            }
            session.touch(self.now());
            return Ok(session.clone());
        }
        let opened = self.seal.open(SealPurpose::Session, &owner(caller), id);
        let token = opened.and_then(|bytes| SessionToken::decode(&bytes));
        let token = token.filter(|token| token.expires > unix_seconds());
        let token = token.ok_or(NoSession::Unknown)?;
        let mut live = self.live.lock();
        if live.ended.contains(&token.serial) {
            return Err(NoSession::Unknown);
        }
        // Another request of the same client may have been first.
        if let Some(session) = live.sessions.get(id) {
            return Ok(session.clone());
        }
        live.make_room(caller.share())?;
        let own = MessageStream::new(self.memory.clone(), true);
        let session = self.make(caller, token, own);
        live.insert(id, session.clone());
        Ok(session)
    }

    /// A session that lives exactly as long as one connection, whose every
    /// message goes to `pipe`.
    pub fn attached(
        &self,
        caller: &Caller,
        version: &'static str,
        capabilities: &RawValue,
        pipe: &Arc<MessageStream>,
    ) -> Arc<Session> {
        let token = SessionToken::new(version, capabilities);
        self.make(caller, token, pipe.clone())
    }

    /// A stream for [`Sessions::attached`].
    pub fn pipe(&self) -> Arc<MessageStream> {
        MessageStream::new(self.memory.clone(), false)
    }

    fn make(&self, caller: &Caller, token: SessionToken, own: Arc<MessageStream>) -> Arc<Session> {
        Arc::new(Session {
            version: token.version,
            capabilities: token.capabilities.into(),
            owner: caller.clone(),
            expires: token.expires,
            serial: token.serial,
            key: format!("{:032x}", u128::from_be_bytes(token.serial)).into(),
            ended: CancellationToken::new(),
            own,
            memory: self.memory.clone(),
            used: AtomicU64::new(self.now()),
            relied_on: AtomicBool::new(false),
            state: Mutex::new(SessionState::default()),
        })
    }

    /// Ends a session for good.
    pub fn end(&self, caller: &Caller, id: &str) -> Result<(), NoSession> {
        let session = self.find(caller, id)?;
        let mut live = self.live.lock();
        live.remove(id);
        if live.ended.insert(session.serial) {
            live.ended_order.push_back(session.serial);
        }
        if live.ended_order.len() > MAX_ENDED
            && let Some(oldest) = live.ended_order.pop_front()
        {
            live.ended.remove(&oldest);
        }
        drop(live);
        session.end();
        Ok(())
    }

    /// Ends the sessions of grants for which `is_revoked` is true.
    pub(crate) fn end_revoked(&self, is_revoked: impl Fn(&Grant) -> bool) {
        // Each key is looked up once.
        let mut known = HashMap::new();
        self.end_where(|session| {
            let grant = session.owner.scope.grant();
            grant.is_some_and(|grant| {
                let key = (grant.entry, *grant.digest.as_bytes());
                *known.entry(key).or_insert_with(|| is_revoked(grant))
            })
        });
    }

    /// Removes the sessions for which `is_over` is true from memory, and ends
    /// them.
    fn end_where(&self, mut is_over: impl FnMut(&Session) -> bool) {
        let mut live = self.live.lock();
        let ids = live.sessions.iter().filter(|(_, session)| is_over(session));
        let ids: Vec<_> = ids.map(|(id, _)| id.clone()).collect();
        let ended: Vec<_> = ids.iter().filter_map(|id| live.remove(id)).collect();
        drop(live);
        for session in ended {
            session.end();
        }
    }

    /// Removes idle sessions and old streams from memory. Runs forever: a task
    /// of its own.
    pub async fn tend(&self) {
        loop {
            tokio::time::sleep(TEND).await;
            self.memory.tidy();
            self.sweep();
        }
    }

    fn sweep(&self) {
        let now = self.now();
        self.end_where(|session| {
            if session.is_busy() {
                session.touch(now);
                return false;
            }
            let used = session.used.load(Ordering::Relaxed);
            let idle = Duration::from_millis(now.saturating_sub(used));
            idle > IDLE || idle > PLAIN_IDLE && session.is_plain()
        });
        let sessions = &mut self.live.lock().sessions;
        if sessions.capacity() > 4 * sessions.len() {
            sessions.shrink_to_fit();
        }
    }

    /// The number of sessions in memory, and the bytes of their streams.
    pub fn load(&self) -> (usize, usize) {
        (self.live.lock().sessions.len(), self.memory.bytes())
    }
}

impl LiveSessions {
    fn insert(&mut self, id: &str, session: Arc<Session>) {
        let share = session.owner.share().clone();
        *self.shares.entry(share).or_default() += 1;
        self.sessions.insert(id.into(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.sessions.remove(id)?;
        let share = session.owner.share();
        if let Some(count) = self.shares.get_mut(share) {
            *count -= 1;
            if *count == 0 {
                self.shares.remove(share);
            }
        }
        Some(session)
    }

    /// Removes idle sessions from memory. Their ids stay valid; the clients lose
    /// only the state that the ids do not hold.
    fn make_room(&mut self, share: &Arc<str>) -> Result<(), NoSession> {
        let mine = self.shares.get(share).copied().unwrap_or(0);
        let own = mine >= MAX_PER_SHARE;
        if !own && self.sessions.len() < MAX_LIVE {
            return Ok(());
        }
        let mut idle: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| !own || session.owner.share() == share)
            .filter(|(_, session)| !session.is_busy())
            .map(|(id, session)| (session.used.load(Ordering::Relaxed), id.clone()))
            .collect();
        if idle.is_empty() {
            return Err(NoSession::Full);
        }
        // Many at once, so that the next requests need not.
        let some = (MAX_LIVE / 32).min(idle.len() - 1);
        idle.select_nth_unstable(some);
        for (_, id) in &idle[..=some] {
            if let Some(session) = self.remove(id) {
                session.end();
            }
        }
        Ok(())
    }
}

/// The principal and endpoint that an id is sealed for.
fn owner(caller: &Caller) -> String {
    let (kind, name) = match &caller.scope {
        Scope::Everything { filter: None } => ("all", ""),
        Scope::Everything { filter: Some(name) } => ("filter", &**name),
        Scope::Server { name, filter: None } => ("server", &**name),
        Scope::Server {
            name,
            filter: Some(filter),
        } => return format!("filtered\0{filter}\0{name}\0{}", caller.principal),
        // The principal names the entry.
        Scope::Entry(entry) => ("entry", entry.filter().map_or("", |name| &**name)),
    };
    format!("{kind}\0{name}\0{}", caller.principal)
}
