//! All tools as GitHub Copilot SDK [`Tool`]s (SPEC D8), for programs that have
//! a Copilot session: those of a [`RemotePortway`], or of one that is
//! [`Embedded`] in the program.
//!
//! ```no_run
//! use std::sync::Arc;
//! use github_copilot_sdk::{Client, SessionConfig, Tool};
//! use portway::copilot::{self, ToolOptions, RemotePortway};
//!
//! # async fn example(client: Client, own: Vec<Tool>) -> Result<(), Box<dyn std::error::Error>> {
//! let portway = RemotePortway::new("http://127.0.0.1:7420", &std::env::var("PORTWAY_ADMIN_TOKEN")?)?;
//! let options = ToolOptions::default();
//! let tools = copilot::tools(&portway, &options).await?;
//! let config = SessionConfig::default().with_tools(copilot::merge(own.clone(), tools)?);
//! let session = Arc::new(client.create_session(config).await?);
//! // The session's tools change with Portway's, for as long as this lives.
//! let _following = copilot::follow(&portway, &session, own, options);
//! # Ok(())
//! # }
//! ```
//!
//! A tool never returns an error of the SDK, which would hide the reason from
//! the model: every failure is a result of the type `failure` or `timeout` with
//! its text. Cancelling a call, by [`Session::abort`] or otherwise, cancels it
//! at its server.
//!
//! [`Session::abort`]: github_copilot_sdk::session::Session::abort

mod embedded;
mod follow;
mod running;
mod source;
mod tool;

use std::collections::HashSet;
use std::time::Duration;

use github_copilot_sdk::Tool;

pub use embedded::Embedded;
pub use follow::{FollowHandle, follow};
pub use running::RemotePortway;
pub use source::{CopilotTool, ToolCatalog, ToolSource, ToolSourceError};

/// Options for listing and calling tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolOptions {
    /// The limit for a call, and for a request of the list.
    pub timeout: Duration,
    /// Only the tools that this filter of Portway allows.
    pub filter: Option<String>,
    pub permission: PermissionMode,
}

impl Default for ToolOptions {
    fn default() -> ToolOptions {
        ToolOptions {
            timeout: Duration::from_secs(30),
            filter: None,
            permission: PermissionMode::Ask,
        }
    }
}

impl ToolOptions {
    pub fn with_timeout(mut self, timeout: Duration) -> ToolOptions {
        self.timeout = timeout;
        self
    }

    pub fn with_filter(mut self, filter: impl Into<String>) -> ToolOptions {
        self.filter = Some(filter.into());
        self
    }

    pub fn with_permission(mut self, permission: PermissionMode) -> ToolOptions {
        self.permission = permission;
        self
    }
}

/// The tools that are called without the session's permission handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionMode {
    /// None.
    #[default]
    Ask,
    /// Tools that their server declares read-only (`readOnlyHint`). Portway
    /// cannot verify it: choose this only if all servers are trusted.
    ReadOnlyHint,
    /// All.
    Skip,
}

/// All tools of a source, each with a handler that calls it there.
pub async fn tools<S>(source: &S, options: &ToolOptions) -> Result<Vec<Tool>, ToolSourceError>
where
    S: ToolSource + Clone,
{
    let look = source.catalog(options.filter.as_deref(), None);
    match tokio::time::timeout(options.timeout, look).await {
        Ok(catalog) => Ok(tool::all(source, catalog?.unwrap_or_default(), options)),
        Err(_) => Err(ToolSourceError::Silent(options.timeout)),
    }
}

/// Two tools with the same name. The SDK would refuse them, or take the last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools are called {name:?}: rename your own")]
pub struct NameClash {
    pub name: String,
}

/// The caller's tools, then Portway's. None is replaced: if two have the same
/// name, the error names it.
pub fn merge(own: Vec<Tool>, mcp: Vec<Tool>) -> Result<Vec<Tool>, NameClash> {
    let mut all = own;
    all.extend(mcp);
    let mut seen = HashSet::new();
    let twice = all.iter().find(|tool| !seen.insert(tool.name.as_str()));
    match twice.map(|tool| tool.name.clone()) {
        Some(name) => Err(NameClash { name }),
        None => Ok(all),
    }
}
