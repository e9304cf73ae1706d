//! Errors of the database, in words that hold no SQL, no value of a row and no
//! part of the URL.

use std::io::ErrorKind;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgQueryResult};

use super::super::{StoreError, StoreErrorKind, UniqueField};
use super::namespace::COMPANION;

/// Why an operation failed.
#[derive(Debug)]
pub(in super::super) enum DbError {
    /// A rule of the data forbids it.
    Rule(StoreErrorKind),
    Sql(sqlx::Error),
    /// No response within our own limit.
    Late,
    /// The database is known to be unreachable; it got no request.
    Away,
}

pub(in super::super) type DbResult<T> = Result<T, DbError>;

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> DbError {
        DbError::Sql(error)
    }
}

impl From<StoreErrorKind> for DbError {
    fn from(kind: StoreErrorKind) -> DbError {
        DbError::Rule(kind)
    }
}

/// Constraints of the migrations. A rule checks these names before they are
/// written, so that a clash here means: another transaction was faster.
const LATE_CLASHES: &[&str] = &[
    "mcp_binding_name",
    "mcp_binding_once",
    "mcp_binding_entry",
    "mcp_binding_tool",
    "mcp_binding_tool_name",
    "mcp_server_definition_pkey",
];

/// The error of a constraint of ours that a caller can violate.
fn violated(constraint: &str) -> Option<StoreErrorKind> {
    let unfit = match constraint {
        "mcp_v2_key" | "mcp_key" => return Some(StoreErrorKind::Conflict(UniqueField::Key)),
        "mcp_server_name" => return Some(StoreErrorKind::Conflict(UniqueField::ServerName)),
        "mcp_v2_name_length" | "mcp_name_length" | "tool_name_length" => "the name",
        "mcp_server_name_length" | "mcp_server_definition_name_length" => "the server's name",
        "tool_description_length" => "the description",
        "tool_server_length" => "the server",
        "tool_tool_length" => "the tool",
        "mcp_v2_user_length" | "mcp_user_length" | "tool_user_length" => "the owner",
        "mcp_v2_hint_length" | "mcp_hint_length" => "the key's hint",
        _ => return None,
    };
    Some(StoreErrorKind::Unfit(unfit))
}

/// Checks the change of a record that exists and is locked. PostgreSQL reports
/// no error where a trigger or rule of the database's owner skipped the row.
pub(super) fn written(done: &PgQueryResult) -> DbResult<()> {
    match done.rows_affected() {
        0 => Err(DbError::Sql(sqlx::Error::RowNotFound)),
        _ => Ok(()),
    }
}

/// Whether a function of the database's owner raised it, with a code of the
/// owner's choice. Unlike the message and the context, the name of PostgreSQL's
/// own routine is not translated.
fn is_raised(error: &dyn DatabaseError) -> bool {
    routine(error) == Some("exec_stmt_raise")
}

fn routine(error: &dyn DatabaseError) -> Option<&str> {
    error.try_downcast_ref::<PgDatabaseError>()?.routine()
}

/// Whether the error is temporary, wherever it arises.
fn is_transient(code: &str) -> bool {
    away(code)
        || matches!(
            code,
            "25006" | "40001" | "40P01" | "53100" | "55P03" | "57014"
        )
}

/// SQLSTATE classes and codes that mean: unavailable, or unreachable.
fn away(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || matches!(code, "53300" | "53400")
}

impl DbError {
    /// PostgreSQL's own code: in an exception that a function raised, the code
    /// means nothing about PostgreSQL.
    pub(super) fn code(&self) -> Option<String> {
        let error = self.database_error()?;
        let code = error.code()?;
        (!is_raised(error)).then(|| code.into_owned())
    }

    fn database_error(&self) -> Option<&dyn DatabaseError> {
        match self {
            DbError::Sql(error) => error.as_database_error(),
            _ => None,
        }
    }

    /// Whether the connection's prepared statements are older than a change of
    /// the tables. The statement had no effect.
    pub(super) fn is_stale_plan(&self) -> bool {
        let stale = |error| routine(error) == Some("RevalidateCachedQuery");
        self.database_error().is_some_and(stale)
    }

    /// Whether the database cannot be reached at all.
    pub(super) fn is_connection(&self) -> bool {
        match self {
            DbError::Rule(_) => false,
            DbError::Late | DbError::Away => true,
            DbError::Sql(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::BeginFailed
                | sqlx::Error::WorkerCrashed
                | sqlx::Error::Protocol(_),
            ) => true,
            DbError::Sql(_) => self.code().is_some_and(|code| away(&code)),
        }
    }

    /// Whether the connection broke during the operation, as all connections
    /// from before a restart of the database do.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            DbError::Sql(sqlx::Error::Io(_) | sqlx::Error::BeginFailed) => true,
            DbError::Sql(sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed) => true,
            _ => {
                let code = self.code().unwrap_or_default();
                code.starts_with("08") || matches!(&*code, "57P01" | "57P02" | "57P05")
            }
        }
    }

    /// Whether a retry may well succeed: after a deadlock, or after a faster
    /// transaction whose work will be visible this time.
    pub(super) fn is_clash(&self) -> bool {
        let constraint = self.database_error().and_then(DatabaseError::constraint);
        match self.code().as_deref() {
            Some("40001" | "40P01") => true,
            Some(_) => constraint.is_some_and(|name| LATE_CLASHES.contains(&name)),
            None => false,
        }
    }

    pub(in super::super) fn during(self, operation: &'static str) -> StoreError {
        self.kind().during(operation)
    }

    pub(super) fn kind(self) -> StoreErrorKind {
        let unavailable = |text: &str| StoreErrorKind::Unavailable(text.to_owned());
        let error = match self {
            DbError::Rule(kind) => return kind,
            DbError::Late => return unavailable("the database does not answer in time"),
            DbError::Away => return unavailable("the database does not answer"),
            DbError::Sql(error) => error,
        };
        match error {
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
                unavailable("all database connections are busy")
            }
            sqlx::Error::Io(error) => unavailable(match error.kind() {
                ErrorKind::ConnectionRefused => "the database refuses connections",
                ErrorKind::NotFound => "the host of the database is unknown",
                _ => "the connection to the database is lost",
            }),
            sqlx::Error::Tls(_) => {
                unavailable("no secure connection to the database can be made (TLS)")
            }
            sqlx::Error::Database(error) => database(&*error),
            sqlx::Error::RowNotFound => StoreErrorKind::Refused {
                rule: "a trigger or rule of the database's owner discarded the change".into(),
                clash: false,
            },
            sqlx::Error::Encode(_) => StoreErrorKind::Unfit("a value"),
            _ => unavailable("the database sent an unexpected answer"),
        }
    }
}

/// A rule that is not ours: a constraint or a NOT NULL column that the owner
/// added, or an exception that a trigger raised. Only its name: the message of
/// an exception, and the row in the details, may hold anything.
fn rule(error: &dyn DatabaseError, code: &str) -> Option<StoreErrorKind> {
    let raised = is_raised(error);
    let error = error.try_downcast_ref::<PgDatabaseError>()?;
    let of = error.table().map(|table| format!(" of the table {table}"));
    let of = of.unwrap_or_default();
    let rule = match (code, error.column(), error.constraint()) {
        ("23502", Some(column), _) => format!("the column {column:?}{of} must have a value"),
        ("23505" | "23P01", _, Some(name)) => {
            format!("the constraint {name:?}{of} forbids a second record like this")
        }
        (code, _, Some(name)) if code.starts_with("23") => {
            format!("the constraint {name:?}{of} does not allow it")
        }
        ("428C9", ..) if !raised => format!("a column{of} is generated by the database"),
        (code, ..) => match function(error.r#where().unwrap_or_default()) {
            Some(name) => format!("the database's function {name:?} does not allow it"),
            None if raised || code.starts_with("23") || code.starts_with("P0") => {
                format!("a rule{of} of the database's owner does not allow it")
            }
            None => return None,
        },
    };
    let clash = matches!(code, "23505" | "23P01");
    Some(StoreErrorKind::Refused { rule, clash })
}

/// The function of the database's owner in which an error arose, from the
/// context that PostgreSQL reports, the innermost call first:
/// `PL/pgSQL function public.limit_entries() line 3 at RAISE`.
fn function(context: &str) -> Option<&str> {
    let (name, _) = context
        .lines()
        .find_map(|line| line.split_once("PL/pgSQL function ")?.1.split_once('('))?;
    let ours = |(schema, _): (&str, &str)| schema == "portway" || schema.ends_with(COMPANION);
    (!name.split_once('.').is_some_and(ours)).then_some(name)
}

fn database(error: &dyn DatabaseError) -> StoreErrorKind {
    let code = error.code().unwrap_or_default();
    let named = error.constraint().unwrap_or_default();
    if let Some(violated) = violated(named) {
        return violated;
    }
    let late = LATE_CLASHES.contains(&named) && code.starts_with("23");
    let may_be_rule = is_raised(error) || !late && !is_transient(&code);
    if may_be_rule && let Some(refused) = rule(error, &code) {
        return refused;
    }
    let words = match &*code {
        // A character that text cannot hold there (NUL), or a too long text.
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
        "55P03" => "another transaction is changing the same records",
        _ if late => "another transaction is changing the same records",
        "40001" | "40P01" => "too many transactions are changing the same records",
        code if away(code) => "the database is not taking work at the moment",
        code => {
            let text = format!("the database refused it (SQLSTATE {code})");
            return StoreErrorKind::Unavailable(text);
        }
    };
    StoreErrorKind::Unavailable(words.to_owned())
}
