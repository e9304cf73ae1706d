//! Requests and notifications that Portway answers itself: handshakes, and the
//! settings of a legacy client's session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::ability::Abilities;
use super::listening::{ListenStream, ResourceFollower, tell_lists};
use super::reply::ReplyState;
use super::{
    Caller, Client, ClientRequest, Gateway, OwnedRequest, Reply, Scope, Session, View, text_param,
};
use fleet::{ServerView, Slot};
use wire::meta::LogLevel;
use wire::{Era, RpcError, code, object};

/// How long a handshake waits for a server that has just been started.
const FIRST_START: Duration = Duration::from_secs(30);

impl Gateway {
    pub(super) fn answer_locally(
        &self,
        view: Arc<View>,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> ReplyState {
        let (gateway, caller, client) = (self.clone(), caller.clone(), client.clone());
        let request = OwnedRequest::of(incoming.id, incoming.method, incoming.params);
        ReplyState::Opening(Box::pin(async move {
            let incoming = request.as_request();
            let answer = gateway.local_answer(view, &caller, &client, incoming).await;
            answer.unwrap_or_else(|error| Reply::error(incoming.id, &error).into())
        }))
    }

    async fn local_answer(
        &self,
        view: Arc<View>,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<ReplyState, RpcError> {
        let ClientRequest {
            id, method, params, ..
        } = incoming;
        let reply = |result: &RawValue| Ok(Reply::result(id, result).into());
        match (client.era, method) {
            (Era::Modern, "server/discover") => {
                let view = self.view_for_greeting(caller, view).await;
                view.offers(method)?;
                reply(&view.discover())
            }
            (Era::Modern, "subscriptions/listen") => {
                let lifetime = self.stream_lifetime(caller);
                let follower = ResourceFollower {
                    scope: &caller.scope,
                    slot: &slot(caller, client),
                };
                let stream = ListenStream::open(&self.hub, follower, view, id, params, lifetime);
                Ok(ReplyState::Listening(Box::new(stream.await?)))
            }
            (Era::Legacy, "initialize") => {
                let view = self.view_for_greeting(caller, view).await;
                view.offers(method)?;
                reply(&view.initialize(client.version))
            }
            (Era::Legacy, "ping") => reply(object::empty()),
            (Era::Legacy, "logging/setLevel") => {
                set_level(client, params)?;
                reply(object::empty())
            }
            (Era::Legacy, "resources/subscribe" | "resources/unsubscribe") => {
                self.subscription(view, caller, client, incoming).await?;
                reply(object::empty())
            }
            _ => {
                let text = format!("unknown method {method:?}");
                Err(RpcError::new(code::METHOD_NOT_FOUND, text))
            }
        }
    }

    /// The view for a client's handshake. Clients are often started together
    /// with Portway, and list the tools only once: at the endpoint of one
    /// server they wait for that server's first start.
    async fn view_for_greeting(&self, caller: &Caller, view: Arc<View>) -> Arc<View> {
        match &caller.scope {
            Scope::Server { name: server, .. } if view.is_empty() => {
                let settled = |view: &ServerView| view.settled_once || view.offer.is_some();
                self.fleet.wait(server, settled, FIRST_START).await;
                self.view(caller)
            }
            _ => view,
        }
    }

    async fn subscription(
        &self,
        view: Arc<View>,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<(), RpcError> {
        let Some(session) = &client.session else {
            let text = format!("{} needs a session", incoming.method);
            return Err(RpcError::new(code::INVALID_REQUEST, text));
        };
        let uri = text_param(incoming.params, "uri")?;
        if incoming.method == "resources/unsubscribe" {
            self.feeds.unsubscribe(session, &uri);
            return Ok(());
        }
        self.feeds.attach(&self.hub, caller, &view, session);
        let follower = ResourceFollower {
            scope: &caller.scope,
            slot: &slot(caller, client),
        };
        let subscribed = self
            .feeds
            .subscribe(&self.hub, follower, &view, session, &uri);
        subscribed.await
    }

    /// Handles a notification of a legacy client, except cancellations.
    pub fn notification(&self, caller: &Caller, session: &Arc<Session>, method: &str) {
        match (method, &caller.scope) {
            ("notifications/initialized", _) => self.attach(caller, session),
            // At the shared endpoint the roots could concern any server.
            ("notifications/roots/list_changed", Scope::Server { name, .. }) => {
                let (fleet, server) = (self.fleet.clone(), name.clone());
                let slot = caller.slot(Abilities::read(&session.capabilities), Some(session));
                let method = method.to_owned();
                tokio::spawn(async move { fleet.tell(&server, &slot, &method).await });
            }
            _ => {}
        }
    }

    /// Sends changes to a legacy session from now on.
    pub fn attach(&self, caller: &Caller, session: &Arc<Session>) {
        let view = self.view(caller);
        self.feeds.attach(&self.hub, caller, &view, session);
    }

    /// Notifies a session that reconnects, and may have missed changes, to list
    /// everything again.
    pub fn missed(&self, caller: &Caller, session: &Session) {
        tell_lists(session, self.view(caller).offered_lists());
    }
}

fn slot(caller: &Caller, client: &Client) -> Slot {
    let abilities = Abilities::read(&client.capabilities);
    caller.slot(abilities, client.session.as_deref())
}

fn set_level(client: &Client, params: Option<&RawValue>) -> Result<(), RpcError> {
    let level = text_param(params, "level")?;
    let level: LogLevel = level.parse().map_err(|_| {
        let text = format!("level: {level:?} is not a log level");
        RpcError::new(code::INVALID_PARAMS, text)
    })?;
    if let Some(session) = &client.session {
        session.set_level(level);
    }
    Ok(())
}
