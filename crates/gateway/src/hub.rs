//! The changes that clients may subscribe to, in one place: lists from the
//! snapshots, resources from the notifications of their servers.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::Scope;
use super::changes::{self, ChangeEvent, Subscriber};
use super::control::Control;
use super::listening::ResourceFollower;
use super::permission::{GrantPermission, Requirement};
use super::renames::Renames;
use super::resolve::no_resource;
use super::users::UserServers;
use fleet::{CallError, Fleet, ResourceSubscription, Subscriptions};
use store::Store;
use upstream::UpstreamError;
use wire::{RpcError, code};

/// Changes that a subscriber may be behind by.
const CHANGES: usize = 1024;

#[derive(Clone)]
pub(super) struct Hub(Arc<HubShared>);

struct HubShared {
    fleet: Fleet,
    store: Arc<dyn Store>,
    users: UserServers,
    changes: broadcast::Sender<Arc<ChangeEvent>>,
    subscriptions: Subscriptions,
}

impl Hub {
    /// Must be called inside the runtime: it starts to watch at once.
    pub(crate) fn new(
        fleet: &Fleet,
        store: &Arc<dyn Store>,
        users: &UserServers,
        control: Option<Arc<Control>>,
        renames: &broadcast::Sender<Arc<Renames>>,
    ) -> Hub {
        let (changes, _) = broadcast::channel(CHANGES);
        changes::watch(fleet, &**store, users.filters(), control, &changes, renames);
        Hub(Arc::new(HubShared {
            fleet: fleet.clone(),
            store: store.clone(),
            users: users.clone(),
            changes,
            subscriptions: Subscriptions::new(fleet.clone()),
        }))
    }

    /// The changes from now on, and the subscriber that selects those of a
    /// scope.
    pub(crate) fn subscribe(
        &self,
        scope: &Scope,
    ) -> (broadcast::Receiver<Arc<ChangeEvent>>, Subscriber) {
        let changes = self.0.changes.subscribe();
        let since = self.0.fleet.snapshot().offers;
        let (store, users) = (self.0.store.clone(), self.0.users.clone());
        let subscriber = Subscriber::new(scope.clone(), store, users, since);
        (changes, subscriber)
    }

    /// Follows a resource of a server: returns once the server has agreed.
    pub(crate) async fn follow(
        &self,
        follower: ResourceFollower<'_>,
        server: &Arc<str>,
        uri: &str,
    ) -> Result<Arc<ResourceSubscription>, RpcError> {
        let ResourceFollower { scope, slot } = follower;
        let permission = GrantPermission::of(scope, &self.0.store, Requirement::Resources, server);
        let subscribed = self.0.subscriptions.follow(server, uri, slot, permission);
        subscribed.await.map_err(|error| match error {
            UpstreamError::Revoked => no_resource(uri),
            UpstreamError::Rpc(error) => error,
            other => RpcError::new(code::INTERNAL, CallError::from(other).to_string()),
        })
    }
}
