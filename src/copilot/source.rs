//! The source of tools: the types of a list and a call, and their errors.

use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::ToolResultExpanded;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;

/// A source in which tools can be listed and called.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// The tools that a filter allows; `None` if they are the same as those of
    /// `known`, the tag of an earlier catalog.
    async fn catalog(
        &self,
        filter: Option<&str>,
        known: Option<&str>,
    ) -> Result<Option<ToolCatalog>, ToolSourceError>;

    /// Calls a tool by its listed name. Dropping the future cancels the call.
    async fn call(
        &self,
        filter: Option<&str>,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResultExpanded, ToolSourceError>;

    /// Notifies `news` whenever the catalog may have changed, or when it is
    /// time to check. Runs until it is dropped, or until no more changes can
    /// come.
    async fn watch(&self, news: &Notify);
}

/// The tools of a source at one moment.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog {
    /// Differs whenever the tools differ.
    pub tag: String,
    pub tools: Vec<CopilotTool>,
}

/// A tool as it is listed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopilotTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// The server declares that the tool changes nothing.
    #[serde(default)]
    pub skip_permission: bool,
    /// `server`, `tool`, and the server's own metadata.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// The tools as Portway lists them for Copilot.
#[derive(Deserialize)]
pub(super) struct ToolListing {
    #[serde(default)]
    pub hash: String,
    pub tools: Vec<CopilotTool>,
}

/// The reason for a missing list or result. The model reads its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSourceError {
    #[error("{0:?} is not the http or https address of a Portway")]
    BadUrl(String),
    /// The key contains characters that a header cannot carry.
    #[error("the key holds characters that no key has")]
    BadKey,
    #[error("no HTTPS here: {0}")]
    NoCertificates(String),
    #[error("no Portway answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("no answer within {} ms", .0.as_millis())]
    Silent(Duration),
    #[error("the Portway at {url} does not take this key")]
    Denied { url: String },
    /// The tool or the filter does not exist.
    #[error("{0}")]
    NotFound(String),
    #[error("Portway refused it ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("what answers at {url} is no Portway: {reason}")]
    Unexpected { url: String, reason: String },
}
