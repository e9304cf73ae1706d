//! Persistent state. Other rooms see only [`Store`]; this room alone uses file
//! syscalls, locks and SQL. A missing record is never an error here: the caller
//! decides what it means.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use config::ServerName;
pub use config::settings::UserLimits;

mod address_owner;
mod backend;
mod digest;
mod examine;
mod file;
mod foreign;
mod git;
mod grant;
mod journal;
mod json;
mod key;
mod lock;
pub mod memory;
mod operations;
mod own;
mod passing;
mod postgres;
mod presence;
mod quota;
mod records;
mod replace;
mod rules;
mod sessions;
mod snapshot;
mod state;
mod time;
mod trust;
mod unfinished;
mod whereabouts;
mod writers;

pub use address_owner::{AddressOwner, address_owner};
pub use backend::{OpenedStore, Store, open};
pub use digest::{ApiKey, KEY_PREFIX, KeyDigest};
pub use examine::{DatabaseReport, FilesReport, StoredRecords, examine_files, stored_records};
pub use foreign::{ForeignRecord, foreign_file, foreign_table};
pub use grant::{CallsInFlight, Grant, GrantDirectory};
pub use key::{admin_token, instance_id, known_admin_token, replace_admin_token, session_secret};
pub use lock::{Holder, holder, make_directory};
pub use passing::is_passing;
pub use postgres::examine_database;
pub use presence::{Attendance, Presence, append_private, is_in_use, serves_clients};
pub use records::{
    ADMIN, Adoption, Binding, BoundTool, Creation, Entry, EntryChange, EntryId, ExposedServers,
    Idempotency, Instance, InstanceChange, InstanceName, KeyHolder, KeyRecord, Listing,
    MigratedInstance, NewBinding, NewEntry, NewInstance, NewKey, NewTool, OwnerScope, Page,
    ToolChange, ToolId, ToolRecord,
};
pub use replace::{ReadError, ReplaceError, read_trusted, replace};
pub use sessions::{console_sessions, keep_console_sessions};
pub use time::Timestamp;
pub use trust::{claim, hidden_directories, is_trusted, objections};
pub use unfinished::{note_unfinished_edit, unfinished_edit};
pub use whereabouts::{address_stamp, forget_address, known_address, socket_address, tell_address};

/// State of a server that no configuration file has a field for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    pub id: Uuid,
    pub name: ServerName,
    /// The last decision of a person on whether it should run; without one, its
    /// definition's `enabled` decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<bool>,
    /// The fingerprint of the definition with which the server sent its client
    /// a request during a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    pub created_at: Timestamp,
}

impl ServerRecord {
    pub fn new(name: ServerName) -> ServerRecord {
        ServerRecord {
            id: Uuid::new_v4(),
            name,
            run: None,
            asks: None,
            created_at: Timestamp::now(),
        }
    }
}

/// The grant of a key, as far as memory knows.
#[derive(Clone, Debug)]
pub enum GrantLookup {
    Yes(Arc<Grant>),
    No,
    /// Memory may be out of date: call [`Store::ask`].
    Ask,
}

/// A change that other rooms follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// The entry, its bindings or a tool of it.
    Entry(EntryId),
    /// A tool record or an old record: neither is being served.
    Records,
    /// Another process changed server records.
    Servers,
    /// Anything may have changed.
    Everything,
}

/// A change of one definition; `None` means that there is no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    pub name: String,
    pub found: Option<String>,
    pub new: Option<String>,
}

/// The operation that failed, in words, and the reason. Cheap to clone: one
/// failed write is the result of every caller that waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {operation}: {kind}")]
pub struct StoreError {
    pub operation: Cow<'static, str>,
    pub kind: StoreErrorKind,
}

type StoreResult<T> = Result<T, StoreError>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreErrorKind {
    /// Try again later.
    #[error("{0}")]
    Unavailable(String),
    /// Another process holds the data directory.
    #[error(
        "{} is in use by another Portway{}",
        directory.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Locked {
        directory: PathBuf,
        pid: Option<u32>,
    },
    /// A rule of the data forbids it.
    #[error("{0} is taken")]
    Conflict(UniqueField),
    /// The tool does not exist, or has another owner.
    #[error("there is no tool {0}")]
    NoSuchTool(ToolId),
    /// Two tools of one entry have the same name.
    #[error("two bound tools are called {0:?}")]
    SameName(String),
    /// The limit of one user is reached.
    #[error(
        "a user may have {limit} {what} (PORTWAY_USER_{}); delete some first",
        what.to_ascii_uppercase()
    )]
    Quota { what: &'static str, limit: usize },
    /// Too long, empty, or impossible to store as text.
    #[error("{0}: empty, too long or contains invalid characters")]
    Unfit(&'static str),
    /// A rule of the database's owner, by its name.
    #[error("{rule}")]
    Refused {
        rule: String,
        /// The rule failed because of another record.
        clash: bool,
    },
    /// The configuration cannot work; a retry does not help.
    #[error("{0}")]
    Setup(String),
    /// An earlier request had the same `Idempotency-Key` and another body.
    #[error("this Idempotency-Key was used with a different request")]
    OnceReused,
    /// The files on disk cannot be used, and Portway must not delete them.
    #[error("{0}")]
    Corrupt(String),
    #[error("no space is left on the disk")]
    Full,
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: Arc<io::Error>,
    },
}

/// A field that no two records may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UniqueField {
    #[error("the key")]
    Key,
    #[error("the server's name")]
    ServerName,
}

impl StoreErrorKind {
    fn io(path: impl Into<PathBuf>, error: io::Error) -> StoreErrorKind {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
            _ if is_passing(&error) => StoreErrorKind::Unavailable(format!(
                "the data directory cannot be used now ({error})"
            )),
            _ => StoreErrorKind::Io {
                path: path.into(),
                source: Arc::new(error),
            },
        }
    }

    /// The reason in words that name no file and no address.
    pub fn in_public(&self) -> String {
        match self {
            StoreErrorKind::Unavailable(_)
            | StoreErrorKind::Full
            | StoreErrorKind::Refused { .. } => self.to_string(),
            StoreErrorKind::Io { .. } => "the data directory cannot be written".into(),
            _ => "the store refused it".into(),
        }
    }

    fn during(self, operation: impl Into<Cow<'static, str>>) -> StoreError {
        StoreError {
            operation: operation.into(),
            kind: self,
        }
    }
}

/// Adds the file to an error.
trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T, StoreErrorKind>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, StoreErrorKind> {
        self.map_err(|error| StoreErrorKind::io(path, error))
    }
}

/// Adds the operation that failed.
trait DuringOperation<T> {
    fn during(self, operation: &'static str) -> StoreResult<T>;
}

impl<T> DuringOperation<T> for Result<T, StoreErrorKind> {
    fn during(self, operation: &'static str) -> StoreResult<T> {
        self.map_err(|kind| kind.during(operation))
    }
}

#[cfg(test)]
mod tests;
