//! Resources that clients follow at a server whose one process has become
//! several: each of them is to tell of its own.

use std::time::Duration;

use futures_util::future::join_all;

use super::Fleet;
use super::slots::SlotTable;
use upstream::{Connection, UpstreamCall};

/// How long a process may take to agree; others wait for it.
const SUBSCRIBE: Duration = Duration::from_secs(2);

impl Fleet {
    /// Has the processes beside the main one tell of a resource as well, or no
    /// longer.
    pub(crate) async fn follow_beside(&self, server: &str, uri: &str, follow: bool) {
        let snapshot = self.snapshot();
        let line = snapshot.find(server).and_then(|view| view.state.line());
        if let Some(line) = line {
            match follow {
                true => line.desk.follow(uri).await,
                false => line.desk.unfollow(uri).await,
            }
        }
    }
}

impl SlotTable {
    /// Follows a resource in every process beside the main one, present and
    /// to come.
    async fn follow(&self, uri: &str) {
        if self.was_one() && self.followed.lock().insert(uri.to_owned()) {
            self.in_each("resources/subscribe", uri).await;
        }
    }

    async fn unfollow(&self, uri: &str) {
        if self.followed.lock().remove(uri) {
            self.in_each("resources/unsubscribe", uri).await;
        }
    }

    async fn in_each(&self, method: &str, uri: &str) {
        let connections = self.connections();
        let each = connections.iter().map(|one| subscription(one, method, uri));
        join_all(each).await;
    }

    /// Has a new process tell of all that is followed, before its first call.
    pub(super) async fn follow_all(&self, connection: &Connection) {
        let followed: Vec<String> = self.followed.lock().iter().cloned().collect();
        let each = followed
            .iter()
            .map(|uri| subscription(connection, "resources/subscribe", uri));
        join_all(each).await;
    }
}

/// Begins or ends the news of a resource; a server that does not know it has
/// none.
async fn subscription(connection: &Connection, method: &str, uri: &str) {
    let params = serde_json::value::to_raw_value(&serde_json::json!({ "uri": uri })).ok();
    let call = UpstreamCall::new(method, SUBSCRIBE).params(params.as_deref());
    let _ = connection.background(call).await;
}
