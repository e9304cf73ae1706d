//! Writes the steps of a rule. If a trigger or a rule of the database's owner
//! skips a row, that is an error: a save is never reported that did not happen.

use std::collections::HashSet;

use sqlx::postgres::{PgConnection, PgQueryResult};

use super::super::records::*;
use super::super::state::{BoundEntry, Step, StoreState};
use super::fault::{DbError, DbResult, written};
use super::table::{self, moment};
use super::{idempotency, servers};

pub(super) async fn save(
    tx: &mut PgConnection,
    before: &StoreState,
    steps: &[Step],
) -> DbResult<()> {
    let deleted = |step: &Step| match step {
        Step::NoTool(id) => Some(*id),
        _ => None,
    };
    // The foreign key deletes their bindings too.
    let deleted: HashSet<ToolId> = steps.iter().filter_map(deleted).collect();
    let mut servers = Vec::new();
    for step in steps {
        match step {
            Step::Server(record) => servers.push(record),
            Step::NoServer(id) => servers::delete(tx, *id).await?,
            Step::Tool(tool) if before.tools.contains_key(&tool.id) => {
                table::update(tx, &**tool).await?;
            }
            Step::Tool(tool) => table::insert(tx, &**tool).await?,
            Step::NoTool(id) => table::delete::<ToolRecord>(tx, id.0).await?,
            Step::Entry(held) => save_entry(tx, before, steps, held, &deleted).await?,
            Step::NoEntry(id) => table::delete::<Entry>(tx, id.0).await?,
            Step::Instance(old) if before.instances.contains_key(&old.id) => {
                table::update(tx, &**old).await?;
            }
            Step::Instance(old) => table::insert(tx, &**old).await?,
            Step::NoInstance(id) => table::delete::<Instance>(tx, id.0).await?,
            Step::Once(key, made) => idempotency::keep(tx, key, made.id).await?,
            // A claim deletes the old keys, the listener saves the last use.
            Step::NoOnce(_) | Step::Used(_) => {}
        }
    }
    servers::put(tx, &servers).await
}

async fn save_entry(
    tx: &mut PgConnection,
    before: &StoreState,
    steps: &[Step],
    held: &BoundEntry,
    deleted: &HashSet<ToolId>,
) -> DbResult<()> {
    let entry = &held.entry;
    let known = before.entries.get(&entry.id);
    match known {
        None => table::insert(tx, entry).await?,
        Some(known) if known.entry != *entry => table::update(tx, entry).await?,
        Some(_) => {}
    }
    let known: &[Binding] = known.map_or(&[], |known| &known.bindings);
    let of = |all: &[Binding], tool: ToolId| all.iter().find(|one| one.tool == tool).cloned();
    let gone = known
        .iter()
        .filter(|one| of(&held.bindings, one.tool).is_none() && !deleted.contains(&one.tool));
    let gone: Vec<i64> = gone.map(|one| one.tool.0).collect();
    let (mut new, mut switched) = (Vec::new(), [Vec::new(), Vec::new()]);
    for binding in &held.bindings {
        match of(known, binding.tool) {
            None => new.push(binding),
            Some(known) if known.enabled != binding.enabled => {
                switched[usize::from(binding.enabled)].push(binding.tool.0);
            }
            Some(_) => {}
        }
    }
    if !gone.is_empty() {
        let delete = sqlx::query("delete from mcp_binding where mcp_id = $1 and tool_id = any($2)");
        let done = delete
            .bind(entry.id.0)
            .bind(&gone)
            .execute(&mut *tx)
            .await?;
        all_written(tx, entry.id, &gone, &done, 0).await?;
    }
    for (tools, enabled) in switched.iter().zip([false, true]) {
        if tools.is_empty() {
            continue;
        }
        let sql = "update mcp_binding set status = $3 where mcp_id = $1 and tool_id = any($2)";
        let update = sqlx::query(sql).bind(entry.id.0).bind(tools).bind(enabled);
        let done = update.execute(&mut *tx).await?;
        all_written(tx, entry.id, tools, &done, done.rows_affected()).await?;
    }
    if new.is_empty() {
        return Ok(());
    }
    let name = |tool: ToolId| {
        let created = steps.iter().find_map(|step| match step {
            Step::Tool(created) if created.id == tool => Some(created),
            _ => None,
        });
        let found = created.or_else(|| before.tools.get(&tool));
        found.map(|tool| tool.name.as_str())
    };
    let done = sqlx::query(
        "insert into mcp_binding (mcp_id, user_id, tool_id, tool_name, status, created_at) \
         select $1, $2, n.tool, n.name, n.status, to_timestamp(n.made / 1000.0) \
         from unnest($3::bigint[], $4::text[], $5::boolean[], $6::bigint[]) \
         with ordinality as n(tool, name, status, made, place) order by n.place",
    )
    .bind(entry.id.0)
    .bind(&*entry.owner)
    .bind(Vec::from_iter(new.iter().map(|one| one.tool.0)))
    .bind(Vec::from_iter(new.iter().map(|one| name(one.tool))))
    .bind(Vec::from_iter(new.iter().map(|one| one.enabled)))
    .bind(Vec::from_iter(new.iter().map(|one| moment(one.created_at))))
    .execute(tx)
    .await?;
    if done.rows_affected() < new.len() as u64 {
        return Err(DbError::Sql(sqlx::Error::RowNotFound));
    }
    Ok(())
}

/// Fewer rows than named are fine where a tool was deleted meanwhile: checks
/// that `expected` rows of these tools exist now.
async fn all_written(
    tx: &mut PgConnection,
    entry: EntryId,
    tools: &[i64],
    done: &PgQueryResult,
    expected: u64,
) -> DbResult<()> {
    if done.rows_affected() == tools.len() as u64 {
        return Ok(());
    }
    let sql = "select count(*) from mcp_binding where mcp_id = $1 and tool_id = any($2)";
    let there: i64 = sqlx::query_scalar(sql)
        .bind(entry.0)
        .bind(tools)
        .fetch_one(tx)
        .await?;
    if there.unsigned_abs() == expected {
        Ok(())
    } else {
        written(&PgQueryResult::default())
    }
}
