//! Server definitions and their status, for programs that embed Portway.
//!
//! ```
//! use portway::{Config, McpServer, Status};
//!
//! let servers = McpServer::new();
//! let config: Config = r#"{"type":"local","command":["npx","mcp-memory"]}"#.parse()?;
//! servers.register("memory", config)?;
//!
//! let memory = servers.get("memory").ok_or("registered above")?;
//! assert_eq!(memory.status, Status::Disconnected);
//!
//! servers.update_status("memory", Status::Error, Some("connection timed out"));
//! let error = servers.get("memory").and_then(|info| info.error);
//! assert_eq!(error.as_deref(), Some("connection timed out"));
//!
//! assert!(servers.remove("memory"));
//! assert!(servers.list().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::ServerName;

/// How a server is reached.
///
/// ```
/// use portway::Config;
///
/// let config: Config = r#"{"type":"remote","url":"https://example.com/mcp"}"#.parse()?;
/// assert!(config.enabled());
/// assert_eq!(config.timeout(), 30_000);
///
/// let error = r#"{"type":"remote"}"#.parse::<Config>().unwrap_err();
/// assert!(error.to_string().contains("url"), "{error}");
/// # Ok::<(), portway::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Config {
    Local {
        command: Vec<String>,
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        environment: IndexMap<String, String>,
        #[serde(default = "enabled")]
        enabled: bool,
        /// Milliseconds.
        #[serde(default = "timeout")]
        timeout: u64,
    },
    Remote {
        url: String,
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        headers: IndexMap<String, String>,
        #[serde(default = "enabled")]
        enabled: bool,
        /// Milliseconds.
        #[serde(default = "timeout")]
        timeout: u64,
    },
}

fn enabled() -> bool {
    true
}

fn timeout() -> u64 {
    30_000
}

/// What is wrong with a definition; names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Config {
    pub fn enabled(&self) -> bool {
        match self {
            Config::Local { enabled, .. } | Config::Remote { enabled, .. } => *enabled,
        }
    }

    /// Milliseconds.
    pub fn timeout(&self) -> u64 {
        match self {
            Config::Local { timeout, .. } | Config::Remote { timeout, .. } => *timeout,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.timeout() == 0 {
            return Err(ConfigError(
                "timeout: must be more than 0 milliseconds".into(),
            ));
        }
        match self {
            Config::Local { command, .. } if command.first().is_none_or(String::is_empty) => Err(
                ConfigError("command: must start with the program to run".into()),
            ),
            Config::Local { .. } => Ok(()),
            Config::Remote { url, .. } => match Url::parse(url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
                _ => Err(ConfigError("url: must be an http or https address".into())),
            },
        }
    }
}

impl FromStr for Config {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Config, ConfigError> {
        let config: Config =
            serde_json::from_str(text).map_err(|error| ConfigError(error.to_string()))?;
        config.check()?;
        Ok(config)
    }
}

/// Shows the names of variables and headers, never their values.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Config::Local {
                command,
                environment,
                ..
            } => f
                .debug_struct("Local")
                .field("command", &command.first())
                .field("environment", &environment.keys())
                .finish_non_exhaustive(),
            Config::Remote { headers, .. } => f
                .debug_struct("Remote")
                .field("headers", &headers.keys())
                .finish_non_exhaustive(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Disconnected,
    Connecting,
    Connected,
    Error,
}

/// One registered server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    pub name: String,
    pub config: Config,
    pub status: Status,
    /// Set only while the status is `Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub tool_count: usize,
}

/// A set of servers by name, in the order they were registered.
#[derive(Default)]
pub struct McpServer {
    servers: Mutex<IndexMap<String, Info>>,
}

impl McpServer {
    pub fn new() -> McpServer {
        McpServer::default()
    }

    fn lock(&self) -> MutexGuard<'_, IndexMap<String, Info>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a server, or replaces the one of that name. It starts out
    /// disconnected.
    pub fn register(&self, name: &str, config: Config) -> Result<(), ConfigError> {
        ServerName::parse(name).map_err(|reason| ConfigError(format!("name: {reason}")))?;
        config.check()?;
        let info = Info {
            name: name.to_owned(),
            config,
            status: Status::Disconnected,
            error: None,
            tool_count: 0,
        };
        self.lock().insert(name.to_owned(), info);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Info> {
        self.lock().get(name).cloned()
    }

    pub fn list(&self) -> Vec<Info> {
        self.lock().values().cloned().collect()
    }

    /// Whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.lock().shift_remove(name).is_some()
    }

    /// Sets the status; the text is kept only with [`Status::Error`]. Whether
    /// there is such a server.
    pub fn update_status(&self, name: &str, status: Status, error: Option<&str>) -> bool {
        let mut servers = self.lock();
        let Some(info) = servers.get_mut(name) else {
            return false;
        };
        info.status = status;
        info.error = error.filter(|_| status == Status::Error).map(str::to_owned);
        true
    }

    /// Forgets everything.
    pub fn reset(&self) {
        self.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j1_defaults_are_those_of_the_document() {
        let config: Config = r#"{"type":"local","command":["npx","x"]}"#.parse().unwrap();
        assert!(config.enabled());
        assert_eq!(config.timeout(), 30_000);
    }

    #[test]
    fn j1_a_bad_config_is_refused_naming_the_field() {
        for (text, named) in [
            (r#"{"type":"sock","command":["x"]}"#, "sock"),
            (r#"{"type":"local"}"#, "command"),
            (r#"{"type":"local","command":[]}"#, "command"),
            (r#"{"type":"remote"}"#, "url"),
            (r#"{"type":"remote","url":"ftp://x"}"#, "url"),
            (
                r#"{"type":"remote","url":"http://x","timeout":0}"#,
                "timeout",
            ),
            (
                r#"{"type":"remote","url":"http://x","header":{}}"#,
                "header",
            ),
            (r#"{"command":["x"]}"#, "type"),
        ] {
            let error = text.parse::<Config>().unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn j1_register_get_list_remove_update_reset() {
        let servers = McpServer::new();
        let config: Config = r#"{"type":"remote","url":"https://example.com/mcp"}"#
            .parse()
            .unwrap();
        servers.register("api", config.clone()).unwrap();
        servers.register("other", config).unwrap();
        assert_eq!(servers.get("api").unwrap().status, Status::Disconnected);
        assert!(servers.update_status("api", Status::Error, Some("连接超时")));
        assert_eq!(
            servers.get("api").unwrap().error.as_deref(),
            Some("连接超时")
        );
        assert!(servers.update_status("api", Status::Connected, Some("ignored")));
        assert_eq!(servers.get("api").unwrap().error, None);
        assert!(!servers.update_status("nobody", Status::Connected, None));
        assert_eq!(servers.list().len(), 2);
        assert!(servers.remove("api") && !servers.remove("api"));
        assert_eq!(servers.get("api"), None);
        servers.reset();
        assert!(servers.list().is_empty());
        assert!(
            servers
                .register(
                    "a:b",
                    "{\"type\":\"local\",\"command\":[\"x\"]}".parse().unwrap()
                )
                .is_err()
        );
    }

    #[test]
    fn j1_values_of_variables_are_not_printed() {
        let config: Config = r#"{"type":"local","command":["x"],"environment":{"TOKEN":"s3cret"}}"#
            .parse()
            .unwrap();
        let text = format!("{config:?}");
        assert!(text.contains("TOKEN") && !text.contains("s3cret"), "{text}");
    }
}
