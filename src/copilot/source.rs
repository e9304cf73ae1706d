//! Where tools come from: what a list and a call look like, and how they fail.

use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::ToolResultExpanded;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;

/// Somewhere that tools can be listed and called.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// The tools that a filter lets through; `None` where they are those of
    /// `known`, the tag of an earlier catalog.
    async fn catalog(
        &self,
        filter: Option<&str>,
        known: Option<&str>,
    ) -> Result<Option<ToolCatalog>, ToolSourceError>;

    /// Calls a tool by the name it was listed under. Dropping the future
    /// gives the call up.
    async fn call(
        &self,
        filter: Option<&str>,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResultExpanded, ToolSourceError>;

    /// Tells `news` whenever the catalog may have changed, or when it is time
    /// to look whether it has. Goes on until it is dropped, or there is
    /// nothing more to come.
    async fn watch(&self, news: &Notify);
}

/// What a source offers at one moment.
#[derive(Clone, Debug, Default)]
pub struct ToolCatalog {
    /// Another one whenever the tools are others.
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
    /// The server says that it changes nothing.
    #[serde(default)]
    pub skip_permission: bool,
    /// `server`, `tool`, and what the server says of it.
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

/// Why there is no list, or no result. The text is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSourceError {
    #[error("{0:?} is not the http or https address of a Portway")]
    BadUrl(String),
    /// Something a header cannot carry.
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
    /// No such tool, or no such filter.
    #[error("{0}")]
    NotFound(String),
    #[error("Portway refused it ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("what answers at {url} is no Portway: {reason}")]
    Unexpected { url: String, reason: String },
}
