//! Sessions of the console. A cookie holds the id of the session, its start and
//! its last use, sealed with a key made of the admin token: so a session
//! survives a restart, is valid on every replica, and ends with the token. The
//! data directory holds the list of sessions, and of those that were ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::hmac;
use serde::{Deserialize, Serialize};

use store::{StoreError, Timestamp};

/// The most sessions that are listed; the oldest are dropped first.
const REMEMBERED: usize = 1000;
/// The most characters of a `User-Agent`.
const AGENT: usize = 200;

/// How long a session lasts.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// Without a request.
    pub idle: Duration,
    /// In all.
    pub lifetime: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            idle: Duration::from_secs(12 * 3600),
            lifetime: Duration::from_secs(7 * 86_400),
        }
    }
}

#[derive(Default)]
pub struct ConsoleSessions {
    limits: SessionLimits,
    /// The data directory, where there is one.
    directory: Option<PathBuf>,
    /// The lock is held for a map operation, never across an await.
    kept: Mutex<SessionTable>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct SessionTable {
    open: BTreeMap<String, ConsoleSession>,
    /// The time until which their cookies could be used.
    ended: BTreeMap<String, u64>,
}

#[derive(Clone, Serialize, Deserialize)]
struct ConsoleSession {
    /// Milliseconds since the epoch, like all times here.
    created: u64,
    used: u64,
    agent: String,
}

/// A session as the API shows it.
#[derive(Debug, Serialize)]
pub(crate) struct ShownSession {
    pub id: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    /// At the latest.
    pub expires_at: Timestamp,
    /// The browser's `User-Agent`.
    pub agent: String,
    /// The session of this request.
    pub current: bool,
}

/// The content of a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SessionTicket {
    pub id: String,
    created: u64,
    used: u64,
}

impl std::fmt::Debug for ConsoleSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleSessions")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl SessionTicket {
    fn seal(&self, key: &hmac::Key) -> String {
        let said = format!("{}.{}.{}", self.id, self.created, self.used);
        let seal = hmac::sign(key, said.as_bytes());
        format!("{said}.{}", URL_SAFE_NO_PAD.encode(seal))
    }

    /// The cookie of the same session, used now, under any key.
    pub(super) fn resealed(self, key: &hmac::Key) -> String {
        let used = now();
        SessionTicket { used, ..self }.seal(key)
    }

    fn read(text: &str, key: &hmac::Key) -> Option<SessionTicket> {
        let (said, seal) = text.rsplit_once('.')?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        hmac::verify(key, said.as_bytes(), &seal).ok()?;
        let mut parts = said.split('.');
        let (id, created, used) = (parts.next()?, parts.next()?, parts.next()?);
        Some(SessionTicket {
            id: id.to_owned(),
            created: created.parse().ok()?,
            used: used.parse().ok()?,
        })
    }
}

impl ConsoleSessions {
    /// Loads the data directory's list. Blocks on the disk. An unreadable list
    /// is dropped, only the seals remain: that opens no session.
    pub fn open(directory: PathBuf, limits: SessionLimits) -> Result<ConsoleSessions, StoreError> {
        let bytes = store::console_sessions(&directory)?;
        let kept = bytes.map(|bytes| serde_json::from_slice(&bytes));
        let kept = kept.transpose().unwrap_or_else(|error| {
            tracing::error!("the console's sessions cannot be read and are forgotten: {error}");
            None
        });
        Ok(ConsoleSessions {
            limits,
            directory: Some(directory),
            kept: Mutex::new(kept.unwrap_or_default()),
        })
    }

    /// Begins a session; returns the content of its cookie.
    pub(super) fn begin(&self, key: &hmac::Key, agent: &str) -> Option<String> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).ok()?;
        let now = now();
        let ticket = SessionTicket {
            id: URL_SAFE_NO_PAD.encode(bytes),
            created: now,
            used: now,
        };
        self.kept.lock().note(&ticket, now, agent);
        Some(ticket.seal(key))
    }

    /// The session of a cookie, if it is valid; this counts as a use.
    pub(super) fn accept(&self, key: &hmac::Key, text: &str, agent: &str) -> Option<SessionTicket> {
        let ticket = SessionTicket::read(text, key)?;
        let now = now();
        let mut kept = self.kept.lock();
        let used = kept.open.get(&ticket.id).map_or(0, |session| session.used);
        let unused = now.saturating_sub(used.max(ticket.used));
        let age = now.saturating_sub(ticket.created);
        let over = age > millis(self.limits.lifetime) || unused > millis(self.limits.idle);
        if over || kept.ended.contains_key(&ticket.id) {
            kept.open.remove(&ticket.id);
            return None;
        }
        kept.note(&ticket, now, agent);
        Some(ticket)
    }

    /// A new cookie for one that will soon expire as unused.
    pub(super) fn renewed(&self, key: &hmac::Key, ticket: SessionTicket) -> Option<String> {
        let due = now().saturating_sub(ticket.used) > millis(self.limits.idle) / 8;
        due.then(|| ticket.resealed(key))
    }

    pub(super) fn list(&self, current: Option<&str>) -> Vec<ShownSession> {
        let limits = self.limits;
        let mut kept = self.kept.lock();
        kept.prune(limits);
        let shown = |(id, session): (&String, &ConsoleSession)| ShownSession {
            id: id.clone(),
            created_at: Timestamp::from_millis(session.created),
            last_used_at: Timestamp::from_millis(session.used),
            expires_at: Timestamp::from_millis(session.end(limits)),
            agent: session.agent.clone(),
            current: current == Some(id),
        };
        kept.open.iter().map(shown).collect()
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        let kept = self.kept.lock();
        let session = kept.open.get(id);
        session.is_some_and(|session| session.end(self.limits) > now())
    }

    /// Returns whether the session existed.
    pub(super) fn end(&self, id: &str) -> bool {
        self.end_where(|one| one == id) > 0
    }

    /// Ends the sessions that `which` selects; returns their number.
    pub(super) fn end_where(&self, which: impl Fn(&str) -> bool) -> usize {
        let limits = self.limits;
        let mut kept = self.kept.lock();
        kept.prune(limits);
        let (gone, open): (BTreeMap<_, _>, _) = std::mem::take(&mut kept.open)
            .into_iter()
            .partition(|(id, _)| which(id));
        kept.open = open;
        let count = gone.len();
        let until = |created: u64| created.saturating_add(millis(limits.lifetime));
        let gone = gone.into_iter();
        kept.ended
            .extend(gone.map(|(id, session)| (id, until(session.created))));
        count
    }

    /// Blocks on the disk.
    pub(super) fn save(&self) -> Result<(), StoreError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let kept = self.kept.lock().clone();
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        store::keep_console_sessions(directory, &bytes)
    }
}

impl SessionTable {
    fn note(&mut self, ticket: &SessionTicket, now: u64, agent: &str) {
        if let Some(session) = self.open.get_mut(&ticket.id) {
            session.used = now;
            return;
        }
        if self.open.len() >= REMEMBERED {
            let oldest = self.open.iter().min_by_key(|(_, session)| session.used);
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                self.open.remove(&id);
            }
        }
        let session = ConsoleSession {
            created: ticket.created,
            used: now,
            agent: agent.chars().take(AGENT).collect(),
        };
        self.open.insert(ticket.id.clone(), session);
    }

    fn prune(&mut self, limits: SessionLimits) {
        let now = now();
        self.open.retain(|_, session| session.end(limits) > now);
        self.ended.retain(|_, until| *until > now);
    }
}

impl ConsoleSession {
    fn end(&self, limits: SessionLimits) -> u64 {
        let unused = self.used.saturating_add(millis(limits.idle));
        unused.min(self.created.saturating_add(millis(limits.lifetime)))
    }
}

fn now() -> u64 {
    Timestamp::now().as_millis()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
    }

    fn sessions(idle: u64, lifetime: u64) -> ConsoleSessions {
        ConsoleSessions {
            limits: SessionLimits {
                idle: Duration::from_millis(idle),
                lifetime: Duration::from_millis(lifetime),
            },
            ..ConsoleSessions::default()
        }
    }

    fn aged(created: u64, used: u64) -> String {
        let now = now();
        let ticket = SessionTicket {
            id: "one".into(),
            created: now - created,
            used: now - used,
        };
        ticket.seal(&key("k"))
    }

    #[test]
    fn k3_a_session_ends_unused_and_in_any_case() {
        let taken = |cookie: &str| {
            let sessions = sessions(60_000, 600_000);
            sessions.accept(&key("k"), cookie, "").is_some()
        };
        assert!(taken(&aged(30_000, 30_000)));
        assert!(taken(&aged(500_000, 30_000)));
        assert!(!taken(&aged(90_000, 90_000)), "unused for too long");
        assert!(!taken(&aged(700_000, 0)), "too old");
        let forged = aged(90_000, 90_000).replacen("one.", "two.", 1);
        assert!(!taken(&forged));
        let sessions = sessions(60_000, 600_000);
        assert!(sessions.accept(&key("other"), &aged(0, 0), "").is_none());
        assert!(sessions.accept(&key("k"), "", "").is_none());
        // A replica that does not know the session gets a newer cookie.
        let ticket = sessions
            .accept(&key("k"), &aged(30_000, 30_000), "")
            .unwrap();
        let newer = sessions.renewed(&key("k"), ticket).unwrap();
        let ticket = sessions.accept(&key("k"), &newer, "").unwrap();
        assert!(sessions.renewed(&key("k"), ticket).is_none());
    }

    #[test]
    fn k3_sessions_are_listed_and_ended_for_good() {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let place = directory.path().to_owned();
            ConsoleSessions::open(place, SessionLimits::default()).unwrap()
        };
        let sessions = open();
        let [one, two] = ["a", "b"].map(|agent| sessions.begin(&key("k"), agent).unwrap());
        let id = sessions.accept(&key("k"), &one, "a").unwrap().id;
        let listed = sessions.list(Some(&id));
        assert_eq!(listed.len(), 2);
        assert_eq!(listed.iter().filter(|one| one.current).count(), 1);
        assert!(sessions.end(&id) && !sessions.end(&id));
        assert!(sessions.accept(&key("k"), &one, "a").is_none());
        sessions.save().unwrap();
        let later = open();
        assert!(later.accept(&key("k"), &one, "a").is_none());
        assert_eq!(later.list(None).len(), 1);
        assert!(later.accept(&key("k"), &two, "b").is_some());
        assert_eq!(later.end_where(|_| true), 1);
        assert!(later.accept(&key("k"), &two, "b").is_none());
    }
}
