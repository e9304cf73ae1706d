//! The tables: made by our own migrations where they are not there yet, and
//! looked at before they are trusted.

use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{Executor, SqlSafeStr};
use tokio::time::timeout;

use super::super::StoreErrorKind;
use super::super::examine::Database;
use super::fault::Fault;

/// Two that start at once wait for each other.
const MIGRATE: Duration = Duration::from_secs(60);

/// Beside the ledger of the Supabase CLI, which knows the same files: they
/// do no harm twice.
const LEDGER: &str = "portway.migrations";

const MIGRATIONS: &[(i64, &str, &str)] = &[
    (
        20_261_116_000_000,
        "portway tables",
        include_str!("../../../supabase/migrations/20261116000000_portway_tables.sql"),
    ),
    (
        20_261_116_000_100,
        "portway notices",
        include_str!("../../../supabase/migrations/20261116000100_portway_notices.sql"),
    ),
];

/// What is read and written must be there, whoever made it.
const SHAPE: &[(&str, &str)] = &[
    (
        "mcp_v2",
        "select id, user_id, name, status, key_digest, key_hint, key_created_at, expires_at, \
         last_used_at, exposed_resources, exposed_prompts, created_at, updated_at \
         from public.mcp_v2 limit 0",
    ),
    (
        "tool",
        "select id, user_id, name, description, server, tool, created_at, updated_at \
         from public.tool limit 0",
    ),
    (
        "mcp_binding",
        "select id, mcp_id, tool_id, user_id, tool_name, status, created_at \
         from public.mcp_binding limit 0",
    ),
    (
        "mcp",
        "select id, user_id, name, status, key_digest, key_hint, key_created_at, expires_at, \
         last_used_at, extra, created_at, updated_at from public.mcp limit 0",
    ),
    (
        "mcp_server",
        "select id, seq, name, run, created_at from public.mcp_server limit 0",
    ),
    (
        "mcp_server_definition",
        "select name, definition from public.mcp_server_definition limit 0",
    ),
    (
        "mcp_idempotency",
        "select key, body, made, created_at from public.mcp_idempotency limit 0",
    ),
];

/// Brings the tables up to date. A user who may not do that is fine where
/// somebody else has.
pub(super) async fn prepare(connection: &mut PgConnection) -> Result<(), Fault> {
    let migrated = timeout(MIGRATE, migrate(connection)).await;
    let migrated = migrated.unwrap_or(Err(Fault::Late));
    match (shape(connection).await, migrated) {
        (Ok(()), Err(fault)) if forbidden(&fault) => Ok(()),
        // Why the tables cannot be made matters more than that they are not there.
        (_, Err(fault)) => Err(fault),
        (shape, Ok(())) => shape,
    }
}

async fn migrate(connection: &mut PgConnection) -> Result<(), Fault> {
    connection
        .execute("set lock_timeout = '20s'; set client_min_messages = 'warning'")
        .await?;
    let migrations = MIGRATIONS.iter().map(|(version, name, sql)| {
        let kind = MigrationType::Simple;
        Migration::new(*version, (*name).into(), kind, (*sql).into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.create_schema("portway");
    migrator.dangerous_set_table_name(LEDGER);
    // A newer Portway may have been here.
    migrator.set_ignore_missing(true);
    let outcome = migrator.run_direct(None, connection, false).await;
    outcome.map_err(|error| match error {
        sqlx::migrate::MigrateError::Execute(error)
        | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => Fault::Sql(error),
        other => StoreErrorKind::Setup(format!(
            "the tables cannot be brought up to date: {}",
            match other {
                sqlx::migrate::MigrateError::VersionMismatch(version) =>
                    format!("migration {version} was applied in another form"),
                sqlx::migrate::MigrateError::Dirty(version) =>
                    format!("migration {version} was left half done"),
                _ => "the ledger in the schema portway cannot be used".to_owned(),
            }
        ))
        .into(),
    })
}

/// What there is, compared with what this program brings along.
pub(super) async fn examine(connection: &mut PgConnection) -> Result<Database, Fault> {
    let looking = async {
        let clock = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let millis: i64 = sqlx::query_scalar(clock)
            .fetch_one(&mut *connection)
            .await?;
        let tables = match shape(connection).await {
            Ok(()) => None,
            Err(Fault::Rule(kind)) => Some(kind.to_string()),
            Err(fault) => return Err(fault),
        };
        // Who may not look there has applied them in another way.
        let applied: Result<Vec<i64>, _> =
            sqlx::query_scalar("select version from portway.migrations where success")
                .fetch_all(&mut *connection)
                .await;
        let missing = applied.ok().map(|applied| {
            let known = MIGRATIONS.iter().map(|(version, name, _)| (version, name));
            known
                .filter(|(version, _)| !applied.contains(version))
                .map(|(version, name)| format!("{version} {name}"))
                .collect()
        });
        Ok(Database {
            millis,
            tables,
            missing,
        })
    };
    let found = timeout(MIGRATE, looking).await;
    found.unwrap_or(Err(Fault::Late))
}

fn forbidden(fault: &Fault) -> bool {
    fault.code().as_deref() == Some("42501")
}

async fn shape(connection: &mut PgConnection) -> Result<(), Fault> {
    for (table, select) in SHAPE {
        if let Err(error) = connection.execute(*select).await {
            let fault = Fault::Sql(error);
            let wrong = matches!(fault.code().as_deref(), Some("42P01" | "42703"));
            return Err(match wrong {
                true => StoreErrorKind::Setup(format!(
                    "the table {table} is not as it should be (see supabase/migrations)"
                ))
                .into(),
                false => fault,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f7_every_migration_is_in_the_binary() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/supabase/migrations");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let known: Vec<String> = MIGRATIONS
            .iter()
            .map(|(version, name, _)| format!("{version}_{}.sql", name.replace(' ', "_")))
            .collect();
        assert_eq!(files, known);
    }
}
