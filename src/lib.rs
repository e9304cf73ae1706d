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

pub use library::{Config, ConfigError, Info, McpServer, Status};
