//! Bindings. The database holds the rules; they are looked at here first so
//! that whoever breaks one is told which tool it was.

use std::collections::{HashMap, HashSet};

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::super::records::*;
use super::super::{StoreErrorKind, Timestamp};
use super::entries;
use super::fault::{Fault, written};
use super::rows::{self, moment};

pub(super) async fn list(
    connection: &mut PgConnection,
    entry: EntryId,
) -> Result<Vec<BoundTool>, Fault> {
    let rows = sqlx::query(concat!(
        "select t.*, b.status as bound_status, b.bound_at from (select ",
        tool_columns!(),
        " from tool) t join (select id as seq, mcp_id, tool_id, status, ",
        "(extract(epoch from created_at) * 1000)::bigint as bound_at from mcp_binding) b ",
        "on b.tool_id = t.id where b.mcp_id = $1 order by b.seq"
    ))
    .bind(entry.0)
    .fetch_all(connection)
    .await?;
    rows::all(&rows, rows::bound)
}

pub(super) async fn of(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    entry: EntryId,
) -> Result<Option<Vec<BoundTool>>, Fault> {
    match entries::find(connection, whose, entry).await? {
        Some(_) => Ok(Some(list(connection, entry).await?)),
        None => Ok(None),
    }
}

/// Makes each, or sets its status.
pub(super) async fn put(
    tx: &mut PgConnection,
    entry: EntryId,
    owner: &str,
    new: &[NewBinding],
) -> Result<(), Fault> {
    if new.is_empty() {
        return Ok(());
    }
    let names = names(tx, owner, new).await?;
    differ(tx, entry, new, &names).await?;
    // The last word on each, at the place of the first.
    let mut wanted: Vec<NewBinding> = Vec::new();
    for one in new {
        match wanted.iter_mut().find(|known| known.tool == one.tool) {
            Some(known) => known.enabled = one.enabled,
            None => wanted.push(*one),
        }
    }
    let ids: Vec<i64> = wanted.iter().map(|one| one.tool.0).collect();
    let named: Vec<&str> = wanted.iter().map(|one| names[&one.tool].as_str()).collect();
    let enabled: Vec<bool> = wanted.iter().map(|one| one.enabled).collect();
    let done = sqlx::query(
        "insert into mcp_binding as b (mcp_id, user_id, tool_id, tool_name, status, created_at) \
         select $1, $2, n.tool, n.name, n.status, to_timestamp($3 / 1000.0) \
         from unnest($4::bigint[], $5::text[], $6::boolean[]) \
         with ordinality as n(tool, name, status, place) order by n.place \
         on conflict (mcp_id, tool_id) do update set status = excluded.status \
         where b.status <> excluded.status",
    )
    .bind(entry.0)
    .bind(owner)
    .bind(moment(Timestamp::now()))
    .bind(&ids)
    .bind(named)
    .bind(enabled)
    .execute(&mut *tx)
    .await?;
    // Those that were there and stay as they are were not written.
    let all = ids.len() as u64;
    if done.rows_affected() < all && count(tx, entry, &ids).await? < all {
        return Err(Fault::Sql(sqlx::Error::RowNotFound));
    }
    Ok(())
}

/// How many of the tools are bound.
async fn count(tx: &mut PgConnection, entry: EntryId, tools: &[i64]) -> Result<u64, Fault> {
    let count: i64 = sqlx::query_scalar(
        "select count(*) from mcp_binding where mcp_id = $1 and tool_id = any($2)",
    )
    .bind(entry.0)
    .bind(tools)
    .fetch_one(tx)
    .await?;
    Ok(count.unsigned_abs())
}

/// The tools to be bound, as they are called; nobody renames or deletes one
/// meanwhile.
async fn names(
    tx: &mut PgConnection,
    owner: &str,
    new: &[NewBinding],
) -> Result<HashMap<ToolId, String>, Fault> {
    let ids: Vec<i64> = new.iter().map(|one| one.tool.0).collect();
    let rows = sqlx::query(
        "select id, name from tool where id = any($1) and user_id = $2 \
         order by id for key share",
    )
    .bind(ids)
    .bind(owner)
    .fetch_all(tx)
    .await?;
    let mut names = HashMap::with_capacity(rows.len());
    for row in rows {
        names.insert(ToolId(row.try_get("id")?), row.try_get("name")?);
    }
    let missing = new.iter().find(|one| !names.contains_key(&one.tool));
    match missing {
        Some(one) => Err(StoreErrorKind::NoSuchTool(one.tool).into()),
        None => Ok(names),
    }
}

/// No two may have one name: neither these nor those that are there.
async fn differ(
    tx: &mut PgConnection,
    entry: EntryId,
    new: &[NewBinding],
    names: &HashMap<ToolId, String>,
) -> Result<(), Fault> {
    let rows = sqlx::query("select tool_id, tool_name from mcp_binding where mcp_id = $1")
        .bind(entry.0)
        .fetch_all(tx)
        .await?;
    let (mut tools, mut taken) = (HashSet::new(), HashSet::new());
    for row in &rows {
        tools.insert(ToolId(row.try_get("tool_id")?));
        taken.insert(row.try_get::<&str, _>("tool_name")?);
    }
    for one in new {
        if tools.insert(one.tool) && !taken.insert(&names[&one.tool]) {
            return Err(StoreErrorKind::SameName(names[&one.tool].clone()).into());
        }
    }
    Ok(())
}

pub(super) async fn bind(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    new: &[NewBinding],
) -> Result<Option<Vec<BoundTool>>, Fault> {
    let Some(entry) = entries::take(tx, whose, id).await? else {
        return Ok(None);
    };
    put(tx, id, &entry.owner, new).await?;
    let mut bound = list(tx, id).await?;
    bound.retain(|bound| new.iter().any(|one| one.tool == bound.binding.tool));
    Ok(Some(bound))
}

pub(super) async fn update(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    binding: NewBinding,
) -> Result<Option<BoundTool>, Fault> {
    if entries::take(tx, whose, id).await?.is_none() {
        return Ok(None);
    }
    let done = sqlx::query(
        "update mcp_binding set status = $3 \
         where mcp_id = $1 and tool_id = $2 and status <> $3",
    )
    .bind(id.0)
    .bind(binding.tool.0)
    .bind(binding.enabled)
    .execute(&mut *tx)
    .await?;
    let bound = list(tx, id).await?;
    let found = bound.into_iter().find(|one| one.tool.id == binding.tool);
    if found
        .as_ref()
        .is_some_and(|one| one.binding.enabled != binding.enabled)
    {
        written(&done)?;
    }
    Ok(found)
}

pub(super) async fn unbind(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    tool: ToolId,
) -> Result<bool, Fault> {
    if entries::take(tx, whose, id).await?.is_none() {
        return Ok(false);
    }
    let done = sqlx::query("delete from mcp_binding where mcp_id = $1 and tool_id = $2")
        .bind(id.0)
        .bind(tool.0)
        .execute(&mut *tx)
        .await?;
    if count(tx, id, &[tool.0]).await? > 0 {
        written(&done)?;
    }
    Ok(done.rows_affected() > 0)
}
