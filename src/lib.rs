//! Portway: an MCP control plane and gateway.
//!
//! The rooms, each one thing, and the direction they may look in
//! (`tests/it/tidy.rs` holds it):
//!
//! - [`wire`]: how MCP is spelled, in both eras. Pure.
//! - [`memory`]: how much may be held for clients.
//! - [`config`]: what the files say.
//! - [`store`]: what is remembered.
//! - [`registry`]: what should run.
//! - [`upstream`]: how one server is reached.
//! - [`fleet`]: what does run.
//! - [`gateway`]: what a client may see and do.
//! - [`http`]: how people ask.
//! - [`app`]: who is plugged into whom.
//!
//! With the feature `copilot` there is also `copilot`: all tools for a session
//! of the GitHub Copilot SDK.
//!
//! For programs that embed Portway there is also [`McpServer`], a set of
//! definitions with their status.

pub mod app;
pub mod cli;
pub mod config;
#[cfg(feature = "copilot")]
pub mod copilot;
pub mod fleet;
pub mod gateway;
pub mod http;
mod library;
pub mod memory;
pub mod registry;
pub mod store;
pub mod upstream;
pub mod wire;

pub use library::{Config, ConfigError, Info, McpServer, Status};
