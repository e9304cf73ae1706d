//! Access to the database: few connections, and no operation that waits for
//! long. Each operation runs in a task of its own, so that a caller that is
//! cancelled leaves no connection in the middle of a transaction.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection, Executor};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::super::StoreErrorKind;
use super::fault::{DbError, DbResult};
use super::mirror_status::MirrorStatus;
use super::namespace::Namespace;
use config::{DatabaseSchema, Secret};

const CONNECTIONS: u32 = 8;

/// The time limits of one operation as a whole, and of its parts.
pub(super) const LIMIT: Duration = Duration::from_millis(2300);
const ACQUIRE: Duration = Duration::from_secs(2);

/// The time limit of operations that read whole tables.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// Limits that the database itself enforces, should this process be gone.
const SESSION_LIMITS: &str = "set statement_timeout = '2s'; set lock_timeout = '1s'; \
     set idle_in_transaction_session_timeout = '5s'";

/// The number of operations that may wait for a connection.
const WAITING: usize = 1024;

/// The number of attempts in all, after a deadlock or on a dead connection.
const TRIES: usize = 4;

/// A connection that was idle for this long is tested before use.
const STALE: Duration = Duration::from_secs(10);

/// The port of Supabase's transaction pooler.
const TRANSACTION_POOLER: u16 = 6543;

pub(super) type DbFuture<'c, T> = BoxFuture<'c, DbResult<T>>;

pub(super) struct Database {
    options: PgConnectOptions,
    pub(super) namespace: Namespace,
    /// Replaced after every interruption: the old pool's connections are dead.
    pool: RwLock<Arc<PgPool>>,
    pub(super) status: MirrorStatus,
    /// The name of this process in notifications.
    pub(super) origin: Uuid,
    running: AtomicUsize,
}

impl Database {
    pub(super) fn new(url: &Secret, schema: &DatabaseSchema) -> Result<Database, StoreErrorKind> {
        let options = options(url)?;
        let namespace = Namespace::new(schema);
        let origin = Uuid::new_v4();
        Ok(Database {
            pool: RwLock::new(Arc::new(pool(&options, &namespace, origin))),
            options,
            namespace,
            status: MirrorStatus::default(),
            origin,
            running: AtomicUsize::new(0),
        })
    }

    /// A connection outside the pool, without time limits of its own.
    pub(super) async fn connect(&self) -> DbResult<PgConnection> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            let search_path = sqlx::AssertSqlSafe(self.namespace.search_path());
            connection.execute(search_path).await?;
            Ok(connection)
        };
        within(LIMIT, connecting).await
    }

    /// A pool of one, for a listener.
    pub(super) fn pool_of_one(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(self.options.clone())
    }

    pub(super) fn renew(&self) {
        self.renew_from(&self.pool());
    }

    /// Replaces the pool after one connection of `stale` was dead or had
    /// statements older than a change of the tables, since the others are the
    /// same. Only the first caller to notice replaces it.
    fn renew_from(&self, stale: &Arc<PgPool>) {
        let mut current = self.pool.write();
        if Arc::ptr_eq(&current, stale) {
            *current = Arc::new(pool(&self.options, &self.namespace, self.origin));
        }
    }

    fn pool(&self) -> Arc<PgPool> {
        self.pool.read().clone()
    }

    /// Runs an operation in the time limit, unless the database is known to be
    /// unreachable.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        limit: Duration,
        kind: OperationKind,
        work: impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T> + Send + Sync + 'static,
    ) -> DbResult<T> {
        if kind != OperationKind::Test && self.status.is_away() {
            return Err(DbError::Away);
        }
        let place = OperationSlot::take(self)
            .ok_or_else(|| unavailable("too many wait for the database"))?;
        let database = self.clone();
        let task = tokio::spawn(async move {
            let _place = place;
            database.tries(Instant::now() + limit, kind, &work).await
        });
        task.await
            .unwrap_or_else(|_| Err(unavailable("the store is closed")))
    }

    async fn tries<T>(
        &self,
        deadline: Instant,
        kind: OperationKind,
        work: &(impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T> + Sync),
    ) -> DbResult<T> {
        let mut tried = 0;
        loop {
            tried += 1;
            let pool = self.pool();
            let (fault, maybe_committed) = match once(&pool, deadline, kind, work).await {
                Ok(done) => {
                    self.status.note_answer();
                    return Ok(done);
                }
                Err(failed) => failed,
            };
            let useless = fault.is_lost() || fault.is_stale_plan();
            if useless {
                self.renew_from(&pool);
            }
            let again = fault.is_clash() || useless && !maybe_committed;
            if !again || tried >= TRIES {
                return Err(fault);
            }
            let pause = fastrand::u64(1..=10 * tried as u64);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

/// Runs work that opens or reads the database by itself.
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = DbResult<T>>,
) -> DbResult<T> {
    timeout(limit, work).await.unwrap_or(Err(DbError::Late))
}

/// The error of a failed attempt also says whether COMMIT was sent and got no
/// response: the change may have been made.
async fn once<T>(
    pool: &PgPool,
    deadline: Instant,
    kind: OperationKind,
    work: &(impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T> + Sync),
) -> Result<T, (DbError, bool)> {
    let acquired = timeout_at(deadline, pool.acquire()).await;
    let acquired = acquired.map_err(|_| (DbError::Late, false))?;
    let mut connection = acquired.map_err(|error| (error.into(), false))?;
    let mut committing = false;
    let doing = async {
        match kind {
            OperationKind::Read | OperationKind::Test => work(&mut connection).await,
            OperationKind::Write => {
                let mut transaction = connection.begin().await?;
                let done = work(&mut transaction).await?;
                committing = true;
                transaction.commit().await?;
                Ok(done)
            }
        }
    };
    let outcome = timeout_at(deadline, doing)
        .await
        .unwrap_or(Err(DbError::Late));
    outcome.map_err(|fault| {
        if fault.is_connection() {
            connection.close_on_drop();
        }
        (fault, committing)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    Read,
    /// A read that tests the connection, so it is tried in any case.
    Test,
    /// A transaction: all of it, or nothing.
    Write,
}

fn unavailable(text: &str) -> DbError {
    DbError::Rule(StoreErrorKind::Unavailable(text.to_owned()))
}

/// The slot of a waiting operation; released however the operation ends.
struct OperationSlot(Arc<Database>);

impl OperationSlot {
    fn take(database: &Arc<Database>) -> Option<OperationSlot> {
        let before = database.running.fetch_add(1, Ordering::Relaxed);
        let place = OperationSlot(database.clone());
        (before < WAITING).then_some(place)
    }
}

impl Drop for OperationSlot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn options(url: &Secret) -> Result<PgConnectOptions, StoreErrorKind> {
    let bad = || StoreErrorKind::Setup("SUPABASE_DB_URL is not a database URL".into());
    let options = PgConnectOptions::from_str(url.expose()).map_err(|_| bad())?;
    if options.get_port() == TRANSACTION_POOLER {
        return Err(StoreErrorKind::Setup(format!(
            "SUPABASE_DB_URL leads to the transaction pooler (port {TRANSACTION_POOLER}), {USE}"
        )));
    }
    // Without `sslmode`, nothing leaves this machine unencrypted.
    let silent = !url.expose().contains("sslmode=");
    let here = options.get_socket().is_some()
        || matches!(
            options.get_host(),
            "localhost" | "127.0.0.1" | "::1" | "[::1]"
        );
    let options = if silent && !here && matches!(options.get_ssl_mode(), PgSslMode::Prefer) {
        options.ssl_mode(PgSslMode::Require)
    } else {
        options
    };
    Ok(options
        .application_name("portway")
        // Poolers refuse settings that they do not know.
        .extra_float_digits(None)
        .disable_statement_logging())
}

/// The advice for a pooler that does not work.
pub(super) const USE: &str = "which does not deliver change notices; use the direct connection \
     or the session pooler (port 5432)";

fn pool(options: &PgConnectOptions, namespace: &Namespace, origin: Uuid) -> PgPool {
    let search_path = namespace.search_path();
    PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > STALE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(move |connection, _| {
            let setup = format!("{SESSION_LIMITS}; {search_path}; set portway.origin = '{origin}'");
            Box::pin(async move {
                connection.execute(sqlx::AssertSqlSafe(setup)).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options.clone())
}
