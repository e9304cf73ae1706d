//! Portway: an MCP control plane and gateway.
//!
//! This crate is the program (`app`, `cli`) and the library for programs that
//! embed Portway: [`McpServer`], a set of definitions with their status, and,
//! with the feature `copilot`, all tools for a session of the GitHub Copilot
//! SDK. What it is made of stands in `crates/`, one crate per subject.

pub mod app;
pub mod cli;
#[cfg(feature = "copilot")]
pub mod copilot;
mod library;

/// For programs that embed Portway: what [`app::App`] is started with.
pub use config::settings;
/// For programs that embed Portway: servers run below a helper, which is the
/// program started again, so `main` calls [`shim::run_if_asked`] first.
pub use upstream::shim;

pub use library::{Config, ConfigError, Info, McpServer, Status};
