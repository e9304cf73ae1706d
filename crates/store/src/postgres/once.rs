//! Creates that may be asked for twice. The claim is part of the transaction
//! that creates: who comes at the same time waits for it.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::super::records::{Idempotency, ONCE_MILLIS};
use super::super::{StoreErrorKind, Timestamp};
use super::fault::Fault;
use super::rows::moment;

pub(super) enum Claim {
    /// Go ahead, then [`keep`].
    Mine,
    /// That was made before.
    Made(i64),
}

pub(super) async fn claim(
    connection: &mut PgConnection,
    once: Option<&Idempotency>,
) -> Result<Claim, Fault> {
    let Some(once) = once else {
        return Ok(Claim::Mine);
    };
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
        return Ok(Claim::Mine);
    }
    let row = sqlx::query("select body, made from mcp_idempotency where key = $1")
        .bind(&once.key[..])
        .fetch_one(connection)
        .await?;
    if row.try_get::<&[u8], _>("body")? != once.body {
        return Err(StoreErrorKind::OnceReused.into());
    }
    Ok(Claim::Made(row.try_get("made")?))
}

/// Whether a create with this key is remembered.
pub(super) async fn is_known(
    connection: &mut PgConnection,
    once: &Idempotency,
) -> Result<bool, Fault> {
    let row = sqlx::query(
        "select 1 from mcp_idempotency \
         where key = $1 and created_at > to_timestamp($2 / 1000.0)",
    )
    .bind(&once.key[..])
    .bind(forgotten(moment(Timestamp::now())))
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

/// What was made before this is not remembered.
fn forgotten(now: i64) -> i64 {
    now - i64::try_from(ONCE_MILLIS).unwrap_or(i64::MAX)
}

/// What came of it.
pub(super) async fn keep(
    connection: &mut PgConnection,
    once: Option<&Idempotency>,
    made: i64,
) -> Result<(), Fault> {
    let Some(once) = once else {
        return Ok(());
    };
    sqlx::query("update mcp_idempotency set made = $2 where key = $1")
        .bind(&once.key[..])
        .bind(made)
        .execute(connection)
        .await?;
    Ok(())
}

/// A few of those that are too old, passing over what others hold.
async fn forget(connection: &mut PgConnection, before: i64) -> Result<(), Fault> {
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
