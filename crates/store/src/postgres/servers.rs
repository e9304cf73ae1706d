//! Server records, shared by all replicas.

use std::collections::{BTreeMap, HashMap};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use super::super::{DefinitionChange, ServerRecord};
use super::fault::{DbError, DbResult, written};
use super::table::{at, moment};
use config::ServerName;

/// The servers of these names, or all of them, oldest first.
pub(super) async fn select(
    connection: &mut PgConnection,
    names: Option<&[ServerName]>,
    lock: &str,
) -> DbResult<Vec<ServerRecord>> {
    let names = names.map(|names| names.iter().map(ServerName::as_str).collect::<Vec<_>>());
    let sql = format!(
        "select id, name, run, asks, (extract(epoch from created_at) * 1000)::bigint as created_at \
         from mcp_server where $1::text[] is null or name = any($1) order by seq {lock}"
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(names);
    rows.fetch_all(connection)
        .await?
        .iter()
        .map(record)
        .collect()
}

fn record(row: &PgRow) -> DbResult<ServerRecord> {
    let name: &str = row.try_get("name")?;
    let name =
        ServerName::parse(name).map_err(|error| DbError::Sql(sqlx::Error::Decode(error.into())))?;
    Ok(ServerRecord {
        id: row.try_get("id")?,
        name,
        run: row.try_get("run")?,
        asks: row.try_get("asks")?,
        created_at: at(row, "created_at")?,
    })
}

pub(super) async fn put(tx: &mut PgConnection, records: &[&ServerRecord]) -> DbResult<()> {
    if records.is_empty() {
        return Ok(());
    }
    // The last value of each id, at the position of the first.
    let mut wanted: indexmap::IndexMap<Uuid, &ServerRecord> = indexmap::IndexMap::new();
    wanted.extend(records.iter().map(|record| (record.id, *record)));
    let ids: Vec<Uuid> = wanted.keys().copied().collect();
    let names: Vec<&str> = wanted.values().map(|record| record.name.as_str()).collect();
    let runs: Vec<Option<bool>> = wanted.values().map(|record| record.run).collect();
    let asks = Vec::from_iter(wanted.values().map(|record| record.asks.as_deref()));
    let made = Vec::from_iter(wanted.values().map(|record| moment(record.created_at)));
    let done = sqlx::query(
        "insert into mcp_server (id, name, run, asks, created_at) \
         select n.id, n.name, n.run, n.asks, to_timestamp(n.made / 1000.0) \
         from unnest($1::uuid[], $2::text[], $3::boolean[], $4::text[], $5::bigint[]) \
         with ordinality as n(id, name, run, asks, made, place) order by n.place \
         on conflict (id) do update set name = excluded.name, run = excluded.run, \
         asks = excluded.asks, created_at = excluded.created_at",
    )
    .bind(ids)
    .bind(names)
    .bind(runs)
    .bind(asks)
    .bind(made)
    .execute(tx)
    .await?;
    written(&done)
}

pub(super) async fn delete(tx: &mut PgConnection, id: Uuid) -> DbResult<()> {
    let delete = sqlx::query("delete from mcp_server where id = $1").bind(id);
    written(&delete.execute(tx).await?)
}

pub(super) async fn definitions(
    connection: &mut PgConnection,
) -> DbResult<BTreeMap<String, String>> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("select name, definition::text from mcp_server_definition")
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().collect())
}

/// False if a definition differs from `found`. Compares all before it changes
/// any; the primary key catches a transaction in between.
pub(super) async fn define(tx: &mut PgConnection, changes: &[DefinitionChange]) -> DbResult<bool> {
    let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    let rows: Vec<(String, String)> = sqlx::query_as(
        "select name, definition::text from mcp_server_definition \
         where name = any($1) order by name for update",
    )
    .bind(names)
    .fetch_all(&mut *tx)
    .await?;
    let there: HashMap<String, String> = rows.into_iter().collect();
    let as_found = |change: &DefinitionChange| there.get(&change.name) == change.found.as_ref();
    if !changes.iter().all(as_found) {
        return Ok(false);
    }
    for change in changes {
        let sql = match (&change.found, &change.new) {
            (None, None) => continue,
            (None, Some(_)) => {
                "insert into mcp_server_definition (name, definition) values ($1, $2::json)"
            }
            (Some(_), Some(_)) => {
                "update mcp_server_definition set definition = $2::json where name = $1"
            }
            (Some(_), None) => "delete from mcp_server_definition where name = $1",
        };
        let query = sqlx::query(sql).bind(&change.name);
        let query = match &change.new {
            Some(new) => query.bind(new),
            None => query,
        };
        written(&query.execute(&mut *tx).await?)?;
    }
    Ok(true)
}
