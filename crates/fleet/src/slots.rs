//! Further connections to one server (SPEC C7), for clients that must not share
//! one: made on demand, ended when idle, and with the server.

mod bounds;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Publisher;
use super::attempt::ConnectRecipe;
use super::listen;
use bounds::{SlotActivity, SlotUse, TooMany};
use config::{Isolation, ServerSpec, TransportKind};
use upstream::{
    Connection, ConnectionOwner, InboundMessage, LogStream, Peer, QuestionHistory, UpstreamError,
};
use wire::Era;

/// How long a principal whose own process cannot start shares the main one,
/// before the next attempt.
const TRY_AGAIN: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_secs(15);

/// The client that a request is made for.
#[derive(Clone, Debug)]
pub struct Slot {
    pub principal: Arc<str>,
    /// The owner of the entry: a user, or the admin.
    pub owner: Arc<str>,
    /// The legacy client's session, if it has one.
    pub session: Option<Arc<str>>,
    /// Cancelled when that session ends.
    pub ended: Option<CancellationToken>,
    /// The client's capabilities in canonical legacy form: clients with the
    /// same capabilities may share a connection.
    pub capabilities: Arc<RawValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SlotKey {
    whose: Arc<str>,
    capabilities: String,
}

/// The client or clients that one connection serves.
struct SlotUser {
    /// Marks the notifications that arrive on the connection.
    tag: Option<Arc<str>>,
    /// The key of the only legacy session it serves, and that session's end.
    alone: Option<(Arc<str>, CancellationToken)>,
}

/// One connection, made or being made.
#[derive(Clone)]
struct SlotEntry {
    connection: Arc<OnceCell<Connection>>,
    principal: Arc<str>,
    owner: Arc<str>,
    used: Instant,
    /// Cancelled when another client needs the place.
    end: CancellationToken,
}

impl SlotEntry {
    fn activity(&self) -> SlotActivity {
        match self.connection.get() {
            Some(connection) if connection.is_held() => SlotActivity::Busy,
            Some(connection) if connection.in_flight() == 0 => SlotActivity::Idle,
            Some(connection) if connection.only_questions() => SlotActivity::Asking,
            Some(_) => SlotActivity::Busy,
            // The task that was connecting has given up.
            None if Arc::strong_count(&self.connection) == 1 => SlotActivity::Idle,
            None => SlotActivity::Busy,
        }
    }
}

type SlotMap = HashMap<SlotKey, SlotEntry>;

/// The isolation in force for this server.
pub(super) fn in_force(spec: &ServerSpec, peer: &Peer, asking: &QuestionHistory) -> Isolation {
    let legacy = peer.era == Era::Legacy;
    let remote = spec.transport() != TransportKind::Stdio;
    match spec.isolation {
        Isolation::Auto if legacy && (remote || asking.seen()) => Isolation::Principal,
        Isolation::Auto => Isolation::Shared,
        chosen => chosen,
    }
}

/// The connections of one server beside its main one.
pub struct SlotTable {
    recipe: ConnectRecipe,
    name: Arc<str>,
    publisher: Publisher,
    slots: Mutex<SlotMap>,
    /// Resources with a subscription in every process.
    pub(super) followed: Mutex<HashSet<String>>,
    /// The connection that the server's lists are read from; `None`: the main
    /// one.
    lists: watch::Sender<Option<Connection>>,
    stop: CancellationToken,
    /// Set before `stop` if calls in flight may finish,
    drain: Mutex<Option<Duration>>,
    /// until this is cancelled.
    hurry: CancellationToken,
    tasks: TaskTracker,
}

impl SlotTable {
    pub(super) fn new(
        recipe: ConnectRecipe,
        name: Arc<str>,
        publisher: Publisher,
    ) -> Arc<SlotTable> {
        Arc::new(SlotTable {
            recipe,
            name,
            publisher,
            slots: Mutex::default(),
            followed: Mutex::default(),
            lists: watch::Sender::new(None),
            stop: CancellationToken::new(),
            drain: Mutex::new(None),
            hurry: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Changes whenever the lists must be read again, and names the connection
    /// to read them from.
    pub(super) fn lists(&self) -> watch::Receiver<Option<Connection>> {
        self.lists.subscribe()
    }

    /// The connection for `slot`; `main` if it may be shared.
    pub(super) async fn connection(
        self: &Arc<Self>,
        slot: &Slot,
        main: &Connection,
    ) -> Result<Connection, UpstreamError> {
        let Some(key) = self.key(slot, main.peer()) else {
            return Ok(main.clone());
        };
        let place = self.place(&key, slot)?;
        // Boxed: connecting is rare and its future is large, and it is part of
        // the future of every call.
        let made = place
            .connection
            .get_or_try_init(|| Box::pin(self.make(&key, slot, &place, main)))
            .await;
        if made.is_err() {
            self.forget(&key, &place);
        }
        made.cloned()
    }

    /// The entry of one key; it may displace another entry.
    fn place(&self, key: &SlotKey, slot: &Slot) -> Result<SlotEntry, UpstreamError> {
        let mut slots = self.slots.lock();
        if let Some(place) = slots.get_mut(key) {
            place.used = Instant::now();
            return Ok(place.clone());
        }
        make_room(&mut slots, slot, self.recipe.spec.isolation)?;
        let place = SlotEntry {
            connection: Arc::default(),
            principal: slot.principal.clone(),
            owner: slot.owner.clone(),
            used: Instant::now(),
            end: CancellationToken::new(),
        };
        slots.insert(key.clone(), place.clone());
        Ok(place)
    }

    /// The connection that already serves `slot`, if there is one.
    pub(super) fn existing(&self, slot: &Slot, main: &Connection) -> Option<Connection> {
        match self.key(slot, main.peer()) {
            None => Some(main.clone()),
            Some(key) => self.slots.lock().get(&key)?.connection.get().cloned(),
        }
    }

    /// The key of a client that needs its own connection; `None`: it shares.
    fn key(&self, slot: &Slot, peer: &Peer) -> Option<SlotKey> {
        let spec = &self.recipe.spec;
        let alone = |whose: &Arc<str>| SlotKey {
            whose: whose.clone(),
            capabilities: slot.capabilities.get().to_owned(),
        };
        let legacy = peer.era == Era::Legacy;
        match (spec.isolation, spec.transport()) {
            (Isolation::Principal, _) => Some(alone(&slot.principal)),
            (Isolation::Session, _) => {
                Some(alone(slot.session.as_ref().unwrap_or(&slot.principal)))
            }
            // On a pipe one process serves all clients until it asks one of them.
            (Isolation::Auto, TransportKind::Stdio) => {
                let asks = legacy && self.recipe.asking.seen();
                asks.then(|| alone(&slot.principal))
            }
            (Isolation::Shared, TransportKind::Stdio) => None,
            // A legacy server learns its client's capabilities once, at the
            // handshake; the main connection declared none.
            (Isolation::Auto | Isolation::Shared, _) => {
                let nothing = slot.capabilities.get() == "{}";
                (legacy && !nothing).then(|| alone(&slot.principal))
            }
        }
    }

    /// The owner of the connection that serves `slot`; `None` if all clients share
    /// it or if, as with a remote server, all connections report the same.
    pub(super) fn whose(&self, slot: &Slot, main: &Connection) -> Option<Arc<str>> {
        self.tag(&self.key(slot, main.peer())?)
    }

    fn tag(&self, key: &SlotKey) -> Option<Arc<str>> {
        match self.recipe.spec.isolation {
            Isolation::Principal | Isolation::Session => {
                Some(format!("{}\0{}", key.whose, key.capabilities).into())
            }
            Isolation::Auto | Isolation::Shared => None,
        }
    }

    /// Whether the processes began as one: updates from one of them go to all
    /// clients of its principal.
    pub(super) fn was_one(&self) -> bool {
        let spec = &self.recipe.spec;
        (spec.isolation, spec.transport()) == (Isolation::Auto, TransportKind::Stdio)
    }

    async fn make(
        self: &Arc<Self>,
        key: &SlotKey,
        slot: &Slot,
        place: &SlotEntry,
        main: &Connection,
    ) -> Result<Connection, UpstreamError> {
        let capabilities = slot.capabilities.clone();
        let era = Some(main.peer().era);
        let made = self.recipe.connect(capabilities, era, &self.stop).await;
        let (link, connection) = match made {
            Ok(made) => made,
            // Some programs allow only one instance: the main process may serve.
            Err(error) if self.was_one() && !self.stop.is_cancelled() => {
                return Ok(self.share(key, place, main, &error));
            }
            Err(error) => return Err(error),
        };
        self.follow_all(&connection).await;
        let (desk, place) = (self.clone(), place.clone());
        let (key, held) = (key.clone(), connection.clone());
        let whose = SlotUser {
            tag: if self.was_one() {
                Some(slot.principal.clone())
            } else {
                self.tag(&key)
            },
            alone: match self.recipe.spec.isolation {
                Isolation::Session => slot.session.clone().zip(slot.ended.clone()),
                // The connection serves other sessions too.
                Isolation::Auto | Isolation::Shared | Isolation::Principal => None,
            },
        };
        self.tasks
            .spawn(async move { desk.hold(key, place, link, held, whose).await });
        Ok(connection)
    }

    /// Serves the slot by the main connection for a while. A question there is
    /// refused while calls of several principals run.
    fn share(
        self: &Arc<Self>,
        key: &SlotKey,
        place: &SlotEntry,
        main: &Connection,
        error: &UpstreamError,
    ) -> Connection {
        let text = format!("no process of its own for this principal, it shares one: {error}");
        self.recipe.log.push(LogStream::Portway, &text);
        let (desk, key, place) = (self.clone(), key.clone(), place.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(TRY_AGAIN) => {}
                () = place.end.cancelled() => {}
                () = desk.stop.cancelled() => {}
            }
            desk.forget(&key, &place);
        });
        main.clone()
    }

    /// Owns one connection until it is gone or idle, its session has `ended`,
    /// or the table closes.
    async fn hold(
        self: Arc<Self>,
        key: SlotKey,
        place: SlotEntry,
        mut link: ConnectionOwner,
        connection: Connection,
        whose: SlotUser,
    ) {
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
                () = place.end.cancelled() => break,
                Some(said) = link.inbound.recv() => self.heard(&whose, &connection, said),
                _ = looks.tick() => {
                    if connection.in_flight() > 0 || connection.is_held() {
                        used = Instant::now();
                    } else if used.elapsed() >= IDLE {
                        break;
                    }
                }
            }
        }
        // Removed before the gate closes: a new call gets a new connection.
        self.forget(&key, &place);
        self.lists.send_if_modified(|lists| {
            let was_it = lists.as_ref().is_some_and(|lists| lists.same(&connection));
            *lists = lists.take().filter(|_| !was_it);
            was_it
        });
        connection.close_gate();
        let drain = *self.drain.lock();
        if let Some(limit) = drain {
            let drained = tokio::time::timeout(limit, connection.finished());
            let _ = self.hurry.run_until_cancelled(drained).await;
        }
        link.end().await;
    }

    fn heard(&self, whose: &SlotUser, connection: &Connection, said: InboundMessage) {
        match (said, &whose.alone) {
            (InboundMessage::Notification(note), _) => {
                // Processes that began as one have one list, that of the
                // process which changed it last. A remote server notifies the
                // main connection as well.
                if self.was_one() && listen::outdates_lists(&note.method) {
                    self.lists.send_replace(Some(connection.clone()));
                }
                let messages = &self.publisher.unasked;
                messages.tell(&self.name, whose.tag.clone(), note);
            }
            (InboundMessage::Request(request), Some((session, _))) => {
                self.publisher.asked(session, request);
            }
            // Dropping the request refuses it.
            (InboundMessage::Request(_), None) => {}
        }
    }

    /// Ends all connections; with `drain`, calls in flight may finish first,
    /// until a second call without `drain`.
    pub(super) async fn close(&self, drain: Option<Duration>) {
        match drain {
            Some(_) => *self.drain.lock() = drain,
            None => self.hurry.cancel(),
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Removes the entry, unless another connection has replaced it by now.
    fn forget(&self, key: &SlotKey, place: &SlotEntry) {
        let mut slots = self.slots.lock();
        let known = slots.get(key);
        if known.is_some_and(|known| Arc::ptr_eq(&known.connection, &place.connection)) {
            slots.remove(key);
        }
    }

    /// All connections that are established.
    pub(super) fn connections(&self) -> Vec<Connection> {
        let slots = self.slots.lock();
        let made = slots.values().filter_map(|place| place.connection.get());
        made.cloned().collect()
    }
}

/// Ends the connection that a new one for `slot` displaces, if necessary.
fn make_room(slots: &mut SlotMap, slot: &Slot, isolation: Isolation) -> Result<(), UpstreamError> {
    let taken: Vec<SlotUse<'_, &SlotKey>> = slots
        .iter()
        .map(|(key, place)| SlotUse {
            key,
            principal: &place.principal,
            owner: &place.owner,
            used: place.used,
            activity: place.activity(),
        })
        .collect();
    let displaced = bounds::displaced(&taken, (&slot.principal, &slot.owner), isolation);
    let displaced = displaced.map_err(|TooMany { limit, whose }| {
        UpstreamError::Unreachable(format!(
            "all {limit} of {whose} connections to this server are in use; try again later"
        ))
    });
    let displaced = displaced?.cloned();
    if let Some(place) = displaced.and_then(|key| slots.remove(&key)) {
        place.end.cancel();
    }
    Ok(())
}
