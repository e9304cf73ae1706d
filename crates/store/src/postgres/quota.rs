//! The number and size of one user's records, counted by the database.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::super::quota::{self, NAMES, Quota, Usage};
use super::fault::DbResult;

/// The usage before a write. Near a limit, other writes of the same user wait
/// until this one is over: two at once would each see only their own records.
pub(super) async fn before(tx: &mut PgConnection, quota: &Quota) -> DbResult<Usage> {
    let Some((owner, limits)) = quota else {
        return Ok(Usage::default());
    };
    let before = usage(tx, owner).await?;
    if !quota::is_near(limits, before) {
        return Ok(before);
    }
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('portway quota ' || $1, 0))")
        .bind(&**owner)
        .execute(&mut *tx)
        .await?;
    usage(tx, owner).await
}

async fn usage(tx: &mut PgConnection, owner: &str) -> DbResult<Usage> {
    let row = sqlx::query(
        "select tools.count + old.count as records, entries.count as entries, \
         bound.count as bindings, tools.bytes + old.bytes + entries.bytes as bytes from \
         (select count(*), coalesce(sum(octet_length(name) + octet_length(server) + \
          octet_length(tool) + coalesce(octet_length(description), 0)), 0)::bigint as bytes \
          from tool where user_id = $1) tools, \
         (select count(*), coalesce(sum(octet_length(name) + octet_length(extra::text)), 0)::bigint \
          as bytes from mcp where user_id = $1) old, \
         (select count(*), coalesce(sum(octet_length(name) + octet_length( \
          array_to_string(exposed_resources || exposed_prompts || \
          coalesce(filter_allow, '{}') || coalesce(filter_deny, '{}'), ''))), 0)::bigint as bytes \
          from mcp_v2 where user_id = $1) entries, \
         (select count(*) from mcp_binding where user_id = $1) bound",
    )
    .bind(owner)
    .fetch_one(tx)
    .await?;
    let mut usage = Usage::default();
    for (used, name) in usage.0.iter_mut().zip(NAMES) {
        *used = row.try_get(name)?;
    }
    Ok(usage)
}
