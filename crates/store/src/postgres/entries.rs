//! Entries.

use sqlx::postgres::PgConnection;

use super::super::records::*;
use super::super::{StoreErrorKind, Timestamp};
use super::bindings;
use super::fault::{Fault, written};
use super::once::{self, Claim};
use super::rows::{self, moment};

pub(super) async fn create(
    tx: &mut PgConnection,
    new: &NewEntry,
    again: Option<&Idempotency>,
) -> Result<Creation<Entry>, Fault> {
    if let Claim::Made(id) = once::claim(tx, again).await? {
        let earlier = find(tx, &OwnerScope::Everyone, EntryId(id)).await?;
        return Ok(Creation::Earlier(earlier));
    }
    let now = Timestamp::now();
    let made = Entry {
        id: EntryId(0),
        owner: new.owner.clone(),
        name: new.name.clone(),
        enabled: new.enabled,
        key: KeyRecord {
            digest: new.key.digest,
            hint: new.key.hint.clone(),
            created_at: now,
            expires_at: new.key.expires_at,
            last_used_at: None,
        },
        exposes: new.exposes.clone(),
        filter: new.filter.clone(),
        created_at: now,
        updated_at: now,
    };
    let made = insert(tx, &made).await?;
    bindings::put(tx, made.id, &made.owner, &new.bindings).await?;
    once::keep(tx, again, made.id.0).await?;
    Ok(Creation::New(made))
}

/// As it is, but for the id, which the database gives.
pub(super) async fn insert(tx: &mut PgConnection, entry: &Entry) -> Result<Entry, Fault> {
    let row = sqlx::query(concat!(
        "insert into mcp_v2 (user_id, name, status, key_digest, key_hint, ",
        "key_created_at, expires_at, last_used_at, exposed_resources, exposed_prompts, ",
        "created_at, updated_at, filter_allow, filter_deny) ",
        "values ($1, $2, $3, $4, $5, to_timestamp($6 / 1000.0), ",
        "to_timestamp($7 / 1000.0), to_timestamp($8 / 1000.0), $9, $10, ",
        "to_timestamp($11 / 1000.0), to_timestamp($12 / 1000.0), $13, $14) returning ",
        entry_columns!()
    ))
    .bind(&*entry.owner)
    .bind(&entry.name)
    .bind(entry.enabled)
    .bind(&entry.key.digest.as_bytes()[..])
    .bind(&entry.key.hint)
    .bind(moment(entry.key.created_at))
    .bind(entry.key.expires_at.map(moment))
    .bind(entry.key.last_used_at.map(moment))
    .bind(&entry.exposes.resources)
    .bind(&entry.exposes.prompts)
    .bind(moment(entry.created_at))
    .bind(moment(entry.updated_at))
    .bind(entry.filter.as_ref().map(|filter| &filter.allow))
    .bind(entry.filter.as_ref().map(|filter| &filter.deny))
    .fetch_one(tx)
    .await?;
    rows::entry(&row)
}

pub(super) async fn find(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
) -> Result<Option<Entry>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        entry_columns!(),
        " from mcp_v2 where id = $1 and ($2::text is null or user_id = $2)"
    ))
    .bind(id.0)
    .bind(whose.owner())
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(rows::entry).transpose()
}

/// Nobody else changes it or its bindings until the end.
pub(super) async fn take(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
) -> Result<Option<Entry>, Fault> {
    let row = sqlx::query(concat!(
        "select ",
        entry_columns!(),
        " from mcp_v2 where id = $1 and ($2::text is null or user_id = $2) for update"
    ))
    .bind(id.0)
    .bind(whose.owner())
    .fetch_optional(tx)
    .await?;
    row.as_ref().map(rows::entry).transpose()
}

pub(super) async fn list(
    connection: &mut PgConnection,
    whose: &OwnerScope,
    page: Page,
) -> Result<Listing<Entry>, Fault> {
    let rows = sqlx::query(concat!(
        "select counted.total, page.* from ",
        "(select count(*) as total from mcp_v2 where $1::text is null or user_id = $1) counted ",
        "left join (select ",
        entry_columns!(),
        " from mcp_v2 where $1::text is null or user_id = $1 ",
        "order by id offset $2 limit $3) page on true order by page.id"
    ))
    .bind(whose.owner())
    .bind(i64::try_from(page.skip).unwrap_or(i64::MAX))
    .bind(i64::try_from(page.limit).unwrap_or(i64::MAX))
    .fetch_all(connection)
    .await?;
    rows::listed(&rows, rows::entry)
}

/// The entry as an edit leaves it.
async fn edit(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    edit: impl FnOnce(&mut Entry),
) -> Result<Option<Entry>, Fault> {
    let Some(before) = take(tx, whose, id).await? else {
        return Ok(None);
    };
    let mut entry = before.clone();
    edit(&mut entry);
    let mut same = before;
    same.key.last_used_at = entry.key.last_used_at;
    if entry == same {
        return Ok(Some(entry));
    }
    entry.updated_at = Timestamp::now();
    let done = sqlx::query(
        "update mcp_v2 set name = $2, status = $3, key_digest = $4, key_hint = $5, \
         key_created_at = to_timestamp($6 / 1000.0), expires_at = to_timestamp($7 / 1000.0), \
         last_used_at = to_timestamp($8 / 1000.0), exposed_resources = $9, \
         exposed_prompts = $10, updated_at = to_timestamp($11 / 1000.0), \
         filter_allow = $12, filter_deny = $13 where id = $1",
    )
    .bind(id.0)
    .bind(&entry.name)
    .bind(entry.enabled)
    .bind(&entry.key.digest.as_bytes()[..])
    .bind(&entry.key.hint)
    .bind(moment(entry.key.created_at))
    .bind(entry.key.expires_at.map(moment))
    .bind(entry.key.last_used_at.map(moment))
    .bind(&entry.exposes.resources)
    .bind(&entry.exposes.prompts)
    .bind(moment(entry.updated_at))
    .bind(entry.filter.as_ref().map(|filter| &filter.allow))
    .bind(entry.filter.as_ref().map(|filter| &filter.deny))
    .execute(tx)
    .await?;
    written(&done)?;
    Ok(Some(entry))
}

pub(super) async fn update(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    change: &EntryChange,
    used: Option<Timestamp>,
) -> Result<Option<Entry>, Fault> {
    let change = change.clone();
    edit(tx, whose, id, |entry| {
        // Memory knows it first, and forgets it with an entry that is
        // switched off.
        entry.key.last_used_at = used.max(entry.key.last_used_at);
        if let Some(name) = change.name {
            entry.name = name;
        }
        entry.enabled = change.enabled.unwrap_or(entry.enabled);
        if let Some(exposes) = change.exposes {
            entry.exposes = exposes;
        }
        if let Some(filter) = change.filter {
            entry.filter = filter;
        }
        entry.key.expires_at = change.expires_at.unwrap_or(entry.key.expires_at);
    })
    .await
}

pub(super) async fn replace_key(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
    key: &NewKey,
) -> Result<Option<Entry>, Fault> {
    // Also where it is the entry's own: a new key is another key.
    let taken: bool = sqlx::query_scalar(
        "select exists (select 1 from mcp_v2 where key_digest = $1) \
         and exists (select 1 from mcp_v2 \
         where id = $2 and ($3::text is null or user_id = $3))",
    )
    .bind(&key.digest.as_bytes()[..])
    .bind(id.0)
    .bind(whose.owner())
    .fetch_one(&mut *tx)
    .await?;
    if taken {
        let constraint = "the key";
        return Err(StoreErrorKind::Conflict { constraint }.into());
    }
    edit(tx, whose, id, |entry| {
        entry.key = KeyRecord {
            digest: key.digest,
            hint: key.hint.clone(),
            created_at: Timestamp::now(),
            expires_at: key.expires_at,
            last_used_at: None,
        };
    })
    .await
}

pub(super) async fn delete(
    tx: &mut PgConnection,
    whose: &OwnerScope,
    id: EntryId,
) -> Result<bool, Fault> {
    if take(tx, whose, id).await?.is_none() {
        return Ok(false);
    }
    let delete = sqlx::query("delete from mcp_v2 where id = $1").bind(id.0);
    written(&delete.execute(tx).await?)?;
    Ok(true)
}

/// About when keys were used; nobody needs to be told.
pub(super) async fn used(
    tx: &mut PgConnection,
    used: &[(EntryId, Timestamp)],
) -> Result<(), Fault> {
    let ids: Vec<i64> = used.iter().map(|(id, _)| id.0).collect();
    let moments: Vec<i64> = used.iter().map(|(_, at)| moment(*at)).collect();
    sqlx::query(
        "update mcp_v2 e set last_used_at = to_timestamp(u.at / 1000.0) \
         from unnest($1::bigint[], $2::bigint[]) as u(id, at) \
         where e.id = u.id and coalesce(e.last_used_at < to_timestamp(u.at / 1000.0), true)",
    )
    .bind(ids)
    .bind(moments)
    .execute(tx)
    .await?;
    Ok(())
}
