//! Records of the API before entries, and how they become entries.

use std::collections::HashSet;

use sqlx::Executor;
use sqlx::postgres::PgConnection;

use super::super::records::*;
use super::super::{KeyDigest, StoreErrorKind, Timestamp};
use super::fault::{Fault, written};
use super::once::{self, Claim};
use super::rows::{self, moment};
use super::{bindings, entries, tools};

pub(super) async fn create(
    tx: &mut PgConnection,
    new: &NewInstance,
    again: Option<&Idempotency>,
) -> Result<Creation<Instance>, Fault> {
    if let Claim::Made(id) = once::claim(tx, again).await? {
        return Ok(Creation::Earlier(by_id(tx, id).await?));
    }
    no_entry_has(tx, &new.key.digest).await?;
    let row = sqlx::query(concat!(
        "insert into mcp (user_id, name, status, key_digest, key_hint, key_created_at, ",
        "expires_at, extra, created_at, updated_at) values ($1, $2, $3, $4, $5, ",
        "to_timestamp($6 / 1000.0), to_timestamp($7 / 1000.0), $8::json, ",
        "to_timestamp($6 / 1000.0), to_timestamp($6 / 1000.0)) returning ",
        instance_columns!()
    ))
    .bind(&*new.owner)
    .bind(&new.name)
    .bind(new.enabled)
    .bind(&new.key.digest.as_bytes()[..])
    .bind(&new.key.hint)
    .bind(moment(Timestamp::now()))
    .bind(new.key.expires_at.map(moment))
    .bind(extra(&new.extra)?)
    .fetch_one(&mut *tx)
    .await?;
    let made = rows::instance(&row)?;
    once::keep(tx, again, made.id.0).await?;
    Ok(Creation::New(made))
}

fn extra(map: &serde_json::Map<String, serde_json::Value>) -> Result<String, Fault> {
    serde_json::to_string(map).map_err(|error| Fault::Sql(sqlx::Error::Encode(Box::new(error))))
}

async fn by_id(connection: &mut PgConnection, id: i64) -> Result<Option<Instance>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        instance_columns!(),
        " from mcp where id = $1"
    ))
    .bind(id)
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::instance).transpose()
}

/// An entry's key is taken, too: the record may become one.
async fn no_entry_has(tx: &mut PgConnection, key: &KeyDigest) -> Result<(), Fault> {
    let taken: bool =
        sqlx::query_scalar("select exists (select 1 from mcp_v2 where key_digest = $1)")
            .bind(&key.as_bytes()[..])
            .fetch_one(tx)
            .await?;
    match taken {
        true => {
            let constraint = "the key";
            Err(StoreErrorKind::Conflict { constraint }.into())
        }
        false => Ok(()),
    }
}

/// A key goes before an id.
pub(super) async fn find(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    named: &InstanceName,
) -> Result<Option<Instance>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        instance_columns!(),
        " from mcp where key_digest = $1 or id = $2 order by key_digest = $1 desc limit 1"
    ))
    .bind(&named.key.as_bytes()[..])
    .bind(named.id.map(|id| id.0))
    .fetch_optional(connection)
    .await?;
    let found = row.as_ref().map(rows::instance).transpose()?;
    // The index has found it; this compares in constant time.
    Ok(found.filter(|instance| named.matches(instance) && whose.includes(&instance.owner)))
}

pub(super) async fn list(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    page: Page,
) -> Result<Listing<Instance>, Fault> {
    let rows = sqlx::query(concat!(
        "select counted.total, page.* from ",
        "(select count(*) as total from mcp where $1::text is null or user_id = $1) counted ",
        "left join (select ",
        instance_columns!(),
        " from mcp where $1::text is null or user_id = $1 ",
        "order by id offset $2 limit $3) page on true order by page.id"
    ))
    .bind(whose.owner())
    .bind(i64::try_from(page.skip).unwrap_or(i64::MAX))
    .bind(i64::try_from(page.limit).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    rows::listed(&rows, rows::instance)
}

pub(super) async fn update(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    named: &InstanceName,
    change: &InstanceChange,
) -> Result<Option<Instance>, Fault> {
    let Some(found) = find(tx, whose, named).await? else {
        return Ok(None);
    };
    tx.execute(sqlx::query("select 1 from mcp where id = $1 for update").bind(found.id.0))
        .await?;
    // Somebody may have changed it before it was ours.
    let Some(before) = by_id(tx, found.id.0).await? else {
        return Ok(None);
    };
    let mut instance = before.clone();
    change.clone().apply(&mut instance);
    if instance == before {
        return Ok(Some(instance));
    }
    if instance.key.digest != before.key.digest {
        no_entry_has(tx, &instance.key.digest).await?;
    }
    instance.updated_at = Timestamp::now();
    let done = sqlx::query(
        "update mcp set name = $2, status = $3, extra = $4::json, \
         updated_at = to_timestamp($5 / 1000.0), user_id = $6, key_digest = $7, key_hint = $8, \
         key_created_at = to_timestamp($9 / 1000.0), expires_at = to_timestamp($10 / 1000.0), \
         last_used_at = to_timestamp($11 / 1000.0) where id = $1",
    )
    .bind(instance.id.0)
    .bind(&instance.name)
    .bind(instance.enabled)
    .bind(extra(&instance.extra)?)
    .bind(moment(instance.updated_at))
    .bind(&*instance.owner)
    .bind(&instance.key.digest.as_bytes()[..])
    .bind(&instance.key.hint)
    .bind(moment(instance.key.created_at))
    .bind(instance.key.expires_at.map(moment))
    .bind(instance.key.last_used_at.map(moment))
    .execute(tx)
    .await?;
    written(&done)?;
    Ok(Some(instance))
}

pub(super) async fn delete(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    named: &InstanceName,
) -> Result<bool, Fault> {
    let Some(found) = find(tx, whose, named).await? else {
        return Ok(false);
    };
    let done = sqlx::query("delete from mcp where id = $1")
        .bind(found.id.0)
        .execute(&mut *tx)
        .await?;
    if by_id(tx, found.id.0).await?.is_some() {
        written(&done)?;
    }
    Ok(done.rows_affected() > 0)
}

pub(super) async fn migrate(tx: &mut PgConnection) -> Result<Vec<MigratedInstance>, Fault> {
    tx.execute("set local statement_timeout = '60s'").await?;
    let rows = sqlx::query(concat!(
        "select ",
        instance_columns!(),
        " from mcp order by id for update"
    ))
    .fetch_all(&mut *tx)
    .await?;
    let mut all = Vec::with_capacity(rows.len());
    for instance in rows::all(&rows, rows::instance)? {
        all.push(into_entry(tx, &instance).await?);
    }
    let done = tx.execute("delete from mcp").await?;
    if !all.is_empty() {
        written(&done)?;
    }
    Ok(all)
}

pub(super) async fn into_entry(
    tx: &mut PgConnection,
    instance: &Instance,
) -> Result<MigratedInstance, Fault> {
    let mut bound = Vec::new();
    let mut names = HashSet::new();
    for (server, tool) in instance.registered() {
        let known = stands_for(tx, &instance.owner, server, tool).await?;
        let name = known.as_ref().map_or(tool, |(_, name)| name);
        // Two of one name cannot be in one entry; the first has it.
        if !names.insert(name.to_owned()) {
            continue;
        }
        let id = match known {
            Some((id, _)) => id,
            None => {
                let new = NewTool {
                    owner: instance.owner.clone(),
                    name: tool.to_owned(),
                    description: None,
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                };
                tools::insert(tx, &new).await?.id
            }
        };
        bound.push(NewBinding {
            tool: id,
            enabled: true,
        });
    }
    let entry = Entry {
        id: EntryId(0),
        owner: instance.owner.clone(),
        name: instance.name.clone(),
        enabled: instance.enabled,
        key: instance.key.clone(),
        exposes: ExposedServers::default(),
        filter: None,
        created_at: instance.created_at,
        updated_at: Timestamp::now(),
    };
    let entry = entries::insert(tx, &entry).await?;
    bindings::put(tx, entry.id, &entry.owner, &bound).await?;
    Ok(MigratedInstance {
        instance: instance.id,
        entry: entry.id,
        name: entry.name,
        tools: bound.len(),
    })
}

/// The owner's first tool for `server:tool`, and its name.
async fn stands_for(
    tx: &mut PgConnection,
    owner: &str,
    server: &str,
    tool: &str,
) -> Result<Option<(ToolId, String)>, Fault> {
    let found: Option<(i64, String)> = sqlx::query_as(
        "select id, name from tool where user_id = $1 and server = $2 and tool = $3 \
         order by id limit 1",
    )
    .bind(owner)
    .bind(server)
    .bind(tool)
    .fetch_optional(tx)
    .await?;
    Ok(found.map(|(id, name)| (ToolId(id), name)))
}
