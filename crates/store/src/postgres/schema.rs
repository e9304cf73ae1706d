//! The tables: created by our own migrations where they are missing, and
//! checked before use.

use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor, SqlSafeStr};

use super::super::StoreErrorKind;
use super::super::examine::DatabaseReport;
use super::super::records::{Entry, Instance, ToolRecord};
use super::database::within;
use super::fault::{DbError, DbResult};
use super::foreign;
use super::namespace::Namespace;
use super::table::{RecordTable, columns};

/// Two processes that start at once wait for each other.
const MIGRATE: Duration = Duration::from_secs(60);

/// Tracked beside the ledger of the Supabase CLI, which has the same files:
/// applying them twice does no harm.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (
        20_261_116_000_000,
        "portway tables",
        include_str!("../../../../supabase/migrations/20261116000000_portway_tables.sql"),
    ),
    (
        20_261_116_000_100,
        "portway notices",
        include_str!("../../../../supabase/migrations/20261116000100_portway_notices.sql"),
    ),
    (
        20_261_116_000_200,
        "portway filters",
        include_str!("../../../../supabase/migrations/20261116000200_portway_filters.sql"),
    ),
    (
        20_261_116_000_300,
        "portway asking",
        include_str!("../../../../supabase/migrations/20261116000300_portway_asking.sql"),
    ),
];

/// The columns that are read and written must exist, whatever created them.
fn shapes() -> Vec<(&'static str, String)> {
    let columns = [
        (Entry::NAME, columns::<Entry>()),
        (ToolRecord::NAME, columns::<ToolRecord>()),
        (Instance::NAME, columns::<Instance>()),
    ];
    let others = [
        (
            "mcp_binding",
            "id, mcp_id, tool_id, user_id, tool_name, status, created_at",
        ),
        ("mcp_server", "id, seq, name, run, asks, created_at"),
        ("mcp_server_definition", "name, definition"),
        ("mcp_idempotency", "key, body, made, created_at"),
    ];
    let others = others.map(|(table, columns)| (table, columns.to_owned()));
    columns.into_iter().chain(others).collect()
}

/// Brings the tables up to date, all or nothing. A user without the rights for
/// that is fine where another user has done it.
pub(super) async fn prepare(connection: &mut PgConnection, namespace: &Namespace) -> DbResult<()> {
    match within(MIGRATE, in_one_go(connection, namespace)).await {
        // The cause matters more than the missing tables.
        Err(fault) if forbidden(&fault) => shape(connection).await.map_err(|_| fault),
        prepared => prepared,
    }
}

/// In one transaction, so that a failed start has changed nothing.
async fn in_one_go(connection: &mut PgConnection, namespace: &Namespace) -> DbResult<()> {
    let mut whole = connection.begin().await?;
    whole
        .execute("set local lock_timeout = '20s'; set local client_min_messages = 'warning'")
        .await?;
    // Not the migrator's own lock: that one ends before the transaction does.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('portway ' || $1, 0))")
        .bind(namespace.internal())
        .execute(&mut *whole)
        .await?;
    foreign::look(&mut whole, namespace).await?.refusal()?;
    migrate(&mut whole, namespace).await?;
    shape(&mut whole).await?;
    whole.commit().await?;
    Ok(())
}

async fn migrate(connection: &mut PgConnection, namespace: &Namespace) -> DbResult<()> {
    let there: bool = sqlx::query_scalar("select to_regnamespace(quote_ident($1)) is not null")
        .bind(namespace.schema())
        .fetch_one(&mut *connection)
        .await?;
    if !there {
        let create = format!("create schema \"{}\"", namespace.schema());
        connection.execute(AssertSqlSafe(create)).await?;
    }
    let migrations = MIGRATIONS.iter().map(|(version, name, sql)| {
        let kind = MigrationType::Simple;
        let sql = AssertSqlSafe(namespace.adapt(sql)).into_sql_str();
        Migration::new(*version, (*name).into(), kind, sql, false)
    });
    let mut migrator = Migrator::with_migrations(migrations.collect());
    migrator.create_schema(namespace.internal().to_owned());
    migrator.dangerous_set_table_name(namespace.ledger());
    migrator.set_locking(false);
    // A newer Portway may have applied more migrations.
    migrator.set_ignore_missing(true);
    let outcome = migrator.run_direct(None, connection, false).await;
    outcome.map_err(|error| match error {
        sqlx::migrate::MigrateError::Execute(error)
        | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => DbError::Sql(error),
        other => StoreErrorKind::Setup(format!(
            "the tables cannot be brought up to date: {}",
            match other {
                sqlx::migrate::MigrateError::VersionMismatch(version) =>
                    format!("migration {version} was applied in another form"),
                sqlx::migrate::MigrateError::Dirty(version) =>
                    format!("migration {version} was left half done"),
                _ => format!("the table {} cannot be used", namespace.ledger()),
            }
        ))
        .into(),
    })
}

/// Compares the tables with the ones that this program expects.
pub(super) async fn examine(
    connection: &mut PgConnection,
    namespace: &Namespace,
) -> DbResult<DatabaseReport> {
    let looking = async {
        let clock = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";
        let millis: i64 = sqlx::query_scalar(clock)
            .fetch_one(&mut *connection)
            .await?;
        let found = foreign::look(connection, namespace).await?;
        let looked = match found.refusal() {
            Ok(()) => shape(connection).await,
            Err(kind) => Err(kind.into()),
        };
        let tables = match looked {
            Ok(()) => None,
            Err(DbError::Rule(kind)) => Some(kind.to_string()),
            Err(fault) => return Err(fault),
        };
        // A user without the right to read it applied them in another way.
        let versions = format!("select version from {} where success", namespace.ledger());
        let applied: Result<Vec<i64>, _> = sqlx::query_scalar(AssertSqlSafe(versions))
            .fetch_all(&mut *connection)
            .await;
        let missing = applied.ok().map(|applied| {
            let known = MIGRATIONS.iter().map(|(version, name, _)| (version, name));
            known
                .filter(|(version, _)| !applied.contains(version))
                .map(|(version, name)| format!("{version} {name}"))
                .collect()
        });
        Ok(DatabaseReport {
            millis,
            tables,
            missing,
        })
    };
    within(MIGRATE, looking).await
}

fn forbidden(fault: &DbError) -> bool {
    fault.code().as_deref() == Some("42501")
}

async fn shape(connection: &mut PgConnection) -> DbResult<()> {
    for (table, columns) in shapes() {
        let select = AssertSqlSafe(format!("select {columns} from {table} limit 0"));
        if let Err(error) = connection.execute(select).await {
            let fault = DbError::Sql(error);
            let wrong = matches!(fault.code().as_deref(), Some("42P01" | "42703"));
            if !wrong {
                return Err(fault);
            }
            return Err(StoreErrorKind::Setup(format!(
                "the table {table} is not as it should be (see supabase/migrations)"
            ))
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f7_every_migration_is_in_the_binary() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../supabase/migrations");
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
