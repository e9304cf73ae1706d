//! Creates with an `Idempotency-Key`. The transaction that creates also claims
//! the key: a request with the same key waits for it.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::super::records::{Idempotency, ONCE_MILLIS};
use super::super::state::CreateOutcome;
use super::super::{KeyDigest, Timestamp};
use super::fault::{DbError, DbResult};
use super::table::{at, digest, moment};

/// The outcome of an earlier request with the same key. Without one, the caller
/// creates the record, then calls [`keep`].
pub(super) async fn claim(
    connection: &mut PgConnection,
    once: &Idempotency,
) -> DbResult<Option<CreateOutcome>> {
    let now = moment(Timestamp::now());
    let forgotten = forgotten(now);
    let mine = sqlx::query(
        "insert into mcp_idempotency as it (key, body, created_at) \
         values ($1, $2, to_timestamp($3 / 1000.0)) \
         on conflict (key) do update \
         set body = excluded.body, made = null, created_at = excluded.created_at \
         where it.created_at <= to_timestamp($4 / 1000.0)",
    )
    .bind(&once.key[..])
    .bind(&once.body[..])
    .bind(now)
    .bind(forgotten)
    .execute(&mut *connection)
    .await?;
    if mine.rows_affected() > 0 {
        forget(connection, forgotten).await?;
        return Ok(None);
    }
    match find(connection, once).await? {
        None => Err(DbError::Sql(sqlx::Error::RowNotFound)),
        made => Ok(made),
    }
}

/// The record that a create with this key has made.
pub(super) async fn find(
    connection: &mut PgConnection,
    once: &Idempotency,
) -> DbResult<Option<CreateOutcome>> {
    let row = sqlx::query(
        "select body, made, (extract(epoch from created_at) * 1000)::bigint as created_at \
         from mcp_idempotency where key = $1",
    )
    .bind(&once.key[..])
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some(CreateOutcome {
        body: digest(&row, "body")?,
        id: row.try_get("made")?,
        at: at(&row, "created_at")?,
    }))
}

/// Creates from before this time are forgotten.
fn forgotten(now: i64) -> i64 {
    now - i64::try_from(ONCE_MILLIS).unwrap_or(i64::MAX)
}

/// Saves the outcome of a create.
pub(super) async fn keep(
    connection: &mut PgConnection,
    key: &KeyDigest,
    made: i64,
) -> DbResult<()> {
    sqlx::query("update mcp_idempotency set made = $2 where key = $1")
        .bind(&key.as_bytes()[..])
        .bind(made)
        .execute(connection)
        .await?;
    Ok(())
}

/// Deletes a few keys that are too old, and skips rows that others have locked.
async fn forget(connection: &mut PgConnection, before: i64) -> DbResult<()> {
    sqlx::query(
        "delete from mcp_idempotency where key in ( \
         select key from mcp_idempotency where created_at <= to_timestamp($1 / 1000.0) \
         limit 100 for update skip locked)",
    )
    .bind(before)
    .execute(connection)
    .await?;
    Ok(())
}
