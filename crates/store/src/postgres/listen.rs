//! Keeps memory up to date: one connection receives every notification, and is
//! reopened whenever it is lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgConnection, PgListener, PgNotification};
use tokio::time::{Instant, timeout};

use super::super::records::EntryId;
use super::super::{StoreChange, StoreErrorKind, Timestamp};
use super::database::{Database, LIMIT, OperationKind, USE, within};
use super::fault::{DbError, DbResult};
use super::mirror::Mirror;
use super::table::moment;

/// A connection that is quiet for this long is pinged.
const QUIET: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(1);

/// The first and the longest pause between two attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time limit of a notification to ourselves, at the start.
const SELF_TEST: Duration = Duration::from_secs(2);

/// The interval at which the last use of keys is saved.
const NOTE_USE: Duration = Duration::from_secs(30);

/// Why a listener ended.
enum ListenerLoss {
    /// The connection is closed or broken: the database may still be up.
    Lost,
    /// A ping timed out; holds the number of responses counted before it.
    Silent(u64),
}

pub(super) async fn listen(database: &Database) -> DbResult<PgListener> {
    let making = async {
        let mut listener = PgListener::connect_with(&database.pool_of_one()).await?;
        listener.eager_reconnect(false);
        listener.listen(database.namespace.channel()).await?;
        Ok(listener)
    };
    within(LIMIT, making).await
}

/// Checks whether notifications arrive here at all: a transaction pooler
/// accepts LISTEN and delivers nothing.
pub(super) async fn self_test(database: &Database, listener: &mut PgListener) -> DbResult<()> {
    let mut other = database.connect().await?;
    let notify = format!(
        "notify {}, '{} test'",
        database.namespace.channel(),
        database.origin
    );
    let testing = async {
        other.execute(sqlx::AssertSqlSafe(notify)).await?;
        let own = database.origin.to_string();
        loop {
            match listener.try_recv().await? {
                Some(notice) if notice.payload().starts_with(&own) => return Ok(()),
                Some(_) => {}
                None => return Err(DbError::Late),
            }
        }
    };
    match timeout(SELF_TEST, testing).await {
        // A pooler may even deliver the notification to its own sender.
        Err(_) | Ok(Err(DbError::Sql(sqlx::Error::Protocol(_)))) => {
            let words = format!("SUPABASE_DB_URL leads to a pooler by transaction, {USE}");
            Err(StoreErrorKind::Setup(words).into())
        }
        Ok(outcome) => outcome,
    }
}

pub(super) struct MirrorKeeper {
    pub(super) database: Arc<Database>,
    pub(super) mirror: Arc<Mirror>,
}

impl MirrorKeeper {
    /// Follows `listener`, then its replacements, without end.
    pub(super) async fn run(self, listener: PgListener) {
        let mut next = Some(listener);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(mut listener) = next.take() {
                pause = FIRST_PAUSE;
                match self.follow(&mut listener).await {
                    ListenerLoss::Lost => self.database.status.set_behind(),
                    ListenerLoss::Silent(answers) => self.database.status.set_away_since(answers),
                }
                tracing::warn!("database notifications lost; reconnecting");
            }
            next = self.again().await;
            if next.is_none() {
                let jitter = Duration::from_millis(fastrand::u64(0..50));
                tokio::time::sleep(pause + jitter).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Listens first, then reads everything, so that no change is missed.
    async fn again(&self) -> Option<PgListener> {
        let answers = self.database.status.answers();
        let listening = listen(&self.database).await;
        if matches!(&listening, Err(fault) if fault.is_connection()) {
            self.database.status.set_away_since(answers);
            return None;
        }
        self.database.renew();
        self.database.status.set_behind();
        // A database that responds without notifications is read repeatedly.
        let read = self.mirror.reload(listening.is_ok()).await;
        match (read, listening) {
            (Ok(()), Ok(listener)) => {
                tracing::info!("database notifications restored");
                Some(listener)
            }
            (Ok(()), Err(_)) => {
                self.database.status.set_read();
                None
            }
            (Err(_), _) => {
                self.database.status.set_away_since(answers);
                None
            }
        }
    }

    async fn follow(&self, listener: &mut PgListener) -> ListenerLoss {
        let mut noted = HashMap::new();
        let mut note_at = Instant::now() + NOTE_USE;
        loop {
            let heard = tokio::select! {
                heard = timeout(QUIET, listener.try_recv()) => heard,
                () = self.mirror.doubt.notified() => {
                    // If this fails too, the next ping fails as well.
                    let _ = self.mirror.reload(true).await;
                    continue;
                }
            };
            match heard {
                Ok(Ok(Some(notice))) => self.heard(&notice),
                Ok(Ok(None) | Err(_)) => return ListenerLoss::Lost,
                Err(_) => {
                    let answers = self.database.status.answers();
                    match timeout(ANSWER, listener.execute("select 1")).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(_)) => return ListenerLoss::Lost,
                        Err(_) => return ListenerLoss::Silent(answers),
                    }
                }
            }
            if Instant::now() >= note_at {
                note_at = Instant::now() + NOTE_USE;
                self.note_use(&mut noted).await;
            }
        }
    }

    /// Handles a notification `<origin> <change>`, as the migrations send it.
    fn heard(&self, notice: &PgNotification) {
        let Some((who, what)) = notice.payload().split_once(' ') else {
            return;
        };
        let own = who == self.database.origin.to_string();
        match what.split_once(' ') {
            Some(("entries", ids)) => {
                let ids = ids.split(',').filter_map(|id| id.parse().ok());
                self.mirror.refresh_soon(ids.map(EntryId).collect());
            }
            None if what == "records" => self.mirror.tell(StoreChange::Records),
            None if what == "servers" && !own => self.mirror.tell(StoreChange::Servers),
            None if what == "all" => {
                self.mirror.tell(StoreChange::Servers);
                self.mirror.doubt.notify_one();
            }
            _ => {}
        }
    }

    /// Saves the times of last use that have changed.
    async fn note_use(&self, noted: &mut HashMap<EntryId, Timestamp>) {
        let grants = self.mirror.grants.all();
        let mut fresh: Vec<(EntryId, Timestamp)> = grants
            .iter()
            .filter_map(|grant| Some((grant.entry, grant.last_used()?)))
            .filter(|(id, at)| noted.get(id) != Some(at))
            .collect();
        fresh.sort_unstable();
        if fresh.is_empty() {
            return;
        }
        let known = fresh.clone();
        let written = self.database.run(LIMIT, OperationKind::Write, move |tx| {
            let fresh = fresh.clone();
            Box::pin(async move { note_last_use(tx, &fresh).await })
        });
        if written.await.is_ok() {
            noted.extend(known);
        }
    }
}

/// Writes the times of last use; sends no notification.
async fn note_last_use(tx: &mut PgConnection, used: &[(EntryId, Timestamp)]) -> DbResult<()> {
    let ids: Vec<i64> = used.iter().map(|(id, _)| id.0).collect();
    let moments: Vec<i64> = used.iter().map(|(_, at)| moment(*at)).collect();
    sqlx::query(
        "update mcp_v2 e set last_used_at = to_timestamp(u.at / 1000.0) \
         from unnest($1::bigint[], $2::bigint[]) as u(id, at) \
         where e.id = u.id and coalesce(e.last_used_at < to_timestamp(u.at / 1000.0), true)",
    )
    .bind(ids)
    .bind(moments)
    .execute(tx)
    .await?;
    Ok(())
}
