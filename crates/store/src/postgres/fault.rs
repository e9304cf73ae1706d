//! What went wrong with the database, in words that hold no SQL, no value of
//! a row and nothing of the URL.

use std::io::ErrorKind;

use super::super::StoreErrorKind;

/// Why an operation did not come to an end.
#[derive(Debug)]
pub(super) enum Fault {
    /// By the rules of the data.
    Rule(StoreErrorKind),
    Sql(sqlx::Error),
    /// No answer within our own limit.
    Late,
    /// It is known that nobody answers; nobody was asked.
    Away,
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Fault {
        Fault::Sql(error)
    }
}

impl From<StoreErrorKind> for Fault {
    fn from(kind: StoreErrorKind) -> Fault {
        Fault::Rule(kind)
    }
}

/// Named in the migrations. A name among these is checked before it is
/// written, so that a clash here means: somebody else was faster.
const LATE_CLASHES: &[&str] = &[
    "mcp_binding_name",
    "mcp_binding_once",
    "mcp_binding_entry",
    "mcp_binding_tool",
    "mcp_binding_tool_name",
    "mcp_server_definition_pkey",
];

/// Each constraint that a caller can run into, and what it protects.
const TAKEN: &[(&str, &str)] = &[
    ("mcp_v2_key", "the key"),
    ("mcp_key", "the key"),
    ("mcp_server_name", "the server's name"),
];

const UNFIT: &[(&str, &str)] = &[
    ("mcp_v2_name_length", "the name"),
    ("mcp_name_length", "the name"),
    ("tool_name_length", "the name"),
    ("mcp_server_name_length", "the server's name"),
    ("mcp_server_definition_name_length", "the server's name"),
    ("tool_description_length", "the description"),
    ("tool_server_length", "the server"),
    ("tool_tool_length", "the tool"),
    ("mcp_v2_user_length", "the owner"),
    ("mcp_user_length", "the owner"),
    ("tool_user_length", "the owner"),
    ("mcp_v2_hint_length", "the key's hint"),
    ("mcp_hint_length", "the key's hint"),
];

fn known(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let found = table.iter().find(|(constraint, _)| *constraint == name);
    found.map(|(_, words)| *words)
}

/// SQLSTATE classes and codes that say: not now, or not there.
fn away(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || matches!(code, "53300" | "53400")
}

impl Fault {
    pub(super) fn code(&self) -> Option<String> {
        match self {
            Fault::Sql(error) => Some(error.as_database_error()?.code()?.into_owned()),
            _ => None,
        }
    }

    /// Whether nothing can be said to the database at all.
    pub(super) fn is_connection(&self) -> bool {
        match self {
            Fault::Rule(_) => false,
            Fault::Late | Fault::Away => true,
            Fault::Sql(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::BeginFailed
                | sqlx::Error::WorkerCrashed
                | sqlx::Error::Protocol(_),
            ) => true,
            Fault::Sql(_) => self.code().is_some_and(|code| away(&code)),
        }
    }

    /// Whether the connection broke under the operation, as all those made
    /// before a restart of the database do.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Fault::Sql(sqlx::Error::Io(_) | sqlx::Error::BeginFailed) => true,
            Fault::Sql(sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed) => true,
            _ => {
                let code = self.code().unwrap_or_default();
                code.starts_with("08") || matches!(&*code, "57P01" | "57P02" | "57P05")
            }
        }
    }

    /// Whether the same again may well succeed: a deadlock, or somebody who
    /// was faster and whose work will be seen this time.
    pub(super) fn is_clash(&self) -> bool {
        let Fault::Sql(sqlx::Error::Database(error)) = self else {
            return false;
        };
        let code = error.code().unwrap_or_default();
        matches!(&*code, "40001" | "40P01")
            || error
                .constraint()
                .is_some_and(|name| LATE_CLASHES.contains(&name))
    }

    pub(super) fn kind(self) -> StoreErrorKind {
        let unavailable = |text: &str| StoreErrorKind::Unavailable(text.to_owned());
        let error = match self {
            Fault::Rule(kind) => return kind,
            Fault::Late => return unavailable("the database does not answer in time"),
            Fault::Away => return unavailable("the database does not answer"),
            Fault::Sql(error) => error,
        };
        match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
                unavailable("no connection to the database is to be had")
            }
            sqlx::Error::Io(error) => unavailable(match error.kind() {
                ErrorKind::ConnectionRefused => "the database refuses connections",
                ErrorKind::NotFound => "the database's host is not known",
                _ => "the connection to the database is lost",
            }),
            sqlx::Error::Tls(_) => {
                unavailable("no secure connection to the database can be made (TLS)")
            }
            sqlx::Error::Database(error) => database(&*error),
            sqlx::Error::Encode(_) => StoreErrorKind::Unfit("a value"),
            _ => unavailable("the database answers in a way that cannot be understood"),
        }
    }
}

/// A rule that is not ours: a constraint or a NOT NULL column that somebody
/// added, or an exception that a trigger raised. Its name and no more: the
/// words of an exception, and the row in the details, may hold anything.
fn rule(error: &dyn sqlx::error::DatabaseError, code: &str) -> Option<StoreErrorKind> {
    let error = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>()?;
    let of = match error.table() {
        Some(table) => format!(" of the table {table}"),
        None => String::new(),
    };
    let rule = match (code, error.column(), error.constraint()) {
        ("23502", Some(column), _) => format!("the column {column:?}{of} must have a value"),
        ("23505" | "23P01", _, Some(name)) => {
            format!("the constraint {name:?}{of} forbids a second record like this")
        }
        (code, _, Some(name)) if code.starts_with("23") => {
            format!("the constraint {name:?}{of} does not allow it")
        }
        (code, ..) => match function(error.r#where().unwrap_or_default()) {
            Some(name) => format!("the database's function {name:?} does not allow it"),
            None if code.starts_with("23") || code.starts_with("P0") => {
                format!("a rule{of} of the database's owner does not allow it")
            }
            None => return None,
        },
    };
    let clash = matches!(code, "23505" | "23P01");
    Some(StoreErrorKind::Refused { rule, clash })
}

/// The function in which an error arose, by the context that PostgreSQL
/// tells: `PL/pgSQL function public.limit_entries() line 3 at RAISE`.
fn function(context: &str) -> Option<&str> {
    context.lines().find_map(|line| {
        let (_, called) = line.split_once("PL/pgSQL function ")?;
        Some(called.split_once('(')?.0)
    })
}

fn database(error: &dyn sqlx::error::DatabaseError) -> StoreErrorKind {
    let code = error.code().unwrap_or_default();
    let named = error.constraint().unwrap_or_default();
    if let Some(constraint) = known(TAKEN, named) {
        return StoreErrorKind::Conflict { constraint };
    }
    if let Some(what) = known(UNFIT, named) {
        return StoreErrorKind::Unfit(what);
    }
    let words = match &*code {
        // A character that text cannot hold there (NUL), or too much of it.
        "22021" | "22P05" | "22001" | "54000" => return StoreErrorKind::Unfit("a text"),
        "28P01" | "28000" => "the database refuses our credentials",
        "3D000" => "there is no such database",
        "42501" => "the database user may not do that",
        "42P01" | "42703" | "3F000" => {
            "the tables are not as they should be (apply supabase/migrations)"
        }
        "53100" => return StoreErrorKind::Full,
        "25006" => "the database is read-only",
        "57014" => "the database took too long",
        "55P03" => "somebody else is changing the same records",
        "40001" | "40P01" => "too many are changing the same records",
        code if LATE_CLASHES.contains(&named) && code.starts_with("23") => {
            "somebody else is changing the same records"
        }
        code if away(code) => "the database is not taking work at the moment",
        code => {
            if let Some(refused) = rule(error, code) {
                return refused;
            }
            let text = format!("the database refused it (SQLSTATE {code})");
            return StoreErrorKind::Unavailable(text);
        }
    };
    StoreErrorKind::Unavailable(words.to_owned())
}
