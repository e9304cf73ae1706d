//! Notifications about changes: on a listen stream for modern clients, on the
//! session's own stream for legacy ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::changes::{ChangeEvent, ChangeNotice, ChangeSource, ListSet, Subscriber};
use super::hub::Hub;
use super::lifetime::StreamLifetime;
use super::members::ObjectWriter;
use super::resolve::resource_of;
use super::session::Session;
use super::view::View;
use super::{Caller, Reply, ReplyItem, Scope, resource_updates};
use fleet::{ResourceSubscription, Slot};
use wire::meta::SUBSCRIPTION_ID;
use wire::object::{each_element, member, text};
use wire::{RpcError, code};

const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";
/// Resources in one listen, or followed by one session.
const MAX_FOLLOWED: usize = 1000;

/// A resource that a client follows.
struct FollowedResource {
    server: Arc<str>,
    server_uri: String,
    client_uri: String,
    subscription: Arc<ResourceSubscription>,
    principal: Arc<str>,
}

impl FollowedResource {
    /// The client's URI of the change, if it is this resource or a part of it.
    fn changed_uri(&self, view: &View, from: ChangeSource<'_>, uri: &str) -> Option<String> {
        let ChangeSource { server, whose } = from;
        // From the process that serves the subscription, or from one of the
        // client's principal, where one process has become several.
        let own = self.subscription.slot_owner.as_ref() == whose || whose == Some(&self.principal);
        let theirs = self.server == *server && own;
        if !theirs || !resource_updates::concerns(&self.server_uri, uri) {
            return None;
        }
        Some(match uri == self.server_uri {
            true => self.client_uri.clone(),
            false => view.uri_to_client(server, uri),
        })
    }
}

/// The client that follows a resource.
#[derive(Clone, Copy)]
pub(super) struct ResourceFollower<'a> {
    pub scope: &'a Scope,
    pub slot: &'a Slot,
}

async fn follow(
    hub: &Hub,
    follower: ResourceFollower<'_>,
    view: &View,
    uri: &str,
) -> Result<FollowedResource, RpcError> {
    let (server, server_uri) = resource_of(follower.scope, view, uri)?;
    Ok(FollowedResource {
        subscription: hub.follow(follower, &server, &server_uri).await?,
        principal: follower.slot.principal.clone(),
        server,
        server_uri,
        client_uri: uri.to_owned(),
    })
}

/// A modern client's `subscriptions/listen`.
pub(super) struct ListenStream {
    id: Box<RawValue>,
    subscriber: Subscriber,
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
        follower: ResourceFollower<'_>,
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
        // Before the acknowledgement, so that no change after it is missed.
        let (changes, subscriber) = hub.subscribe(follower.scope);
        let asks = |name: &str| member(wanted, name).is_some_and(|flag| flag.get() == "true");
        let mut uris = Vec::new();
        if let Some(list) = member(wanted, "resourceSubscriptions") {
            each_element(list, |uri| {
                uris.extend(text(uri).map(|uri| uri.into_owned()))
            });
        }
        uris.truncate(MAX_FOLLOWED);
        let mut followed = Vec::new();
        for uri in &uris {
            // The acknowledgement omits resources that cannot be followed.
            followed.extend(follow(hub, follower, &view, uri).await);
        }
        let mut listening = ListenStream {
            id: id.to_owned(),
            subscriber,
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
            let uris: Vec<&str> = self
                .followed
                .iter()
                .map(|one| one.client_uri.as_str())
                .collect();
            if let Ok(uris) = serde_json::to_string(&uris) {
                honoured.json("resourceSubscriptions", &uris);
            }
        }
        let mut params = ObjectWriter::new();
        params.object("notifications", &honoured);
        self.message("notifications/subscriptions/acknowledged", params)
    }

    /// Every message of a listen stream carries the stream's id.
    fn message(&self, method: &str, mut params: ObjectWriter) -> Vec<u8> {
        self.mark(&mut params);
        wire::notification(method, Some(&params.done()))
    }

    fn mark(&self, holder: &mut ObjectWriter) {
        let mut meta = ObjectWriter::new();
        meta.json(SUBSCRIPTION_ID, self.id.get());
        holder.object("_meta", &meta);
    }

    fn notify(&mut self, change: &ChangeEvent) {
        match self.subscriber.notice(change) {
            ChangeNotice::Nothing => {}
            ChangeNotice::Lists(lists) => self.tell_lists(lists),
            ChangeNotice::Entry => self.entry_changed(),
            ChangeNotice::Resource { from, uri, params } => {
                let told = self.followed.iter();
                let told = told.filter_map(|one| one.changed_uri(&self.view, from, uri));
                for uri in told {
                    let params = resource_updates::params(params, &uri, Some(&self.id));
                    self.ready.push(wire::notification(UPDATED, Some(&params)));
                }
            }
        }
    }

    fn entry_changed(&mut self) {
        let subscriber = &self.subscriber;
        self.followed
            .retain(|one| subscriber.may_follow(&one.server));
        self.tell_lists(ListSet::ALL);
    }

    /// Changes were missed: everything may have changed.
    fn missed(&mut self) {
        self.subscriber.refresh();
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

    /// Cancel-safe; not to be called after [`ReplyItem::Last`].
    pub(crate) async fn next(&mut self) -> ReplyItem {
        loop {
            if !self.ready.is_empty() {
                return ReplyItem::Message(self.ready.remove(0).into());
            }
            tokio::select! {
                change = self.changes.recv() => match change {
                    Ok(change) => self.notify(&change),
                    Err(RecvError::Lagged(_)) => self.missed(),
                    Err(RecvError::Closed) => return ReplyItem::Last(self.end()),
                },
                () = self.lifetime.token().cancelled() => return ReplyItem::Last(self.end()),
            }
        }
    }
}

/// The legacy sessions that get notifications.
#[derive(Clone, Default)]
pub(super) struct SessionFeeds(Arc<Mutex<HashMap<usize, SessionFeed>>>);

struct SessionFeed {
    session: Weak<Session>,
    followed: HashMap<String, FollowedResource>,
}

impl SessionFeeds {
    /// The session of this key, if it gets notifications.
    pub(crate) fn session(&self, key: &str) -> Option<Arc<Session>> {
        let feeds = self.0.lock();
        let mut sessions = feeds.values().filter_map(|feed| feed.session.upgrade());
        sessions.find(|session| *session.key() == *key)
    }

    /// Sends changes to a session from now on, until it ends.
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
        let (mut changes, mut subscriber) = hub.subscribe(&caller.scope);
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
                    Ok(change) => match subscriber.notice(&change) {
                        ChangeNotice::Entry => feeds.entry_changed(key, &session, &subscriber),
                        news => feeds.notify(key, &session, &view, news),
                    },
                    Err(RecvError::Lagged(_)) => {
                        subscriber.refresh();
                        feeds.entry_changed(key, &session, &subscriber);
                    }
                    Err(RecvError::Closed) => break,
                }
            }
            feeds.0.lock().remove(&key);
        });
    }

    /// The entry has changed, or changes were missed.
    fn entry_changed(&self, key: usize, session: &Session, subscriber: &Subscriber) {
        let ended: Vec<FollowedResource> = match self.0.lock().get_mut(&key) {
            Some(feed) => {
                let ended = feed
                    .followed
                    .extract_if(|_, one| !subscriber.may_follow(&one.server));
                ended.map(|(_, one)| one).collect()
            }
            None => Vec::new(),
        };
        // Outside the lock: ending it talks to a task.
        drop(ended);
        tell_lists(session, ListSet::ALL);
    }

    fn notify(&self, key: usize, session: &Session, view: &View, news: ChangeNotice<'_>) {
        match news {
            ChangeNotice::Nothing | ChangeNotice::Entry => {}
            ChangeNotice::Lists(lists) => tell_lists(session, lists),
            ChangeNotice::Resource { from, uri, params } => {
                let told: Vec<String> = match self.0.lock().get(&key) {
                    Some(feed) => feed
                        .followed
                        .values()
                        .filter_map(|one| one.changed_uri(view, from, uri))
                        .collect(),
                    None => Vec::new(),
                };
                for uri in told {
                    let params = resource_updates::params(params, &uri, None);
                    session.send(wire::notification(UPDATED, Some(&params)).into());
                }
            }
        }
    }

    /// `resources/subscribe` of a session that is attached.
    pub(crate) async fn subscribe(
        &self,
        hub: &Hub,
        follower: ResourceFollower<'_>,
        view: &View,
        session: &Arc<Session>,
        uri: &str,
    ) -> Result<(), RpcError> {
        let key = Arc::as_ptr(session) as usize;
        let full = |feeds: &HashMap<usize, SessionFeed>| {
            feeds
                .get(&key)
                .is_none_or(|feed| feed.followed.len() >= MAX_FOLLOWED)
        };
        if full(&self.0.lock()) {
            let text =
                format!("too many subscriptions: a session can follow {MAX_FOLLOWED} resources");
            return Err(RpcError::new(code::INTERNAL, text));
        }
        let followed = follow(hub, follower, view, uri).await?;
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
            session.send(wire::notification(method, None).into());
        }
    }
}
