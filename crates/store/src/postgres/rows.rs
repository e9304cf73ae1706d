//! Rows to records and back: the one place that knows that an id is a
//! `bigint`, a status a `boolean` and a moment a `timestamptz`.

use std::sync::Arc;

use sqlx::Row;
use sqlx::postgres::PgRow;

use super::super::records::*;
use super::super::{KeyDigest, Timestamp};
use super::fault::Fault;
use config::filters::Filter;

type Read<T> = Result<T, Fault>;

/// A moment as it is selected: milliseconds since 1970.
macro_rules! millis {
    ($column:literal) => {
        concat!(
            "(extract(epoch from ",
            $column,
            ") * 1000)::bigint as ",
            $column
        )
    };
}

macro_rules! key_columns {
    () => {
        concat!(
            "key_digest, key_hint, ",
            millis!("key_created_at"),
            ", ",
            millis!("expires_at"),
            ", ",
            millis!("last_used_at")
        )
    };
}

macro_rules! stamps {
    () => {
        concat!(millis!("created_at"), ", ", millis!("updated_at"))
    };
}

macro_rules! entry_columns {
    () => {
        concat!(
            "id, user_id, name, status, ",
            key_columns!(),
            ", exposed_resources, exposed_prompts, filter_allow, filter_deny, ",
            stamps!()
        )
    };
}

macro_rules! instance_columns {
    () => {
        concat!(
            "id, user_id, name, status, ",
            key_columns!(),
            ", extra::text as extra, ",
            stamps!()
        )
    };
}

macro_rules! tool_columns {
    () => {
        concat!("id, user_id, name, description, server, tool, ", stamps!())
    };
}

/// A moment as it is bound; `to_timestamp($n / 1000.0)` takes it.
pub(super) fn moment(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn at(row: &PgRow, column: &str) -> Read<Timestamp> {
    Ok(from_millis(row.try_get(column)?))
}

fn at_or_never(row: &PgRow, column: &str) -> Read<Option<Timestamp>> {
    let millis: Option<i64> = row.try_get(column)?;
    Ok(millis.map(from_millis))
}

fn from_millis(millis: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(super) fn owner(row: &PgRow) -> Read<Arc<str>> {
    let owner: &str = row.try_get("user_id")?;
    Ok(owner.into())
}

pub(super) fn digest(row: &PgRow) -> Read<KeyDigest> {
    let bytes: &[u8] = row.try_get("key_digest")?;
    let bytes = bytes.try_into().map_err(|error| decode(Box::new(error)))?;
    Ok(KeyDigest::from_bytes(bytes))
}

fn decode(error: Box<dyn std::error::Error + Send + Sync>) -> Fault {
    Fault::Sql(sqlx::Error::Decode(error))
}

fn key(row: &PgRow) -> Read<KeyRecord> {
    Ok(KeyRecord {
        digest: digest(row)?,
        hint: row.try_get("key_hint")?,
        created_at: at(row, "key_created_at")?,
        expires_at: at_or_never(row, "expires_at")?,
        last_used_at: at_or_never(row, "last_used_at")?,
    })
}

fn filter(row: &PgRow) -> Read<Option<Filter>> {
    let allow: Option<Vec<String>> = row.try_get("filter_allow")?;
    let deny: Option<Vec<String>> = row.try_get("filter_deny")?;
    let some = allow.is_some() || deny.is_some();
    Ok(some.then(|| Filter {
        allow: allow.unwrap_or_default(),
        deny: deny.unwrap_or_default(),
    }))
}

pub(super) fn entry(row: &PgRow) -> Read<Entry> {
    Ok(Entry {
        id: EntryId(row.try_get("id")?),
        owner: owner(row)?,
        name: row.try_get("name")?,
        enabled: row.try_get("status")?,
        key: key(row)?,
        exposes: ExposedServers {
            resources: row.try_get("exposed_resources")?,
            prompts: row.try_get("exposed_prompts")?,
        },
        filter: filter(row)?,
        created_at: at(row, "created_at")?,
        updated_at: at(row, "updated_at")?,
    })
}

pub(super) fn instance(row: &PgRow) -> Read<Instance> {
    let extra: &str = row.try_get("extra")?;
    Ok(Instance {
        id: EntryId(row.try_get("id")?),
        owner: owner(row)?,
        name: row.try_get("name")?,
        enabled: row.try_get("status")?,
        key: key(row)?,
        extra: serde_json::from_str(extra).map_err(|error| decode(Box::new(error)))?,
        created_at: at(row, "created_at")?,
        updated_at: at(row, "updated_at")?,
    })
}

pub(super) fn tool(row: &PgRow) -> Read<ToolRecord> {
    Ok(ToolRecord {
        id: ToolId(row.try_get("id")?),
        owner: owner(row)?,
        name: row.try_get("name")?,
        description: row.try_get("description")?,
        server: row.try_get("server")?,
        tool: row.try_get("tool")?,
        created_at: at(row, "created_at")?,
        updated_at: at(row, "updated_at")?,
    })
}

/// A tool's columns, and beside them those of its binding.
pub(super) fn bound(row: &PgRow) -> Read<BoundTool> {
    let tool = tool(row)?;
    Ok(BoundTool {
        binding: Binding {
            tool: tool.id,
            enabled: row.try_get("bound_status")?,
            created_at: from_millis(row.try_get("bound_at")?),
        },
        tool: Arc::new(tool),
    })
}

pub(super) fn all<T>(rows: &[PgRow], read: impl Fn(&PgRow) -> Read<T>) -> Read<Vec<T>> {
    rows.iter().map(read).collect()
}

/// A page, where every row says beside it how many there are in all.
pub(super) fn listed<T>(rows: &[PgRow], read: impl Fn(&PgRow) -> Read<T>) -> Read<Listing<T>> {
    let total: i64 = match rows.first() {
        Some(row) => row.try_get("total")?,
        None => 0,
    };
    // A page beyond the end still says the total: one row without a record.
    let records = rows.iter().filter(|row| {
        let id: Result<Option<i64>, _> = row.try_get("id");
        !matches!(id, Ok(None))
    });
    Ok(Listing {
        items: records.map(read).collect::<Result<_, _>>()?,
        total: u64::try_from(total).unwrap_or(0),
    })
}
