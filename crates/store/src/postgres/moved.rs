//! Updates the records of a server's tools after the server was renamed or
//! removed.

use sqlx::postgres::PgConnection;

use super::super::Timestamp;
use super::super::records::EntryId;
use super::fault::DbResult;
use super::table::moment;

/// Returns the entries that it affects.
pub(super) async fn server_moved(
    tx: &mut PgConnection,
    from: &str,
    to: Option<&str>,
) -> DbResult<((), Vec<EntryId>)> {
    let mut entries: Vec<i64> = sqlx::query_scalar(
        "select b.mcp_id from mcp_binding b \
         join tool t on t.id = b.tool_id where t.server = $1",
    )
    .bind(from)
    .fetch_all(&mut *tx)
    .await?;
    let now = moment(Timestamp::now());
    let follow = if to.is_some() {
        sqlx::query(
            "update tool set server = $2, updated_at = to_timestamp($3 / 1000.0) where server = $1",
        )
        .bind(from)
        .bind(to)
        .bind(now)
    } else {
        let sql = "delete from mcp_binding b using tool t where t.id = b.tool_id and t.server = $1";
        sqlx::query(sql).bind(from)
    };
    follow.execute(&mut *tx).await?;
    let exposing: Vec<i64> = sqlx::query_scalar(
        "update mcp_v2 set updated_at = to_timestamp($3 / 1000.0), \
         exposed_resources = case when $2::text = any (exposed_resources) \
             then array_remove(exposed_resources, $1::text) \
             else array_remove(array_replace(exposed_resources, $1::text, $2::text), null) end, \
         exposed_prompts = case when $2::text = any (exposed_prompts) \
             then array_remove(exposed_prompts, $1::text) \
             else array_remove(array_replace(exposed_prompts, $1::text, $2::text), null) end \
         where $1::text = any (exposed_resources) or $1::text = any (exposed_prompts) returning id",
    )
    .bind(from)
    .bind(to)
    .bind(now)
    .fetch_all(&mut *tx)
    .await?;
    record_moved(tx, from, to).await?;
    entries.extend(exposing);
    entries.sort_unstable();
    entries.dedup();
    Ok(((), entries.into_iter().map(EntryId).collect()))
}

async fn record_moved(tx: &mut PgConnection, from: &str, to: Option<&str>) -> DbResult<()> {
    let Some(to) = to else {
        let gone = sqlx::query("delete from mcp_server where name = $1").bind(from);
        gone.execute(tx).await?;
        return Ok(());
    };
    let both = [
        "delete from mcp_server where name = $2 and $1 <> $2 \
         and exists (select from mcp_server where name = $1)",
        "update mcp_server set name = $2 where name = $1",
    ];
    for sql in both {
        let query = sqlx::query(sql).bind(from).bind(to);
        query.execute(&mut *tx).await?;
    }
    Ok(())
}
