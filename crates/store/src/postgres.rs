//! The store in PostgreSQL, for several processes at once. The database holds
//! the truth and the rules; what keys open is also in memory, kept in step
//! by notices.

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
use tokio::time::{Instant, timeout, timeout_at};

use super::examine::{DatabaseReport, StoredRecords};
use super::lock::DirectoryLock;
use super::records::EntryId;
use super::{StoreError, StoreErrorKind, UserLimits};
use config::{DatabaseSchema, Secret};
use database::{Database, DbFuture, LIMIT, LONG};
use fault::DbError;
use listen::MirrorKeeper;
use mirror::Mirror;

pub(super) use table::RecordTable;

/// For a write as a whole, until it is in force.
const IN_FORCE: Duration = Duration::from_millis(2800);

pub struct PostgresStore {
    database: Arc<Database>,
    mirror: Arc<Mirror>,
    tasks: Vec<JoinHandle<()>>,
    lock: Option<DirectoryLock>,
    limits: Option<UserLimits>,
}

/// What a write has changed, for memory.
type TouchedEntries = Vec<EntryId>;

impl PostgresStore {
    /// Connects, brings the tables up to date and loads what keys open.
    pub async fn open(url: &Secret, schema: &DatabaseSchema) -> Result<PostgresStore, StoreError> {
        let opened = Self::try_open(url, schema).await;
        opened.map_err(|fault| fault.kind().during("open the database"))
    }

    async fn try_open(url: &Secret, schema: &DatabaseSchema) -> Result<PostgresStore, DbError> {
        let database = Arc::new(Database::new(url, schema)?);
        // Beside the pool, which would try again and again and not say why.
        let mut connection = database.connect().await?;
        let mut listener = listen::listen(&database).await?;
        listen::self_test(&database, &mut listener).await?;
        schema::prepare(&mut connection, &database.namespace).await?;
        // All is done; how the goodbye is taken does not matter.
        drop(connection.close_hard().await);
        let (mirror, reader) = Mirror::new(database.clone());
        let reader = tokio::spawn(reader);
        let mut store = PostgresStore {
            database: database.clone(),
            mirror: mirror.clone(),
            tasks: vec![reader],
            lock: None,
            limits: None,
        };
        mirror.reload(true).await?;
        let keeper = MirrorKeeper { database, mirror };
        store.tasks.push(tokio::spawn(keeper.run(listener)));
        Ok(store)
    }

    /// Looks at the database without changing anything in it.
    pub(super) async fn examine(
        url: &Secret,
        schema: &DatabaseSchema,
    ) -> Result<DatabaseReport, StoreError> {
        let examined = Self::try_examine(url, schema).await;
        examined.map_err(|fault| fault.kind().during("use the database"))
    }

    async fn try_examine(url: &Secret, schema: &DatabaseSchema) -> Result<DatabaseReport, DbError> {
        let database = Database::new(url, schema)?;
        let mut connection = database.connect().await?;
        let mut listener = listen::listen(&database).await?;
        listen::self_test(&database, &mut listener).await?;
        let found = schema::examine(&mut connection, &database.namespace).await?;
        drop(connection.close_hard().await);
        Ok(found)
    }

    /// Everything that a migration looks at, without changing anything.
    pub(super) async fn contents(
        url: &Secret,
        schema: &DatabaseSchema,
    ) -> Result<StoredRecords, StoreError> {
        let read = async {
            let database = Database::new(url, schema)?;
            adopt::contents(&mut database.connect().await?, &database.namespace).await
        };
        let read = timeout(LONG, read).await.unwrap_or(Err(DbError::Late));
        read.map_err(|fault| fault.kind().during("read the database"))
    }

    /// The rows of a table of another application, each as JSON.
    pub(super) async fn rows_of(
        url: &Secret,
        schema: &str,
        table: &str,
    ) -> Result<Vec<String>, StoreError> {
        let read = async {
            let database = Database::new(url, &DatabaseSchema::default())?;
            adopt::rows_of(&mut database.connect().await?, schema, table).await
        };
        let read = timeout(LONG, read).await.unwrap_or(Err(DbError::Late));
        read.map_err(|fault| fault.kind().during("read the table"))
    }

    /// With limits on what one user may have.
    pub(crate) fn limiting(mut self, limits: UserLimits) -> PostgresStore {
        self.limits = Some(limits);
        self
    }

    /// Keeps the data directory until the store is dropped.
    pub(super) fn holding(mut self, lock: DirectoryLock) -> PostgresStore {
        self.lock = Some(lock);
        self
    }

    async fn query<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let outcome = self.database.read(LIMIT, work).await;
        outcome.map_err(|fault| fault.kind().during(operation))
    }

    /// Runs a change. When it is answered, nothing passes any more on the
    /// strength of what it took away.
    async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        limit: Duration,
        work: impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, (T, TouchedEntries)>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + limit + (IN_FORCE - LIMIT);
        let outcome = self.database.write(limit, work).await;
        let (value, touched) = outcome.map_err(|fault| fault.kind().during(operation))?;
        if touched.is_empty() {
            return Ok(value);
        }
        let refreshed = timeout_at(deadline, self.mirror.refresh(touched)).await;
        let late = || {
            Err(StoreErrorKind::Unavailable(
                "the change is saved but not in force yet".into(),
            ))
        };
        refreshed
            .unwrap_or_else(|_| late())
            .map_err(|kind| kind.during(operation))?;
        Ok(value)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
