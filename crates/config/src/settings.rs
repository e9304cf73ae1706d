//! Settings of the program (SPEC K1): the command line first, then the
//! environment. Pure: both are arguments. An invalid setting is an error that
//! names it; all of them are reported at once.

mod limits;
mod reader;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use url::Url;

use super::authority::{Authority, Origin};
use super::{DatabaseSchema, Secret};
pub use limits::{Limits, UserLimits};
use reader::SettingsReader;
pub use values::duration;

/// Every variable that Portway reads and its meaning: a row each, as the help
/// shows it.
pub const VARIABLES: &str = "\
PORTWAY_LISTEN                  address to listen on (127.0.0.1:7420; port 0 picks a free one)
PORTWAY_URL                     where the other commands find the running Portway
PORTWAY_ENTRY_KEY               the key of the entry that `portway connect` speaks for
PORTWAY_DATA_DIR                where state is kept (./data in the project)
PORTWAY_ADMIN_TOKEN             the admin token (else made at first start and kept in the data directory)
PORTWAY_ALLOWED_HOSTS           further host[:port] names to answer to, with commas between
PORTWAY_ALLOWED_ORIGINS         further web origins that may call, with commas between
PORTWAY_SECRET                  seals sessions; the same on every replica (else made at first start)
PORTWAY_SELF_CONTROL            Portway's own management as MCP tools for the admin: on (default) or off
PORTWAY_CONNECT_TIMEOUT         how long a server may take to start and answer the handshake (60s)
PORTWAY_HEALTH_INTERVAL         how often a connected server is checked (30s)
PORTWAY_STOP_GRACE              how long a server may take to end before each harder step (5s)
PORTWAY_DRAIN                   how long calls in flight may take at shutdown (10s)
PORTWAY_MAX_BODY                largest request body (4MiB)
PORTWAY_MAX_LINE                largest line or event from a server (8MiB)
PORTWAY_MAX_RESPONSE            largest response from a server (16MiB)
PORTWAY_MEMORY_BUDGET           memory for requests, answers and streams in flight (a quarter of \
                                the control group's limit or of the machine's memory, 32MiB to 512MiB)
PORTWAY_USER_RECORDS            tool records and old records that one user may have (2000)
PORTWAY_USER_ENTRIES            entries that one user may have (200)
PORTWAY_USER_BINDINGS           bindings that one user's entries may have together (20000)
PORTWAY_USER_BYTES              text that one user's records and entries may have together (8MiB)
PORTWAY_MAX_CONNECTIONS         open client connections (10000)
PORTWAY_MAX_CONNECTIONS_PER_IP  the same from one address other than loopback (1000)
PORTWAY_FIRST_BYTE_TIMEOUT      for a connection that says nothing (5s)
PORTWAY_HEADER_TIMEOUT          for a request's head to arrive (10s)
PORTWAY_BODY_TIMEOUT            for a request's body to arrive (30s)
PORTWAY_WRITE_TIMEOUT           for a client that does not take its answer (30s)
PORTWAY_IDLE_TIMEOUT            for a connection between requests (120s)
PORTWAY_SESSION_IDLE            for the console's session without a request (12h)
PORTWAY_SESSION_LIFETIME        for the console's session in all (7d)
STORAGE_TYPE                    json (default) or supabase
SUPABASE_DB_URL                 postgres:// URL of the database
SUPABASE_DB_SCHEMA              schema of the tables in that database (public)
SUPABASE_URL                    URL of the Supabase project
SUPABASE_JWT_SECRET             verifies users' tokens
SUPABASE_USER_SERVERS           servers whose tools users may bind, with commas between and * for any characters (all)
MCP_SERVICE_URL                 the shared MCP service, where it is another process
RUST_LOG                        what is logged to stderr (info)
";

/// The names in [`VARIABLES`].
pub fn variable_names() -> impl Iterator<Item = &'static str> {
    VARIABLES
        .lines()
        .filter_map(|row| row.split_whitespace().next())
}

/// Options of the command line; `None` where not given.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    pub listen: Option<String>,
    pub project: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub no_auth: bool,
    pub log_format: Option<String>,
}

/// The address to listen on where none is given.
pub const DEFAULT_LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 7420);

#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The directory of `.mcp.json` and `.kode.json`.
    pub project: PathBuf,
    pub data_dir: PathBuf,
    /// Whether the user has named it, and so trusts it.
    pub names_data_dir: bool,
    /// The directory that records the data directories created by this user;
    /// `None` without a home directory.
    pub state_dir: Option<PathBuf>,
    /// Requests need no credential; only on a loopback address.
    pub no_auth: bool,
    pub admin_token: Option<Secret>,
    pub secret: Option<Secret>,
    /// Whether Portway can be managed by MCP tools of its own.
    pub self_control: bool,
    pub storage: StorageType,
    pub supabase_db_url: Option<Secret>,
    pub supabase_db_schema: DatabaseSchema,
    pub supabase_url: Option<Url>,
    pub supabase_jwt_secret: Option<Secret>,
    /// The servers that users may bind: globs over their names.
    pub user_servers: Option<Vec<String>>,
    pub mcp_service_url: Option<Url>,
    pub allowed_hosts: Vec<Authority>,
    pub allowed_origins: Vec<Origin>,
    pub log_format: LogFormat,
    pub log_filter: String,
    pub limits: Limits,
    /// Unknown variables with the prefix `PORTWAY_`, for a warning.
    pub unknown: Vec<BadSetting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageType {
    Json,
    /// With [`Settings::supabase_db_url`].
    Supabase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// SPEC F1 gives the words.
    #[error("Unsupported storage type: {0}")]
    UnsupportedStorage(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Bad(Vec<BadSetting>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct BadSetting {
    pub name: String,
    pub message: String,
}

impl Settings {
    /// `cwd` is the working directory: relative paths are relative to it.
    pub fn load(
        options: ServeOptions,
        env: &BTreeMap<String, String>,
        cwd: PathBuf,
    ) -> Result<Settings, SettingsError> {
        let mut from = SettingsReader::new(env);
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
            names_data_dir: data_dir.is_some(),
            state_dir: state_dir(env),
            data_dir: data_dir.map_or_else(|| project.join("data"), |dir| cwd.join(dir)),
            project,
            no_auth: from.no_auth(options.no_auth, listen),
            admin_token: from.read("PORTWAY_ADMIN_TOKEN", |text| values::secret(text, 16)),
            secret: from.read("PORTWAY_SECRET", |text| values::secret(text, 32)),
            self_control: from
                .read("PORTWAY_SELF_CONTROL", values::switch)
                .unwrap_or(true),
            storage,
            supabase_db_url: from.read("SUPABASE_DB_URL", values::database_url),
            supabase_db_schema: from
                .read("SUPABASE_DB_SCHEMA", DatabaseSchema::parse)
                .unwrap_or_default(),
            supabase_url: from.read("SUPABASE_URL", values::web_url),
            supabase_jwt_secret: from.read("SUPABASE_JWT_SECRET", |text| values::secret(text, 16)),
            user_servers: from.read("SUPABASE_USER_SERVERS", values::server_globs),
            mcp_service_url: from.read("MCP_SERVICE_URL", values::web_url),
            allowed_hosts: from
                .read("PORTWAY_ALLOWED_HOSTS", values::hosts)
                .unwrap_or_default(),
            allowed_origins: from
                .read("PORTWAY_ALLOWED_ORIGINS", values::origins)
                .unwrap_or_default(),
            log_format: from.log_format(options.log_format.as_deref()),
            log_filter: from
                .read("RUST_LOG", values::log_filter)
                .unwrap_or_else(|| "info".to_owned()),
            limits: Limits::read(&mut from),
            unknown: from.unknown(),
        };
        match from.bad {
            bad if bad.is_empty() => Ok(settings),
            bad => Err(SettingsError::Bad(bad)),
        }
    }
}

/// As XDG defines its base directories: only absolute paths are valid.
fn state_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute("XDG_STATE_HOME");
    let base = base.or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("portway"))
}

#[cfg(test)]
mod tests;
