//! Turns old records, and records of another application, into entries; and
//! reads them for a migration before that.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Row};

use super::super::examine::StoredRecords;
use super::super::foreign::MOST;
use super::super::records::*;
use super::super::state::{Step, StoreState};
use super::super::{StoreErrorKind, rules};
use super::fault::{DbError, DbResult};
use super::namespace::Namespace;
use super::save::save;
use super::{TouchedEntries, foreign, load, table};

/// Turns old records into entries, all or none.
pub(super) async fn migrate(
    tx: &mut PgConnection,
) -> DbResult<(Vec<MigratedInstance>, TouchedEntries)> {
    tx.execute("set local statement_timeout = '60s'").await?;
    let mut migrated = Vec::new();
    for record in table::select(tx, "order by id for update", |query| query).await? {
        let state = load::conversion(tx, &record).await?;
        let (mut one, steps) = rules::migrate(&state)?;
        save(tx, &state, &steps).await?;
        migrated.append(&mut one);
    }
    let touched = migrated.iter().map(|one| one.entry).collect();
    Ok((migrated, touched))
}

pub(super) async fn adopt(
    tx: &mut PgConnection,
    records: &[Instance],
) -> DbResult<(Vec<Adoption>, TouchedEntries)> {
    tx.execute("set local statement_timeout = '60s'").await?;
    let (mut all, mut touched) = (Vec::with_capacity(records.len()), Vec::new());
    for record in records {
        let state = load::conversion(tx, record).await?;
        let (mut one, steps) = rules::adopt(&state, std::slice::from_ref(record))?;
        match refusal(tx, &state, &steps).await? {
            Some(reason) => all.push(Adoption::Refused(reason)),
            None => {
                touched.extend(steps.iter().flat_map(|step| state.touched(step)));
                all.append(&mut one);
            }
        }
    }
    Ok((all, touched))
}

/// Writes one record in a nested transaction, so that a rule of the database
/// which forbids it does not undo the others.
async fn refusal(
    tx: &mut PgConnection,
    state: &StoreState,
    steps: &[Step],
) -> DbResult<Option<String>> {
    let mut own = tx.begin().await?;
    let fault = match save(&mut own, state, steps).await {
        Ok(()) => {
            own.commit().await?;
            return Ok(None);
        }
        Err(fault) if fault.is_connection() || fault.is_clash() => return Err(fault),
        Err(fault) => fault,
    };
    own.rollback().await?;
    match fault.kind() {
        kind @ (StoreErrorKind::Refused { .. }
        | StoreErrorKind::Conflict(_)
        | StoreErrorKind::Unfit(_)) => Ok(Some(kind.to_string())),
        kind => Err(kind.into()),
    }
}

pub(super) async fn contents(
    connection: &mut PgConnection,
    namespace: &Namespace,
) -> DbResult<StoredRecords> {
    let mut tx = connection.begin().await?;
    tx.execute("set transaction isolation level repeatable read, read only")
        .await?;
    let found = foreign::look(&mut tx, namespace).await?;
    found.refusal()?;
    if !found.complete {
        return Ok(StoredRecords::default());
    }
    let instances = table::select(&mut tx, "order by id", |query| query).await?;
    let tools = table::select(&mut tx, "order by id", |query| query).await?;
    // Only these columns: an older Portway may have made the table.
    let entries = sqlx::query("select id, user_id, key_digest from mcp_v2");
    let entries = entries.fetch_all(&mut *tx).await?;
    let entry = |row| -> Result<_, sqlx::Error> {
        let key = table::digest(row, "key_digest")?;
        Ok((key, EntryId(row.try_get("id")?), table::owner(row)?))
    };
    let entries: Vec<_> = entries.iter().map(entry).collect::<Result<_, _>>()?;
    Ok(StoredRecords::new(instances, tools, entries))
}

/// Takes no lock but the one that every reader takes.
pub(super) async fn rows_of(
    connection: &mut PgConnection,
    schema: &str,
    table: &str,
) -> DbResult<Vec<String>> {
    let mut tx = connection.begin().await?;
    // Row level security then fails the query instead of hiding rows.
    tx.execute(
        "set transaction read only; set local statement_timeout = '60s'; \
         set local row_security = off",
    )
    .await?;
    let shown = format!("{schema}.{table}");
    let setup = |text: String| DbError::from(StoreErrorKind::Setup(text));
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
        .map_err(|error| match DbError::from(error) {
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
