//! How the program is told to run (SPEC K1): the command line first, then the
//! environment. Pure: both are arguments. A bad or unknown setting is an error
//! that names it; all of them are told at once.

mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::Secret;
use super::authority::{Authority, Origin};

/// Every variable that is read, and what it means.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "PORTWAY_LISTEN",
        "address to listen on (127.0.0.1:7420; port 0 picks a free one)",
    ),
    (
        "PORTWAY_DATA_DIR",
        "where state is kept (./data in the project)",
    ),
    (
        "PORTWAY_ADMIN_TOKEN",
        "the admin token (else made at first start and kept in the data directory)",
    ),
    (
        "PORTWAY_ALLOWED_HOSTS",
        "further host[:port] names to answer to, with commas between",
    ),
    (
        "PORTWAY_ALLOWED_ORIGINS",
        "further web origins that may call, with commas between",
    ),
    (
        "PORTWAY_SECRET",
        "seals sessions; the same on every replica (else made at first start)",
    ),
    (
        "PORTWAY_HEALTH_INTERVAL",
        "how often a connected server is checked (30s)",
    ),
    (
        "PORTWAY_STOP_GRACE",
        "how long a server may take to end before each harder step (5s)",
    ),
    (
        "PORTWAY_DRAIN",
        "how long calls in flight may take at shutdown (10s)",
    ),
    ("PORTWAY_MAX_BODY", "largest request body (4MiB)"),
    (
        "PORTWAY_MAX_LINE",
        "largest line or event from a server (8MiB)",
    ),
    (
        "PORTWAY_MAX_RESPONSE",
        "largest response from a server (16MiB)",
    ),
    ("PORTWAY_MAX_CONNECTIONS", "open client connections (10000)"),
    (
        "PORTWAY_MAX_CONNECTIONS_PER_IP",
        "the same from one address other than loopback (1000)",
    ),
    (
        "PORTWAY_FIRST_BYTE_TIMEOUT",
        "for a connection that says nothing (5s)",
    ),
    (
        "PORTWAY_HEADER_TIMEOUT",
        "for a request's head to arrive (10s)",
    ),
    (
        "PORTWAY_BODY_TIMEOUT",
        "for a request's body to arrive (30s)",
    ),
    (
        "PORTWAY_WRITE_TIMEOUT",
        "for a client that does not take its answer (30s)",
    ),
    (
        "PORTWAY_IDLE_TIMEOUT",
        "for a connection between requests (120s)",
    ),
    ("STORAGE_TYPE", "json (default) or supabase"),
    ("SUPABASE_DB_URL", "postgres:// URL of the database"),
    ("SUPABASE_URL", "URL of the Supabase project"),
    ("SUPABASE_JWT_SECRET", "verifies users' tokens"),
    (
        "MCP_SERVICE_URL",
        "the shared MCP service, where it is another process",
    ),
    ("RUST_LOG", "what is logged to stderr (info)"),
];

/// What the command line says; `None` where it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub listen: Option<String>,
    pub project: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub no_auth: bool,
    pub log_format: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// Where `.mcp.json` and `.kode.json` are.
    pub project: PathBuf,
    pub data_dir: PathBuf,
    /// No credential is asked for; only on a loopback address.
    pub no_auth: bool,
    pub admin_token: Option<Secret>,
    pub secret: Option<Secret>,
    pub storage: Storage,
    pub supabase_db_url: Option<Secret>,
    pub supabase_url: Option<Url>,
    pub supabase_jwt_secret: Option<Secret>,
    pub mcp_service_url: Option<Url>,
    pub allowed_hosts: Vec<Authority>,
    pub allowed_origins: Vec<Origin>,
    pub log_format: LogFormat,
    pub log_filter: String,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub health_interval: Duration,
    pub stop_grace: Duration,
    pub drain: Duration,
    pub max_body: usize,
    pub max_line: usize,
    pub max_response: usize,
    pub max_connections: usize,
    pub max_connections_per_ip: usize,
    pub first_byte: Duration,
    pub header: Duration,
    pub body: Duration,
    pub write: Duration,
    pub idle: Duration,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// SPEC F1 gives the words.
    #[error("Unsupported storage type: {0}")]
    UnsupportedStorage(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Bad(Vec<BadSetting>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    pub name: String,
    pub message: String,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl Settings {
    /// `cwd` is the working directory: relative paths are relative to it.
    pub fn load(
        options: Options,
        env: &BTreeMap<String, String>,
        cwd: PathBuf,
    ) -> Result<Settings, SettingsError> {
        let mut from = Reader {
            env,
            bad: Vec::new(),
        };
        from.refuse_unknown();
        let storage = from.storage()?;
        let listen = from.listen(options.listen.as_deref());
        let project = options
            .project
            .map_or_else(|| cwd.clone(), |dir| cwd.join(dir));
        let data_dir = options
            .data_dir
            .or_else(|| from.text("PORTWAY_DATA_DIR").map(PathBuf::from));
        let settings = Settings {
            listen,
            data_dir: data_dir.map_or_else(|| project.join("data"), |dir| cwd.join(dir)),
            project,
            no_auth: from.no_auth(options.no_auth, listen),
            admin_token: from.read("PORTWAY_ADMIN_TOKEN", |text| values::secret(text, 16)),
            secret: from.read("PORTWAY_SECRET", |text| values::secret(text, 32)),
            storage,
            supabase_db_url: from.read("SUPABASE_DB_URL", values::database_url),
            supabase_url: from.read("SUPABASE_URL", values::web_url),
            supabase_jwt_secret: from.read("SUPABASE_JWT_SECRET", |text| values::secret(text, 16)),
            mcp_service_url: from.read("MCP_SERVICE_URL", values::web_url),
            allowed_hosts: from
                .read("PORTWAY_ALLOWED_HOSTS", values::hosts)
                .unwrap_or_default(),
            allowed_origins: from
                .read("PORTWAY_ALLOWED_ORIGINS", values::origins)
                .unwrap_or_default(),
            log_format: from.log_format(options.log_format.as_deref()),
            log_filter: from.text("RUST_LOG").unwrap_or("info").to_owned(),
            limits: from.limits(),
        };
        match from.bad {
            bad if bad.is_empty() => Ok(settings),
            bad => Err(SettingsError::Bad(bad)),
        }
    }
}

struct Reader<'a> {
    env: &'a BTreeMap<String, String>,
    bad: Vec<BadSetting>,
}

impl Reader<'_> {
    fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.bad.push(BadSetting {
            name: name.to_owned(),
            message: message.into(),
        });
    }

    fn refuse_unknown(&mut self) {
        for name in self.env.keys().filter(|name| name.starts_with("PORTWAY_")) {
            if !VARIABLES.iter().any(|(known, _)| known == name) {
                let message = "is not a setting; `portway serve --help` lists them".to_owned();
                self.bad.push(BadSetting {
                    name: name.clone(),
                    message,
                });
            }
        }
    }

    /// An empty value counts as none: that is how compose files leave one out.
    fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(
            VARIABLES.iter().any(|(known, _)| *known == name),
            "{name} is not listed"
        );
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    fn read<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let outcome = parse(self.text(name)?);
        outcome.map_err(|message| self.refuse(name, message)).ok()
    }

    fn bounded<T: PartialOrd + Copy + fmt::Debug>(
        &mut self,
        name: &str,
        default: T,
        range: RangeInclusive<T>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let value = self.read(name, parse).unwrap_or(default);
        if !range.contains(&value) {
            let (low, high) = range.into_inner();
            self.refuse(name, format!("must be between {low:?} and {high:?}"));
        }
        value
    }

    fn storage(&mut self) -> Result<Storage, SettingsError> {
        match self.text("STORAGE_TYPE") {
            None | Some("json") => {}
            Some("supabase") => {
                self.refuse(
                    "STORAGE_TYPE",
                    "supabase is not available in this build yet; use json",
                );
            }
            Some(other) => return Err(SettingsError::UnsupportedStorage(other.to_owned())),
        }
        Ok(Storage::Json)
    }

    fn listen(&mut self, option: Option<&str>) -> SocketAddr {
        let default = SocketAddr::from(([127, 0, 0, 1], 7420));
        let (name, text) = match option {
            Some(text) => ("--listen", Some(text)),
            None => ("PORTWAY_LISTEN", self.text("PORTWAY_LISTEN")),
        };
        match text.map_or(Ok(default), values::address) {
            Ok(address) => address,
            Err(message) => {
                self.refuse(name, message);
                default
            }
        }
    }

    fn no_auth(&mut self, asked: bool, listen: SocketAddr) -> bool {
        if asked && !listen.ip().to_canonical().is_loopback() {
            let message = format!("works on a loopback address only, and {listen} is none");
            self.refuse("--no-auth", message);
        }
        asked
    }

    fn log_format(&mut self, option: Option<&str>) -> LogFormat {
        match option {
            None | Some("text") => LogFormat::Text,
            Some("json") => LogFormat::Json,
            Some(other) => {
                self.refuse("--log-format", format!("`{other}` is not text or json"));
                LogFormat::Text
            }
        }
    }

    fn limits(&mut self) -> Limits {
        let secs = Duration::from_secs;
        let mut time = |name, default, low, high| {
            self.bounded(name, secs(default), low..=secs(high), values::duration)
        };
        const TICK: Duration = Duration::from_millis(10);
        const DAY: u64 = 86_400;
        let health_interval = time("PORTWAY_HEALTH_INTERVAL", 30, TICK, DAY);
        let stop_grace = time("PORTWAY_STOP_GRACE", 5, Duration::ZERO, 600);
        let drain = time("PORTWAY_DRAIN", 10, Duration::ZERO, 3_600);
        let first_byte = time("PORTWAY_FIRST_BYTE_TIMEOUT", 5, TICK, 3_600);
        let header = time("PORTWAY_HEADER_TIMEOUT", 10, TICK, 3_600);
        let body = time("PORTWAY_BODY_TIMEOUT", 30, TICK, 3_600);
        let write = time("PORTWAY_WRITE_TIMEOUT", 30, TICK, 3_600);
        let idle = time("PORTWAY_IDLE_TIMEOUT", 120, TICK, DAY);
        const MIB: usize = 1 << 20;
        let mut bytes = |name, default: usize| {
            self.bounded(name, default * MIB, 1_024..=1_024 * MIB, values::size)
        };
        Limits {
            health_interval,
            stop_grace,
            drain,
            first_byte,
            header,
            body,
            write,
            idle,
            max_body: bytes("PORTWAY_MAX_BODY", 4),
            max_line: bytes("PORTWAY_MAX_LINE", 8),
            max_response: bytes("PORTWAY_MAX_RESPONSE", 16),
            max_connections: self.places("PORTWAY_MAX_CONNECTIONS", 10_000),
            max_connections_per_ip: self.places("PORTWAY_MAX_CONNECTIONS_PER_IP", 1_000),
        }
    }

    fn places(&mut self, name: &str, default: usize) -> usize {
        self.bounded(name, default, 1..=1_000_000, values::count)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Reader {
            env: &BTreeMap::new(),
            bad: Vec::new(),
        }
        .limits()
    }
}

#[cfg(test)]
mod tests;
