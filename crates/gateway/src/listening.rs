//! Telling clients of changes: on a listen to modern ones, on the session's
//! own stream to legacy ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::changes::{ChangeEvent, ChangeNotice, ChangeSource, ListSet, Subscriber};
use super::hub::{Hub, ResourceSubscription};
use super::lifetime::StreamLifetime;
use super::members::ObjectWriter;
use super::resolve::resource_of;
use super::session::Session;
use super::view::View;
use super::{Caller, Reply, ReplyItem, Scope, updated};
use fleet::Slot;
use wire::meta::SUBSCRIPTION_ID;
use wire::object::{each_element, member, text};
use wire::{RpcError, code};

const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";
/// Resources in one listen, or followed by one session.
const FOLLOWED: usize = 1000;

/// A resource somebody follows.
struct FollowedResource {
    server: Arc<str>,
    /// As the server spells it, and as the client does.
    there: String,
    here: String,
    following: Arc<ResourceSubscription>,
    principal: Arc<str>,
}

impl FollowedResource {
    /// How the client knows what changed: the resource itself, or a part.
    fn told(&self, view: &View, from: ChangeSource<'_>, uri: &str) -> Option<String> {
        let ChangeSource { server, whose } = from;
        // What the shared process says, what one's own does, and what any
        // process of one's principal does, where those were one.
        let own = self.following.whose.as_ref() == whose || whose == Some(&self.principal);
        let theirs = self.server == *server && own;
        if !theirs || !updated::concerns(&self.there, uri) {
            return None;
        }
        Some(match uri == self.there {
            true => self.here.clone(),
            false => view.uri_to_client(server, uri),
        })
    }
}

/// For whom something is followed.
#[derive(Clone, Copy)]
pub(super) struct ResourceFollower<'a> {
    pub scope: &'a Scope,
    pub slot: &'a Slot,
}

async fn follow(
    hub: &Hub,
    who: ResourceFollower<'_>,
    view: &View,
    uri: &str,
) -> Result<FollowedResource, RpcError> {
    let (server, there) = resource_of(who.scope, view, uri)?;
    Ok(FollowedResource {
        following: hub.follow(who, &server, &there).await?,
        principal: who.slot.principal.clone(),
        server,
        there,
        here: uri.to_owned(),
    })
}

/// A modern client's `subscriptions/listen`.
pub(super) struct ListenStream {
    id: Box<RawValue>,
    audience: Subscriber,
    view: Arc<View>,
    wanted: ListSet,
    followed: Vec<FollowedResource>,
    changes: Receiver<Arc<ChangeEvent>>,
    ready: Vec<Vec<u8>>,
    lifetime: StreamLifetime,
}

impl ListenStream {
    pub(crate) async fn open(
        hub: &Hub,
        who: ResourceFollower<'_>,
        view: Arc<View>,
        id: &RawValue,
        params: Option<&RawValue>,
        lifetime: StreamLifetime,
    ) -> Result<ListenStream, RpcError> {
        let wanted = params.and_then(|params| member(params, "notifications"));
        let Some(wanted) = wanted else {
            return Err(RpcError::new(
                code::INVALID_PARAMS,
                "notifications: is missing",
            ));
        };
        // Before anything is agreed on: what changes from here on is told.
        let (changes, audience) = hub.changes(who.scope);
        let asks = |name: &str| member(wanted, name).is_some_and(|flag| flag.get() == "true");
        let mut uris = Vec::new();
        if let Some(list) = member(wanted, "resourceSubscriptions") {
            each_element(list, |uri| {
                uris.extend(text(uri).map(|uri| uri.into_owned()))
            });
        }
        uris.truncate(FOLLOWED);
        let mut followed = Vec::new();
        for uri in &uris {
            // What cannot be followed is left out of what is acknowledged.
            followed.extend(follow(hub, who, &view, uri).await);
        }
        let mut listening = ListenStream {
            id: id.to_owned(),
            audience,
            wanted: ListSet {
                tools: asks("toolsListChanged") && view.has("tools"),
                resources: asks("resourcesListChanged") && view.has("resources"),
                prompts: asks("promptsListChanged") && view.has("prompts"),
            },
            view,
            followed,
            changes,
            ready: Vec::new(),
            lifetime,
        };
        let acknowledged = listening.acknowledgement();
        listening.ready.push(acknowledged);
        Ok(listening)
    }

    fn acknowledgement(&self) -> Vec<u8> {
        let mut honoured = ObjectWriter::new();
        for (on, name) in [
            (self.wanted.tools, "toolsListChanged"),
            (self.wanted.resources, "resourcesListChanged"),
            (self.wanted.prompts, "promptsListChanged"),
        ] {
            if on {
                honoured.json(name, "true");
            }
        }
        if !self.followed.is_empty() {
            let uris: Vec<&str> = self.followed.iter().map(|one| one.here.as_str()).collect();
            if let Ok(uris) = serde_json::to_string(&uris) {
                honoured.json("resourceSubscriptions", &uris);
            }
        }
        let mut params = ObjectWriter::new();
        params.object("notifications", &honoured);
        self.message("notifications/subscriptions/acknowledged", params)
    }

    /// Every message of a listen says which one it belongs to.
    fn message(&self, method: &str, mut params: ObjectWriter) -> Vec<u8> {
        self.mark(&mut params);
        wire::notification(method, Some(&params.done()))
    }

    fn mark(&self, holder: &mut ObjectWriter) {
        let mut meta = ObjectWriter::new();
        meta.json(SUBSCRIPTION_ID, self.id.get());
        holder.object("_meta", &meta);
    }

    fn tell(&mut self, change: &ChangeEvent) {
        match self.audience.hears(change) {
            ChangeNotice::Nothing => {}
            ChangeNotice::Lists(lists) => self.tell_lists(lists),
            ChangeNotice::Entry => self.entry_changed(),
            ChangeNotice::Resource { from, uri, params } => {
                let told = self.followed.iter();
                let told = told.filter_map(|one| one.told(&self.view, from, uri));
                for uri in told {
                    let params = updated::params(params, &uri, Some(&self.id));
                    self.ready.push(wire::notification(UPDATED, Some(&params)));
                }
            }
        }
    }

    fn entry_changed(&mut self) {
        let audience = &self.audience;
        self.followed.retain(|one| audience.may_follow(&one.server));
        self.tell_lists(ListSet::ALL);
    }

    /// Something was missed: everything may have changed.
    fn missed(&mut self) {
        self.audience.look();
        self.entry_changed();
    }

    fn tell_lists(&mut self, lists: ListSet) {
        let told = lists.and(self.wanted);
        for (told, method) in [
            (told.tools, TOOLS),
            (told.resources, RESOURCES),
            (told.prompts, PROMPTS),
        ] {
            if told {
                let message = self.message(method, ObjectWriter::new());
                self.ready.push(message);
            }
        }
    }

    fn end(&self) -> Reply {
        let mut result = ObjectWriter::new();
        result.text("resultType", "complete");
        self.mark(&mut result);
        Reply::result(&self.id, &result.done())
    }
}

impl ListenStream {
    /// Cancel-safe. Not to be called again after [`ReplyItem::Last`].
    pub(crate) async fn next(&mut self) -> ReplyItem {
        loop {
            if !self.ready.is_empty() {
                return ReplyItem::Message(self.ready.remove(0).into());
            }
            tokio::select! {
                change = self.changes.recv() => match change {
                    Ok(change) => self.tell(&change),
                    Err(RecvError::Lagged(_)) => self.missed(),
                    Err(RecvError::Closed) => return ReplyItem::Last(self.end()),
                },
                () = self.lifetime.token().cancelled() => return ReplyItem::Last(self.end()),
            }
        }
    }
}

/// The legacy sessions that are told of changes.
#[derive(Clone, Default)]
pub(super) struct SessionFeeds(Arc<Mutex<HashMap<usize, SessionFeed>>>);

struct SessionFeed {
    session: Weak<Session>,
    followed: HashMap<String, FollowedResource>,
}

impl SessionFeeds {
    /// The session of this key, if it is told of changes.
    pub(crate) fn session(&self, key: &str) -> Option<Arc<Session>> {
        let feeds = self.0.lock();
        let mut sessions = feeds.values().filter_map(|feed| feed.session.upgrade());
        sessions.find(|session| *session.key() == *key)
    }

    /// Tells a session of changes from now on, until it is gone.
    pub(crate) fn attach(
        &self,
        hub: &Hub,
        caller: &Caller,
        view: &Arc<View>,
        session: &Arc<Session>,
    ) {
        let key = Arc::as_ptr(session) as usize;
        {
            let mut feeds = self.0.lock();
            let known = feeds.get(&key);
            if known.is_some_and(|feed| feed.session.ptr_eq(&Arc::downgrade(session))) {
                return;
            }
            let feed = SessionFeed {
                session: Arc::downgrade(session),
                followed: HashMap::new(),
            };
            feeds.insert(key, feed);
        }
        let (feeds, view) = (self.clone(), view.clone());
        let ended = session.forgotten().clone();
        let session = Arc::downgrade(session);
        let (mut changes, mut audience) = hub.changes(&caller.scope);
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = changes.recv() => change,
                    () = ended.cancelled() => break,
                };
                let Some(session) = session.upgrade() else {
                    break;
                };
                match change {
                    Ok(change) => match audience.hears(&change) {
                        ChangeNotice::Entry => feeds.entry_changed(key, &session, &audience),
                        news => feeds.tell(key, &session, &view, news),
                    },
                    Err(RecvError::Lagged(_)) => {
                        audience.look();
                        feeds.entry_changed(key, &session, &audience);
                    }
                    Err(RecvError::Closed) => break,
                }
            }
            feeds.0.lock().remove(&key);
        });
    }

    /// An entry is another, or something was missed.
    fn entry_changed(&self, key: usize, session: &Session, audience: &Subscriber) {
        let ended: Vec<FollowedResource> = match self.0.lock().get_mut(&key) {
            Some(feed) => {
                let ended = feed
                    .followed
                    .extract_if(|_, one| !audience.may_follow(&one.server));
                ended.map(|(_, one)| one).collect()
            }
            None => Vec::new(),
        };
        // Outside the lock: ending it talks to a task.
        drop(ended);
        tell_lists(session, ListSet::ALL);
    }

    fn tell(&self, key: usize, session: &Session, view: &View, news: ChangeNotice<'_>) {
        match news {
            ChangeNotice::Nothing | ChangeNotice::Entry => {}
            ChangeNotice::Lists(lists) => tell_lists(session, lists),
            ChangeNotice::Resource { from, uri, params } => {
                let told: Vec<String> = match self.0.lock().get(&key) {
                    Some(feed) => feed
                        .followed
                        .values()
                        .filter_map(|one| one.told(view, from, uri))
                        .collect(),
                    None => Vec::new(),
                };
                for uri in told {
                    let params = updated::params(params, &uri, None);
                    session.tell(wire::notification(UPDATED, Some(&params)).into());
                }
            }
        }
    }

    /// `resources/subscribe` of a session that is attached.
    pub(crate) async fn subscribe(
        &self,
        hub: &Hub,
        who: ResourceFollower<'_>,
        view: &View,
        session: &Arc<Session>,
        uri: &str,
    ) -> Result<(), RpcError> {
        let key = Arc::as_ptr(session) as usize;
        let full = |feeds: &HashMap<usize, SessionFeed>| {
            feeds
                .get(&key)
                .is_none_or(|feed| feed.followed.len() >= FOLLOWED)
        };
        if full(&self.0.lock()) {
            let text = format!("a session can follow {FOLLOWED} resources");
            return Err(RpcError::new(code::INTERNAL, text));
        }
        let followed = follow(hub, who, view, uri).await?;
        if let Some(feed) = self.0.lock().get_mut(&key) {
            feed.followed.insert(uri.to_owned(), followed);
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, session: &Arc<Session>, uri: &str) {
        let key = Arc::as_ptr(session) as usize;
        let ended = self
            .0
            .lock()
            .get_mut(&key)
            .and_then(|feed| feed.followed.remove(uri));
        // Outside the lock: ending it talks to a task.
        drop(ended);
    }
}

pub(super) fn tell_lists(session: &Session, lists: ListSet) {
    for (told, method) in [
        (lists.tools, TOOLS),
        (lists.resources, RESOURCES),
        (lists.prompts, PROMPTS),
    ] {
        if told {
            session.tell(wire::notification(method, None).into());
        }
    }
}
