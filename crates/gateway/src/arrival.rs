//! Greeting clients that come before their server is there.

use std::sync::Arc;
use std::time::Duration;

use super::{Caller, Gateway, Scope, View};
use fleet::ServerView;

/// How long a greeting waits for a server that has just been started.
const ARRIVAL: Duration = Duration::from_secs(30);

impl Gateway {
    /// The view of a client that is being greeted. Clients are often started
    /// together with Portway, and are told only once what there is: on one
    /// server's own endpoint they wait for its first start.
    pub(super) async fn arrived(&self, caller: &Caller, view: Arc<View>) -> Arc<View> {
        match &caller.scope {
            Scope::Server { name: server, .. } if view.is_empty() => {
                let come = |view: &ServerView| view.settled_once || view.offer.is_some();
                self.fleet.wait(server, come, ARRIVAL).await;
                self.view(caller)
            }
            _ => view,
        }
    }
}
