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

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use url::Url;

use config::ServerName;

/// The way to reach a server.
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
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Config {
    Local {
        command: Vec<String>,
        #[serde(skip_serializing_if = "IndexMap::is_empty")]
        environment: IndexMap<String, String>,
        enabled: bool,
        /// Milliseconds.
        timeout: u64,
    },
    Remote {
        url: String,
        #[serde(skip_serializing_if = "IndexMap::is_empty")]
        headers: IndexMap<String, String>,
        enabled: bool,
        /// Milliseconds.
        timeout: u64,
    },
}

/// Milliseconds.
const TIMEOUT: u64 = 30_000;

/// The problem of a definition; names the field.
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

    fn read(object: Map<String, Value>) -> Result<Config, ConfigError> {
        let mut fields = DefinitionFields(object);
        let kind: String = fields.required("type", "\"local\" or \"remote\"")?;
        let config = match kind.as_str() {
            "local" => Config::Local {
                command: fields.required("command", "a list of strings")?,
                environment: fields.pairs("environment")?,
                enabled: fields.enabled()?,
                timeout: fields.timeout()?,
            },
            "remote" => Config::Remote {
                url: fields.required("url", "a string")?,
                headers: fields.pairs("headers")?,
                enabled: fields.enabled()?,
                timeout: fields.timeout()?,
            },
            other => {
                let text = format!("type: {other:?} is neither \"local\" nor \"remote\"");
                return Err(ConfigError(text));
            }
        };
        if let Some(name) = fields.0.keys().next() {
            return Err(ConfigError(format!(
                "{name}: unknown field of type {kind:?}"
            )));
        }
        config.check()?;
        Ok(config)
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
        let object = serde_json::from_str(text);
        Config::read(object.map_err(|error| ConfigError(error.to_string()))?)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Config, D::Error> {
        Config::read(Map::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// The fields of a definition that have not been read yet.
struct DefinitionFields(Map<String, Value>);

impl DefinitionFields {
    fn optional<T: DeserializeOwned>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, ConfigError> {
        let read = self.0.remove(name).map(serde_json::from_value).transpose();
        read.map_err(|_| ConfigError(format!("{name}: must be {expected}")))
    }

    fn required<T: DeserializeOwned>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<T, ConfigError> {
        let missing = || ConfigError(format!("{name}: is missing; it must be {expected}"));
        self.optional(name, expected)?.ok_or_else(missing)
    }

    fn pairs(&mut self, name: &str) -> Result<IndexMap<String, String>, ConfigError> {
        let given = self.optional(name, "an object whose values are strings")?;
        Ok(given.unwrap_or_default())
    }

    fn enabled(&mut self) -> Result<bool, ConfigError> {
        Ok(self.optional("enabled", "true or false")?.unwrap_or(true))
    }

    fn timeout(&mut self) -> Result<u64, ConfigError> {
        let given = self.optional("timeout", "a whole number of milliseconds")?;
        Ok(given.unwrap_or(TIMEOUT))
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

/// One registered server. Its serialised form can be read back.
///
/// ```
/// use portway::{Info, McpServer};
///
/// let servers = McpServer::new();
/// let config = r#"{"type":"local","command":["npx","mcp-memory"]}"#;
/// servers.register("memory", config.parse()?)?;
/// servers.update_tool_count("memory", 9);
///
/// let info = servers.get("memory").ok_or("registered above")?;
/// let text = serde_json::to_string(&info)?;
/// assert_eq!(serde_json::from_str::<Info>(&text)?, info);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    pub name: String,
    pub config: Config,
    pub status: Status,
    /// Set only while the status is `Error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
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
        self.servers.lock().insert(name.to_owned(), info);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<Info> {
        self.servers.lock().get(name).cloned()
    }

    pub fn list(&self) -> Vec<Info> {
        self.servers.lock().values().cloned().collect()
    }

    /// Returns whether the server existed.
    pub fn remove(&self, name: &str) -> bool {
        self.servers.lock().shift_remove(name).is_some()
    }

    /// Sets the status; keeps the text only with [`Status::Error`].
    /// Returns whether the server exists.
    pub fn update_status(&self, name: &str, status: Status, error: Option<&str>) -> bool {
        let mut servers = self.servers.lock();
        let Some(info) = servers.get_mut(name) else {
            return false;
        };
        info.status = status;
        info.error = error.filter(|_| status == Status::Error).map(str::to_owned);
        true
    }

    /// Sets the number of tools. Returns whether the server exists.
    pub fn update_tool_count(&self, name: &str, tools: usize) -> bool {
        let mut servers = self.servers.lock();
        let info = servers.get_mut(name);
        info.map(|info| info.tool_count = tools).is_some()
    }

    /// Removes all servers.
    pub fn reset(&self) {
        self.servers.lock().clear();
    }
}

#[cfg(test)]
mod tests;
