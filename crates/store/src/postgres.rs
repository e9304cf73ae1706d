//! The store in PostgreSQL, for several processes at once. The database holds
//! the records and enforces the rules; memory holds a copy of the grants, which
//! notifications keep up to date.

mod adopt;
mod backend;
mod database;
mod fault;
mod foreign;
mod idempotency;
mod listen;
mod load;
mod mirror;
mod mirror_status;
mod moved;
mod namespace;
mod quota;
mod save;
mod schema;
mod servers;
mod table;

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::examine::{DatabaseReport, StoredRecords};
use super::records::EntryId;
use super::{DuringOperation, StoreErrorKind, StoreResult};
use config::{DatabaseSchema, Secret};
use database::{Database, DbFuture, LIMIT, LONG, OperationKind, within};
use fault::{DbError, DbResult};
use listen::MirrorKeeper;
use mirror::Mirror;

pub(super) use table::RecordTable;

/// The time limit of a write, until it has taken effect.
const IN_FORCE: Duration = Duration::from_millis(2800);

pub(super) struct PostgresStore {
    database: Arc<Database>,
    pub(super) mirror: Arc<Mirror>,
    tasks: Vec<JoinHandle<()>>,
}

/// The entries that a write has changed, to be read into memory again.
type TouchedEntries = Vec<EntryId>;

impl PostgresStore {
    pub(super) async fn open(url: &Secret, schema: &DatabaseSchema) -> DbResult<PostgresStore> {
        let database = Arc::new(Database::new(url, schema)?);
        // Not through the pool, which would retry without reporting the reason.
        let mut connection = database.connect().await?;
        let mut listener = listen::listen(&database).await?;
        listen::self_test(&database, &mut listener).await?;
        schema::prepare(&mut connection, &database.namespace).await?;
        // The work is done; an error at the close does not matter.
        drop(connection.close_hard().await);
        let (mirror, reader) = Mirror::new(database.clone());
        let reader = tokio::spawn(reader);
        let mut store = PostgresStore {
            database: database.clone(),
            mirror: mirror.clone(),
            tasks: vec![reader],
        };
        mirror.reload(true).await?;
        let keeper = MirrorKeeper { database, mirror };
        store.tasks.push(tokio::spawn(keeper.run(listener)));
        Ok(store)
    }

    async fn query<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let outcome = self.database.run(LIMIT, OperationKind::Read, work).await;
        outcome.map_err(|fault| fault.during(operation))
    }

    /// Runs a change. Once this returns, no call uses access that the change
    /// removed.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        limit: Duration,
        work: impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, (T, TouchedEntries)>
        + Send
        + Sync
        + 'static,
    ) -> StoreResult<T> {
        let deadline = Instant::now() + limit + (IN_FORCE - LIMIT);
        let outcome = self.database.run(limit, OperationKind::Write, work).await;
        let (value, touched) = outcome.map_err(|fault| fault.during(operation))?;
        if touched.is_empty() {
            return Ok(value);
        }
        let refreshed = timeout_at(deadline, self.mirror.refresh(touched)).await;
        let refreshed = refreshed.unwrap_or_else(|_| {
            let late = "the change is saved but not in force yet";
            Err(StoreErrorKind::Unavailable(late.into()))
        });
        refreshed.during(operation)?;
        Ok(value)
    }
}

/// Connects as a start does, tests notifications, and reads the tables.
pub async fn examine_database(
    url: &Secret,
    schema: &DatabaseSchema,
) -> StoreResult<DatabaseReport> {
    let examining = async {
        let database = Database::new(url, schema)?;
        let mut connection = database.connect().await?;
        let mut listener = listen::listen(&database).await?;
        listen::self_test(&database, &mut listener).await?;
        let found = schema::examine(&mut connection, &database.namespace).await?;
        drop(connection.close_hard().await);
        Ok(found)
    };
    examining
        .await
        .map_err(|fault: DbError| fault.during("use the database"))
}

/// All records that a migration reads, without changing anything.
pub(super) async fn contents(url: &Secret, schema: &DatabaseSchema) -> StoreResult<StoredRecords> {
    let read = async {
        let database = Database::new(url, schema)?;
        adopt::contents(&mut database.connect().await?, &database.namespace).await
    };
    let read = within(LONG, read).await;
    read.map_err(|fault| fault.during("read the database"))
}

/// The rows of a table of another application, each as JSON.
pub(super) async fn rows_of(url: &Secret, schema: &str, table: &str) -> StoreResult<Vec<String>> {
    let read = async {
        let database = Database::new(url, &DatabaseSchema::default())?;
        adopt::rows_of(&mut database.connect().await?, schema, table).await
    };
    let read = within(LONG, read).await;
    read.map_err(|fault| fault.during("read the table"))
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
