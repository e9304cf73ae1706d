//! Tool records.

use sqlx::postgres::PgConnection;

use super::super::records::*;
use super::super::{StoreErrorKind, Timestamp};
use super::fault::{Fault, written};
use super::once::{self, Claim};
use super::rows::{self, moment};

pub(super) async fn create(
    tx: &mut PgConnection,
    new: &NewTool,
    again: Option<&Idempotency>,
) -> Result<Creation<ToolRecord>, Fault> {
    if let Claim::Made(id) = once::claim(tx, again).await? {
        let earlier = find(tx, &OwnerScope::Everyone, ToolId(id)).await?;
        return Ok(Creation::Earlier(earlier));
    }
    let made = insert(tx, new).await?;
    once::keep(tx, again, made.id.0).await?;
    Ok(Creation::New(made))
}

pub(super) async fn insert(tx: &mut PgConnection, new: &NewTool) -> Result<ToolRecord, Fault> {
    let row = sqlx::query(concat!(
        "insert into tool (user_id, name, description, server, tool, created_at, updated_at) ",
        "values ($1, $2, $3, $4, $5, to_timestamp($6 / 1000.0), to_timestamp($6 / 1000.0)) returning ",
        tool_columns!()
    ))
    .bind(&*new.owner)
    .bind(&new.name)
    .bind(&new.description)
    .bind(&new.server)
    .bind(&new.tool)
    .bind(moment(Timestamp::now()))
    .fetch_one(tx)
    .await?;
    rows::tool(&row)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    id: ToolId,
) -> Result<Option<ToolRecord>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        tool_columns!(),
        " from tool where id = $1 and ($2::text is null or user_id = $2)"
    ))
    .bind(id.0)
    .bind(whose.owner())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::tool).transpose()
}

/// Nobody else changes, deletes or binds it until the end.
async fn take(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: ToolId,
) -> Result<Option<ToolRecord>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        tool_columns!(),
        " from tool where id = $1 and ($2::text is null or user_id = $2) for update"
    ))
    .bind(id.0)
    .bind(whose.owner())
    .fetch_optional(tx)
    .await?;
    row.as_ref().map(rows::tool).transpose()
}

pub(super) async fn list(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    page: Page,
) -> Result<Listing<ToolRecord>, Fault> {
    let rows = sqlx::query(concat!(
        "select counted.total, page.* from ",
        "(select count(*) as total from tool where $1::text is null or user_id = $1) counted ",
        "left join (select ",
        tool_columns!(),
        " from tool where $1::text is null or user_id = $1 ",
        "order by id offset $2 limit $3) page on true order by page.id"
    ))
    .bind(whose.owner())
    .bind(i64::try_from(page.skip).unwrap_or(i64::MAX))
    .bind(i64::try_from(page.limit).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    rows::listed(&rows, rows::tool)
}

/// With the entries that have it.
pub(super) async fn update(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: ToolId,
    change: &ToolChange,
) -> Result<(Option<ToolRecord>, Vec<EntryId>), Fault> {
    let Some(before) = take(tx, whose, id).await? else {
        return Ok((None, Vec::new()));
    };
    let mut tool = before.clone();
    let change = change.clone();
    tool.name = change.name.unwrap_or(tool.name);
    tool.description = change.description.unwrap_or(tool.description);
    tool.server = change.server.unwrap_or(tool.server);
    tool.tool = change.tool.unwrap_or(tool.tool);
    if tool == before {
        return Ok((Some(tool), Vec::new()));
    }
    tool.updated_at = Timestamp::now();
    if tool.name != before.name {
        name_is_free(tx, id, &tool.name).await?;
    }
    let done = sqlx::query(
        "update tool set name = $2, description = $3, server = $4, tool = $5, \
         updated_at = to_timestamp($6 / 1000.0) where id = $1",
    )
    .bind(id.0)
    .bind(&tool.name)
    .bind(&tool.description)
    .bind(&tool.server)
    .bind(&tool.tool)
    .bind(moment(tool.updated_at))
    .execute(&mut *tx)
    .await?;
    written(&done)?;
    let entries = bound_to(tx, id).await?;
    Ok((Some(tool), entries))
}

async fn name_is_free(tx: &mut PgConnection, id: ToolId, name: &str) -> Result<(), Fault> {
    let clash: Option<i64> = sqlx::query_scalar(
        "select other.mcp_id from mcp_binding mine \
         join mcp_binding other on other.mcp_id = mine.mcp_id \
         where mine.tool_id = $1 and other.tool_id <> $1 and other.tool_name = $2 limit 1",
    )
    .bind(id.0)
    .bind(name)
    .fetch_optional(tx)
    .await?;
    match clash {
        Some(_) => Err(StoreErrorKind::SameName(name.to_owned()).into()),
        None => Ok(()),
    }
}

async fn bound_to(tx: &mut PgConnection, id: ToolId) -> Result<Vec<EntryId>, Fault> {
    let ids: Vec<i64> = sqlx::query_scalar("select mcp_id from mcp_binding where tool_id = $1")
        .bind(id.0)
        .fetch_all(tx)
        .await?;
    Ok(ids.into_iter().map(EntryId).collect())
}

pub(super) async fn delete(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: ToolId,
) -> Result<(bool, Vec<EntryId>), Fault> {
    if take(tx, whose, id).await?.is_none() {
        return Ok((false, Vec::new()));
    }
    let entries = bound_to(tx, id).await?;
    let delete = sqlx::query("delete from tool where id = $1").bind(id.0);
    written(&delete.execute(tx).await?)?;
    Ok((true, entries))
}
