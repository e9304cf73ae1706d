//! Notifications about changes: on a listen stream for modern clients, on the
//! session's own stream for legacy ones.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::changes::{ChangeEvent, ChangeNotice, Hub, ListSet, ResourceChange, Subscriber};
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
    fn changed_uri(&self, view: &View, change: &ResourceChange) -> Option<String> {
        let ResourceChange { server, uri, .. } = change;
        let whose = change.whose.as_ref();
        // From the process that serves the subscription, or from one of the
        // client's principal, where one process has become several.
        let own = self.subscription.slot_owner.as_ref() == whose || whose == Some(&self.principal);
        let theirs = self.server == *server && own;
        if !theirs || !resource_updates::concerns(&self.server_uri, uri) {
            return None;
        }
        Some(if *uri == self.server_uri {
            self.client_uri.clone()
        } else {
            view.uri_to_client(server, uri)
        })
    }
}

/// The notifications of a changed resource for one client, on a listen stream
/// with the stream's id.
fn updates<'a>(
    followed: impl Iterator<Item = &'a FollowedResource>,
    view: &View,
    change: &ResourceChange,
    listen: Option<&RawValue>,
) -> Vec<Vec<u8>> {
    let uris = followed.filter_map(|one| one.changed_uri(view, change));
    uris.map(|uri| {
        let params = resource_updates::params(&change.params, &uri, listen);
        wire::notification(UPDATED, Some(&params))
    })
    .collect()
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
        let missing = || RpcError::new(code::INVALID_PARAMS, "notifications: is missing");
        let wanted = wanted.ok_or_else(missing)?;
        // Before the acknowledgement, so that no change after it is missed.
        let subscriber = hub.subscribe(follower.scope);
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
                tools: asks("toolsListChanged"),
                resources: asks("resourcesListChanged"),
                prompts: asks("promptsListChanged"),
            }
            .and(view.offered_lists()),
            view,
            followed,
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

    fn notify(&mut self, change: Option<&ChangeEvent>) {
        match self.subscriber.notice(change) {
            None => {}
            Some(ChangeNotice::Lists(lists)) => self.tell_lists(lists),
            Some(ChangeNotice::Entry) => {
                let subscriber = &self.subscriber;
                self.followed
                    .retain(|one| subscriber.may_follow(&one.server));
                self.tell_lists(ListSet::ALL);
            }
            Some(ChangeNotice::Resource(change)) => {
                let followed = self.followed.iter();
                let told = updates(followed, &self.view, change, Some(&self.id));
                self.ready.extend(told);
            }
        }
    }

    fn tell_lists(&mut self, lists: ListSet) {
        for method in lists.and(self.wanted).notifications() {
            let message = self.message(method, ObjectWriter::new());
            self.ready.push(message);
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
                change = self.subscriber.next() => match change {
                    Some(change) => self.notify(change.as_deref()),
                    None => return ReplyItem::Last(self.end()),
                },
                () = self.lifetime.token().cancelled() => return ReplyItem::Last(self.end()),
            }
        }
    }
}

/// The legacy sessions that get notifications.
#[derive(Clone, Default)]
pub(super) struct SessionFeeds(Arc<Mutex<HashMap<usize, SessionFeed>>>);

#[derive(Clone)]
struct SessionFeed {
    session: Weak<Session>,
    /// By the client's URI.
    followed: Arc<Mutex<HashMap<String, FollowedResource>>>,
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
        let feed = SessionFeed {
            session: Arc::downgrade(session),
            followed: Arc::default(),
        };
        {
            let mut feeds = self.0.lock();
            let known = feeds.get(&key);
            if known.is_some_and(|known| known.session.ptr_eq(&feed.session)) {
                return;
            }
            feeds.insert(key, feed.clone());
        }
        let (feeds, view) = (self.clone(), view.clone());
        let ended = session.forgotten().clone();
        let mut subscriber = hub.subscribe(&caller.scope);
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = subscriber.next() => change,
                    () = ended.cancelled() => break,
                };
                let (Some(change), Some(session)) = (change, feed.session.upgrade()) else {
                    break;
                };
                feed.notify(&session, &view, &mut subscriber, change.as_deref());
            }
            feeds.0.lock().remove(&key);
        });
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
        let feed = self.0.lock().get(&key).cloned();
        let room = |feed: &SessionFeed| feed.followed.lock().len() < MAX_FOLLOWED;
        let Some(feed) = feed.filter(room) else {
            let text =
                format!("too many subscriptions: a session can follow {MAX_FOLLOWED} resources");
            return Err(RpcError::new(code::INTERNAL, text));
        };
        let followed = follow(hub, follower, view, uri).await?;
        feed.followed.lock().insert(uri.to_owned(), followed);
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, session: &Arc<Session>, uri: &str) {
        let key = Arc::as_ptr(session) as usize;
        let feed = self.0.lock().get(&key).cloned();
        // Dropped outside the lock: ending it talks to a task.
        let _ended = feed.and_then(|feed| feed.followed.lock().remove(uri));
    }
}

impl SessionFeed {
    fn notify(
        &self,
        session: &Session,
        view: &View,
        subscriber: &mut Subscriber,
        change: Option<&ChangeEvent>,
    ) {
        match subscriber.notice(change) {
            None => {}
            Some(ChangeNotice::Lists(lists)) => tell_lists(session, lists),
            Some(ChangeNotice::Entry) => {
                let mut followed = self.followed.lock();
                let ended = followed.extract_if(|_, one| !subscriber.may_follow(&one.server));
                let ended: Vec<_> = ended.collect();
                // Outside the lock: ending it talks to a task.
                drop(followed);
                drop(ended);
                tell_lists(session, ListSet::ALL);
            }
            Some(ChangeNotice::Resource(change)) => {
                let told = updates(self.followed.lock().values(), view, change, None);
                for message in told {
                    session.send(message.into());
                }
            }
        }
    }
}

pub(super) fn tell_lists(session: &Session, lists: ListSet) {
    for method in lists.notifications() {
        session.send(wire::notification(method, None).into());
    }
}
