//! One server as its owner wrote it: unexpanded, comparable, printable
//! without its secrets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

/// The time limit of a call where the definition names none (SPEC D4).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Replaces a hidden value in answers and logs.
pub const MASK: &str = "***";

const NAME_LIMIT: usize = 64;

/// A server's name, checked: 1 to 64 letters, digits, `_`, `-`, `.` or inner
/// spaces, starting with a letter or digit. No `:` (it separates server and
/// tool), no `/` or `%` (the name is part of a path), not the shape of a UUID
/// (a path takes a name or an id).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ServerName(Arc<str>);

impl ServerName {
    pub fn parse(text: &str) -> Result<ServerName, String> {
        let rule = || {
            format!(
                "a name is 1 to {NAME_LIMIT} letters, digits, '_', '-', '.' or inner spaces, \
                 and starts with a letter or digit"
            )
        };
        let Some(first) = text.chars().next() else {
            return Err(format!("must not be empty; {}", rule()));
        };
        if text.chars().count() > NAME_LIMIT {
            return Err(format!("is longer than {NAME_LIMIT} characters"));
        }
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        if !first.is_alphanumeric() || text.ends_with(' ') || !text.chars().all(fits) {
            return Err(rule());
        }
        if uuid::Uuid::try_parse(text).is_ok() {
            return Err("must not look like a UUID: paths take a name or an id".into());
        }
        Ok(ServerName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ServerName, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        ServerName::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A server definition. Values may hold `${VAR}`; they are expanded at
/// connect time only, into another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    pub target: Target,
    pub enabled: bool,
    /// The limit of one call, restarted by progress.
    pub timeout: Duration,
    pub era: EraChoice,
    pub containment: Containment,
    pub privileges: Privileges,
    pub isolation: Isolation,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    Stdio {
        command: String,
        args: Vec<String>,
        env: IndexMap<String, String>,
        cwd: Option<String>,
    },
    Remote {
        kind: RemoteKind,
        url: String,
        headers: IndexMap<String, String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    Http,
    Sse,
}

impl RemoteKind {
    pub fn transport(self) -> TransportKind {
        match self {
            RemoteKind::Http => TransportKind::Http,
            RemoteKind::Sse => TransportKind::Sse,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportKind {
    Stdio,
    Http,
    Sse,
}

/// The era to use with a server; `Auto` probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EraChoice {
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// The containment of a process tree (SPEC C8); `Auto` takes the strongest that
/// works here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    #[default]
    Auto,
    Namespace,
    Cgroup,
    Subreaper,
    Group,
}

/// The privileges of a local server beyond its user's ordinary rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Privileges {
    /// No capabilities, and none from setuid programs.
    #[default]
    Drop,
    /// The capabilities that Portway has.
    Keep,
}

/// The callers that share one process or connection (SPEC C7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Shared until the server sends its client a request during a call, from
    /// then on as `Principal`.
    #[default]
    Auto,
    Shared,
    Principal,
    Session,
}

/// The words for the values of an enum, in files and answers.
macro_rules! words {
    ($name:ident: $($value:ident $word:literal),+) => {
        impl $name {
            pub const ALL: &[$name] = &[$($name::$value),+];
            pub const WORDS: &[&str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }
        }
    };
}

words!(TransportKind: Stdio "stdio", Http "http", Sse "sse");
words!(EraChoice: Auto "auto", Legacy "legacy", Modern "modern");
words!(Containment: Auto "auto", Namespace "namespace", Cgroup "cgroup",
    Subreaper "subreaper", Group "group");
words!(Privileges: Drop "drop", Keep "keep");
words!(Isolation: Auto "auto", Shared "shared", Principal "principal", Session "session");

impl ServerSpec {
    pub fn new(target: Target) -> ServerSpec {
        ServerSpec {
            target,
            enabled: true,
            timeout: DEFAULT_TIMEOUT,
            era: EraChoice::default(),
            containment: Containment::default(),
            privileges: Privileges::default(),
            isolation: Isolation::default(),
        }
    }

    pub fn transport(&self) -> TransportKind {
        match self.target {
            Target::Stdio { .. } => TransportKind::Stdio,
            Target::Remote { kind, .. } => kind.transport(),
        }
    }

    /// Identifies the program or address, independently of the rest of the
    /// definition. Contains no value of a variable or header.
    pub fn fingerprint(&self) -> String {
        let words: Vec<&str> = match &self.target {
            Target::Stdio {
                command, args, cwd, ..
            } => [command, cwd.as_deref().unwrap_or_default()]
                .into_iter()
                .chain(args.iter().map(String::as_str))
                .collect(),
            Target::Remote { url, .. } => vec![url],
        };
        let mut hash = Sha256::new();
        hash.update(self.transport().as_str());
        for word in words {
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word);
        }
        let digest = hash.finalize();
        let bytes = digest[..16].iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a connection made for `self` also serves `other`: a change of
    /// the time limit alone is no reason to restart anything.
    pub fn same_connection(&self, other: &ServerSpec) -> bool {
        self.target == other.target
            && self.era == other.era
            && self.containment == other.containment
            && self.privileges == other.privileges
            && self.isolation == other.isolation
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Stdio { command, env, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys())
                .finish_non_exhaustive(),
            Target::Remote { headers, .. } => f
                .debug_struct("Remote")
                .field("headers", &headers.keys())
                .finish_non_exhaustive(),
        }
    }
}
