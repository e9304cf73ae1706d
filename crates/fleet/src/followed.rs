//! Resource subscriptions at a server whose single process was split into
//! several: each process sends updates of its own.

use std::time::Duration;

use futures_util::future::join_all;

use super::Fleet;
use super::slots::SlotTable;
use upstream::{Connection, UpstreamCall};

/// The limit for a process to accept a subscription; others wait for it.
const SUBSCRIBE: Duration = Duration::from_secs(2);

impl Fleet {
    /// Subscribes to a resource, or unsubscribes, in the processes beside the
    /// main one.
    pub(crate) async fn follow_beside(&self, server: &str, uri: &str, follow: bool) {
        if let Some(line) = self.connected(server) {
            line.desk.follow(uri, follow).await;
        }
    }
}

impl SlotTable {
    /// Subscribes to a resource in every process beside the main one, present
    /// and future; or unsubscribes.
    async fn follow(&self, uri: &str, follow: bool) {
        let (method, changed) = if follow {
            let new = self.was_one() && self.followed.lock().insert(uri.to_owned());
            ("resources/subscribe", new)
        } else {
            ("resources/unsubscribe", self.followed.lock().remove(uri))
        };
        if changed {
            let connections = self.connections();
            let each = connections.iter().map(|one| subscription(one, method, uri));
            join_all(each).await;
        }
    }

    /// Subscribes a new process to all followed resources, before its first call.
    pub(super) async fn follow_all(&self, connection: &Connection) {
        let followed: Vec<String> = self.followed.lock().iter().cloned().collect();
        let each = followed
            .iter()
            .map(|uri| subscription(connection, "resources/subscribe", uri));
        join_all(each).await;
    }
}

/// Sends a subscribe or unsubscribe request. Errors are ignored: a server that
/// does not know the resource sends no updates.
async fn subscription(connection: &Connection, method: &str, uri: &str) {
    let params = serde_json::value::to_raw_value(&serde_json::json!({ "uri": uri })).ok();
    let call = UpstreamCall::new(method, SUBSCRIBE).params(params.as_deref());
    let _ = connection.background(call).await;
}
