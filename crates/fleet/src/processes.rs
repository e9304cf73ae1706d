//! The process tree of a server, as the API shows it.

use serde::Serialize;

use super::history::epoch_millis;
use super::state::ServerView;
use upstream::process;

/// One process of a server's tree. It has the name and not the command line,
/// which may contain the expanded value of a `${VAR}`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessEntry {
    pub pid: u32,
    pub ppid: u32,
    pub command: String,
    pub rss_bytes: u64,
    /// Milliseconds since the epoch.
    pub started_at: u64,
}

impl ServerView {
    /// The running processes, the server first. Reads `/proc`, which blocks:
    /// not for a thread of the async runtime.
    pub fn processes(&self) -> Vec<ProcessEntry> {
        let tree = self.process.as_ref().and_then(|facts| facts.tree);
        let found = tree.map(process::ProcessTree::list).unwrap_or_default();
        let shown = |info: process::ProcessInfo| ProcessEntry {
            pid: info.pid,
            ppid: info.ppid,
            // A process can choose any name for itself.
            command: self.log.clean(&info.command),
            rss_bytes: info.rss,
            started_at: epoch_millis(info.since),
        };
        found.into_iter().map(shown).collect()
    }
}
