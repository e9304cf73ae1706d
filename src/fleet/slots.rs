//! Further connections to one server, for those who must not share one
//! (SPEC C7): made on demand, ended when idle, and with the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Publisher;
use super::attempt::Recipe;
use crate::config::{Isolation, TransportKind};
use crate::upstream::{Connection, Inbound, Link, Peer, UpstreamError};
use crate::wire::Era;

/// Of one server; more would be an attack or a leak.
const SLOTS: usize = 256;
const IDLE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_secs(15);

/// On whose behalf a request is made.
#[derive(Clone, Debug)]
pub struct Slot {
    pub principal: Arc<str>,
    /// The legacy client's session, if it has one.
    pub session: Option<Arc<str>>,
    /// Cancelled at that session's end.
    pub ended: Option<CancellationToken>,
    /// What this client can be asked, in legacy words and canonical: clients
    /// that can be asked the same may share.
    pub capabilities: Arc<RawValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    whose: Arc<str>,
    capabilities: String,
}

/// Whom one connection serves.
struct Whose {
    /// To tell apart what is said on it.
    tag: Option<Arc<str>>,
    /// The key of the one legacy session it serves, and that session's end.
    alone: Option<(Arc<str>, CancellationToken)>,
}

/// Where the connections of one server beside its main one are handed out.
pub struct Desk {
    recipe: Recipe,
    name: Arc<str>,
    publisher: Publisher,
    slots: Mutex<HashMap<Key, Arc<OnceCell<Connection>>>>,
    stop: CancellationToken,
    /// Set before `stop` where calls in flight may finish,
    drain: Mutex<Option<Duration>>,
    /// until this.
    hurry: CancellationToken,
    tasks: TaskTracker,
}

impl Desk {
    pub(super) fn new(recipe: Recipe, name: Arc<str>, publisher: Publisher) -> Arc<Desk> {
        Arc::new(Desk {
            recipe,
            name,
            publisher,
            slots: Mutex::default(),
            stop: CancellationToken::new(),
            drain: Mutex::new(None),
            hurry: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// The connection for `slot`; `main` where it may be shared.
    pub(super) async fn connection(
        self: &Arc<Self>,
        slot: &Slot,
        main: &Connection,
    ) -> Result<Connection, UpstreamError> {
        let Some(key) = self.key(slot, main.peer()) else {
            return Ok(main.clone());
        };
        let cell = {
            let mut slots = self.lock();
            if slots.len() >= SLOTS && !slots.contains_key(&key) {
                return Err(UpstreamError::Unreachable(format!(
                    "{SLOTS} clients have a connection of their own already"
                )));
            }
            slots.entry(key.clone()).or_default().clone()
        };
        // Boxed: connecting is rare and its future large, and this one is part
        // of every call's.
        let made = cell
            .get_or_try_init(|| Box::pin(self.make(&key, slot)))
            .await;
        if made.is_err() {
            self.forget(&key, &cell);
        }
        made.cloned()
    }

    /// The connection that serves `slot` already, if one does.
    pub(super) fn existing(&self, slot: &Slot, main: &Connection) -> Option<Connection> {
        match self.key(slot, main.peer()) {
            None => Some(main.clone()),
            Some(key) => self.lock().get(&key)?.get().cloned(),
        }
    }

    /// Whether a client needs a connection of its own, and whose it is.
    fn key(&self, slot: &Slot, peer: &Peer) -> Option<Key> {
        let spec = &self.recipe.spec;
        let alone = |whose: &Arc<str>| Key {
            whose: whose.clone(),
            capabilities: slot.capabilities.get().to_owned(),
        };
        match spec.isolation {
            Isolation::Principal => Some(alone(&slot.principal)),
            Isolation::Session => Some(alone(slot.session.as_ref().unwrap_or(&slot.principal))),
            // A legacy server is told once, at the handshake, what its client
            // can be asked; the main connection told it of nothing. On a pipe
            // one process serves all, and what it asks is sorted out there.
            Isolation::Shared => {
                let legacy = peer.era == Era::Legacy && spec.transport() != TransportKind::Stdio;
                let nothing = slot.capabilities.get() == "{}";
                (legacy && !nothing).then(|| alone(&slot.principal))
            }
        }
    }

    /// Whose connection serves `slot`; `None` where one serves all or, like
    /// those to a remote server, speaks of the same things as every other.
    pub(super) fn whose(&self, slot: &Slot, main: &Connection) -> Option<Arc<str>> {
        self.tag(&self.key(slot, main.peer())?)
    }

    fn tag(&self, key: &Key) -> Option<Arc<str>> {
        let apart = self.recipe.spec.isolation != Isolation::Shared;
        apart.then(|| format!("{}\0{}", key.whose, key.capabilities).into())
    }

    async fn make(self: &Arc<Self>, key: &Key, slot: &Slot) -> Result<Connection, UpstreamError> {
        let capabilities = slot.capabilities.clone();
        let (link, connection) = self.recipe.connect(capabilities, None, &self.stop).await?;
        let desk = self.clone();
        let (key, held) = (key.clone(), connection.clone());
        let whose = Whose {
            tag: self.tag(&key),
            alone: match self.recipe.spec.isolation {
                Isolation::Session => slot.session.clone().zip(slot.ended.clone()),
                // It serves other sessions too.
                Isolation::Shared | Isolation::Principal => None,
            },
        };
        self.tasks
            .spawn(async move { desk.hold(key, link, held, whose).await });
        Ok(connection)
    }

    /// Owns one connection until it is gone, idle, its session `ended`, or the
    /// desk closes.
    async fn hold(self: Arc<Self>, key: Key, mut link: Link, connection: Connection, whose: Whose) {
        let gone = link.gone();
        tokio::pin!(gone);
        let ended = whose.alone.as_ref().map(|(_, ended)| ended.clone());
        let ended = ended.unwrap_or_default();
        let mut used = Instant::now();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = &mut gone => break,
                () = self.stop.cancelled() => break,
                () = ended.cancelled() => break,
                Some(said) = link.inbound.recv() => self.heard(&whose, said),
                _ = looks.tick() => {
                    if connection.in_flight() > 0 || connection.is_held() {
                        used = Instant::now();
                    } else if used.elapsed() >= IDLE {
                        break;
                    }
                }
            }
        }
        // Out of the book before the gate closes: who comes now gets a new one.
        let cell = self.lock().remove(&key);
        drop(cell);
        connection.close_gate();
        let drain = *self.drain.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limit) = drain {
            let drained = tokio::time::timeout(limit, connection.drained());
            tokio::select! {
                _ = drained => {}
                () = self.hurry.cancelled() => {}
            }
        }
        link.end().await;
    }

    fn heard(&self, whose: &Whose, said: Inbound) {
        match (said, &whose.alone) {
            // List changes come to the main connection as well.
            (Inbound::Notification(note), _) => {
                self.publisher.updated(&self.name, whose.tag.clone(), note);
            }
            (Inbound::Request(request), Some((session, _))) => {
                self.publisher.asked(session, request);
            }
            // Refused when dropped.
            (Inbound::Request(_), None) => {}
        }
    }

    /// Ends all of them; with `drain`, calls in flight may finish first, as
    /// long as it is not closed again without.
    pub(super) async fn close(&self, drain: Option<Duration>) {
        match drain {
            Some(_) => *self.drain.lock().unwrap_or_else(PoisonError::into_inner) = drain,
            None => self.hurry.cancel(),
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn forget(&self, key: &Key, cell: &Arc<OnceCell<Connection>>) {
        let mut slots = self.lock();
        if slots
            .get(key)
            .is_some_and(|known| Arc::ptr_eq(known, cell) && !known.initialized())
        {
            slots.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<OnceCell<Connection>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
