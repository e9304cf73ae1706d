//! Records of another application become entries, and what is looked at
//! before they do.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Row};

use super::super::examine::StoredRecords;
use super::super::foreign::MOST;
use super::super::records::*;
use super::super::{KeyDigest, StoreErrorKind};
use super::fault::Fault;
use super::namespace::Namespace;
use super::rows;
use super::{foreign, instances};

pub(super) async fn all(
    tx: &mut PgConnection,
    records: &[Instance],
) -> Result<Vec<Adoption>, Fault> {
    tx.execute("set local statement_timeout = '60s'").await?;
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        all.push(one(tx, record).await?);
    }
    Ok(all)
}

/// In a transaction of its own within the other, so that a rule which
/// forbids one record does not cost the others.
async fn one(tx: &mut PgConnection, record: &Instance) -> Result<Adoption, Fault> {
    if let Some(holder) = holder(tx, &record.key.digest).await? {
        return Ok(holder.outcome(record));
    }
    let mut own = tx.begin().await?;
    let made = match instances::into_entry(&mut own, record).await {
        Ok(made) => made,
        Err(fault) if fault.is_connection() || fault.is_clash() => return Err(fault),
        Err(fault) => {
            own.rollback().await?;
            return match fault.kind() {
                kind @ (StoreErrorKind::Refused { .. }
                | StoreErrorKind::Conflict { .. }
                | StoreErrorKind::Unfit(_)) => Ok(Adoption::Refused(kind.to_string())),
                kind => Err(kind.into()),
            };
        }
    };
    own.commit().await?;
    Ok(Adoption::Made(made))
}

async fn holder(tx: &mut PgConnection, key: &KeyDigest) -> Result<Option<KeyHolder>, Fault> {
    let found: Option<(bool, i64, String)> = sqlx::query_as(
        "select true, id, user_id from mcp_v2 where key_digest = $1 \
         union all select false, id, user_id from mcp where key_digest = $1 limit 1",
    )
    .bind(&key.as_bytes()[..])
    .fetch_optional(tx)
    .await?;
    Ok(found.map(|(entry, id, owner)| match entry {
        true => KeyHolder::Entry {
            id: EntryId(id),
            owner: owner.into(),
        },
        false => KeyHolder::Instance(EntryId(id)),
    }))
}

pub(super) async fn contents(
    connection: &mut PgConnection,
    namespace: &Namespace,
) -> Result<StoredRecords, Fault> {
    let mut tx = connection.begin().await?;
    tx.execute("set transaction isolation level repeatable read, read only")
        .await?;
    let found = foreign::look(&mut tx, namespace).await?;
    found.refusal()?;
    if !found.complete {
        return Ok(StoredRecords::default());
    }
    let old = concat!("select ", instance_columns!(), " from mcp order by id");
    let old = sqlx::query(old).fetch_all(&mut *tx).await?;
    let tools = concat!("select ", tool_columns!(), " from tool order by id");
    let tools = sqlx::query(tools).fetch_all(&mut *tx).await?;
    let entries = "select id, user_id, key_digest from mcp_v2";
    let entries = sqlx::query(entries).fetch_all(&mut *tx).await?;
    let mut contents = StoredRecords {
        instances: rows::all(&old, rows::instance)?,
        tools: rows::all(&tools, rows::tool)?,
        ..StoredRecords::default()
    };
    for row in &entries {
        let holder = KeyHolder::Entry {
            id: EntryId(row.try_get("id")?),
            owner: rows::owner(row)?,
        };
        contents.keys.insert(rows::digest(row)?, holder);
    }
    contents.add_instances();
    Ok(contents)
}

/// Takes no lock but the one of any reader.
pub(super) async fn rows_of(
    connection: &mut PgConnection,
    schema: &str,
    table: &str,
) -> Result<Vec<String>, Fault> {
    let mut tx = connection.begin().await?;
    // Row level security then fails the query instead of hiding rows.
    tx.execute(
        "set transaction read only; set local statement_timeout = '60s'; \
         set local row_security = off",
    )
    .await?;
    let shown = format!("{schema}.{table}");
    let setup = |text: String| Fault::from(StoreErrorKind::Setup(text));
    let found: Option<(bool, bool)> = sqlx::query_as(
        "select c.relkind in ('r', 'p', 'v', 'm', 'f'), exists (select 1 from pg_attribute a \
         where a.attrelid = c.oid and a.attname = 'key_digest') \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = $1 and c.relname = $2",
    )
    .bind(schema)
    .bind(table)
    .fetch_optional(&mut *tx)
    .await?;
    match found {
        Some((true, false)) => {}
        Some((true, true)) => {
            return Err(setup(format!(
                "{shown} is a table of Portway itself; run portway migrate without --from"
            )));
        }
        _ => return Err(setup(format!("there is no table {shown}"))),
    }
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let select = format!(
        "select row_to_json(it)::text from {}.{} it limit {}",
        quoted(schema),
        quoted(table),
        MOST + 1
    );
    let rows: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(select))
        .fetch_all(&mut *tx)
        .await
        .map_err(|error| match Fault::from(error) {
            fault if fault.code().as_deref() == Some("42501") => setup(format!(
                "this database user may not read all rows of {shown} (its rights, or row level \
                 security); use the owner of the table"
            )),
            fault => fault,
        })?;
    if rows.len() > MOST {
        return Err(setup(format!("{shown} has more than {MOST} records")));
    }
    Ok(rows)
}
