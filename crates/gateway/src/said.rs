//! What a legacy client says once for its whole session: the level it logs
//! at, what it follows, that it is ready.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::changes::ListSet;
use super::listening::{ResourceFollower, tell_lists};
use super::session::Session;
use super::view::View;
use super::{Caller, Client, ClientRequest, Gateway, Scope, resolve, text_param};
use wire::meta::LogLevel;
use wire::{RpcError, code};

impl Gateway {
    pub(super) async fn subscription(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
        view: &Arc<View>,
    ) -> Result<(), RpcError> {
        let Some(session) = &client.session else {
            return Err(RpcError::new(code::INVALID_REQUEST, "this needs a session"));
        };
        let uri = text_param(incoming.params, "uri")?;
        if incoming.method == "resources/unsubscribe" {
            self.feeds.unsubscribe(session, &uri);
            return Ok(());
        }
        self.attach(caller, session);
        let who = ResourceFollower {
            scope: &caller.scope,
            slot: &resolve::slot(caller, session),
        };
        self.feeds
            .subscribe(&self.hub, who, view, session, &uri)
            .await
    }

    /// Takes a notification of a legacy client, cancellations aside.
    pub fn notification(&self, caller: &Caller, session: &Arc<Session>, method: &str) {
        match (method, &caller.scope) {
            ("notifications/initialized", _) => self.attach(caller, session),
            // Through the shared endpoint nobody knows whom it concerns.
            ("notifications/roots/list_changed", Scope::Server { name, .. }) => {
                let (fleet, server) = (self.fleet.clone(), name.clone());
                let slot = resolve::slot(caller, session);
                let method = method.to_owned();
                tokio::spawn(async move { fleet.tell(&server, &slot, &method).await });
            }
            _ => {}
        }
    }

    /// Tells a legacy session of changes from now on.
    pub fn attach(&self, caller: &Caller, session: &Arc<Session>) {
        let view = self.view(caller);
        self.feeds.attach(&self.hub, caller, &view, session);
    }

    /// Tells a session that comes back, and may have missed anything, to look.
    pub fn missed(&self, caller: &Caller, session: &Session) {
        let view = self.view(caller);
        let has = ListSet {
            tools: view.has("tools"),
            resources: view.has("resources"),
            prompts: view.has("prompts"),
        };
        tell_lists(session, has);
    }
}

pub(super) fn set_level(client: &Client, params: Option<&RawValue>) -> Result<(), RpcError> {
    let level = text_param(params, "level")?;
    let level: LogLevel = level.parse().map_err(|_| {
        RpcError::new(
            code::INVALID_PARAMS,
            format!("level: {level:?} is not a log level"),
        )
    })?;
    if let Some(session) = &client.session {
        session.set_level(level);
    }
    Ok(())
}
