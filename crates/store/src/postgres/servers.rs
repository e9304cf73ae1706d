//! Server records, the same for all replicas.

use std::collections::{BTreeMap, HashMap};

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::super::{DefinitionChange, ServerRecord, StoreErrorKind};
use super::fault::{Fault, written};
use super::rows::{self, moment};
use config::ServerName;

pub(super) async fn list(connection: &mut PgConnection) -> Result<Vec<ServerRecord>, Fault> {
    let rows = sqlx::query(concat!(
        "select id, name, run, asks, ",
        millis!("created_at"),
        " from mcp_server order by seq"
    ))
    .fetch_all(connection)
    .await?;
    rows::all(&rows, record)
}

fn record(row: &PgRow) -> Result<ServerRecord, Fault> {
    let name: &str = row.try_get("name")?;
    let name =
        ServerName::parse(name).map_err(|error| Fault::Sql(sqlx::Error::Decode(error.into())))?;
    Ok(ServerRecord {
        id: row.try_get("id")?,
        name,
        run: row.try_get("run")?,
        asks: row.try_get("asks")?,
        created_at: rows::at(row, "created_at")?,
    })
}

pub(super) async fn put(tx: &mut PgConnection, records: &[ServerRecord]) -> Result<(), Fault> {
    names_are_free(tx, records).await?;
    // The last word on each, at the place of the first.
    let mut wanted: indexmap::IndexMap<Uuid, &ServerRecord> = indexmap::IndexMap::new();
    for record in records {
        wanted.insert(record.id, record);
    }
    let ids: Vec<Uuid> = wanted.keys().copied().collect();
    let names: Vec<&str> = wanted.values().map(|record| record.name.as_str()).collect();
    let runs: Vec<Option<bool>> = wanted.values().map(|record| record.run).collect();
    let asks: Vec<Option<&str>> = wanted
        .values()
        .map(|record| record.asks.as_deref())
        .collect();
    let made: Vec<i64> = wanted
        .values()
        .map(|record| moment(record.created_at))
        .collect();
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
    if !wanted.is_empty() {
        written(&done)?;
    }
    Ok(())
}

async fn names_are_free(tx: &mut PgConnection, records: &[ServerRecord]) -> Result<(), Fault> {
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    let rows: Vec<(Uuid, String)> =
        sqlx::query_as("select id, name from mcp_server where name = any($1)")
            .bind(names)
            .fetch_all(tx)
            .await?;
    let mut owners: HashMap<&str, Uuid> =
        rows.iter().map(|(id, name)| (name.as_str(), *id)).collect();
    for record in records {
        let owner = *owners.entry(record.name.as_str()).or_insert(record.id);
        if owner != record.id {
            let constraint = "the server's name";
            return Err(StoreErrorKind::Conflict { constraint }.into());
        }
    }
    Ok(())
}

pub(super) async fn delete(tx: &mut PgConnection, name: &ServerName) -> Result<bool, Fault> {
    let done = sqlx::query("delete from mcp_server where name = $1")
        .bind(name.as_str())
        .execute(tx)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn definitions(
    connection: &mut PgConnection,
) -> Result<BTreeMap<String, String>, Fault> {
    let rows: Vec<(String, String)> =
        sqlx::query_as("select name, definition::text from mcp_server_definition")
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().collect())
}

/// False where one is not what was found. Looks at all before it changes
/// any; who comes in between is noticed by the primary key.
pub(super) async fn define(
    tx: &mut PgConnection,
    changes: &[DefinitionChange],
) -> Result<bool, Fault> {
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
        let (sql, new) = match (&change.found, &change.new) {
            (None, Some(new)) => (
                "insert into mcp_server_definition (name, definition) values ($1, $2::json)",
                new,
            ),
            (Some(_), Some(new)) => (
                "update mcp_server_definition set definition = $2::json where name = $1",
                new,
            ),
            (found, None) => {
                if found.is_some() {
                    let gone = "delete from mcp_server_definition where name = $1";
                    let query = sqlx::query(gone).bind(&change.name);
                    written(&query.execute(&mut *tx).await?)?;
                }
                continue;
            }
        };
        let query = sqlx::query(sql).bind(&change.name).bind(new);
        written(&query.execute(&mut *tx).await?)?;
    }
    Ok(true)
}
