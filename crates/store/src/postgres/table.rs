//! The tables of records, each described once: its columns, from row, to row.
//! Only this file knows that an id is a `bigint`, a status a `boolean` and a
//! time a `timestamptz`.

use std::sync::Arc;

use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Row};

use super::super::records::*;
use super::super::state::StoreState;
use super::super::{KeyDigest, Timestamp};
use super::fault::{DbResult, written};
use config::filters::Filter;

pub(super) type PgQuery = Query<'static, Postgres, PgArguments>;
type FromRow<T> = Result<T, sqlx::Error>;

pub(in super::super) trait RecordTable: Clone + Send + 'static {
    const NAME: &'static str;
    /// Written once, when the record is created.
    const FIXED: &'static str = "user_id, created_at";
    const COLUMNS: &'static str;

    /// Oldest first.
    fn all(state: &StoreState) -> impl Iterator<Item = &Self>;
    /// Its id, its owner, and when it was created.
    fn origin(&self) -> (i64, &str, Timestamp);
    /// Binds [`RecordTable::COLUMNS`].
    fn bind(&self, query: PgQuery) -> PgQuery;
    fn from_row(row: &PgRow) -> FromRow<Self>;

    fn id(&self) -> i64 {
        self.origin().0
    }

    fn owner(&self) -> &str {
        self.origin().1
    }

    /// Binds [`RecordTable::FIXED`].
    fn bind_fixed(&self, query: PgQuery) -> PgQuery {
        let (_, owner, created_at) = self.origin();
        query.bind(owner).bind(moment(created_at))
    }
}

impl RecordTable for Entry {
    const NAME: &'static str = "mcp_v2";
    const COLUMNS: &'static str = "name, status, \
        key_digest, key_hint, key_created_at, expires_at, last_used_at, \
        exposed_resources, exposed_prompts, filter_allow, filter_deny, updated_at";

    fn all(state: &StoreState) -> impl Iterator<Item = &Entry> {
        state.entries.values().map(|held| &held.entry)
    }

    fn origin(&self) -> (i64, &str, Timestamp) {
        (self.id.0, &self.owner, self.created_at)
    }

    fn bind(&self, query: PgQuery) -> PgQuery {
        let query = query.bind(&self.name).bind(self.enabled);
        bind_key(query, &self.key)
            .bind(&self.exposes.resources)
            .bind(&self.exposes.prompts)
            .bind(self.filter.as_ref().map(|filter| &filter.allow))
            .bind(self.filter.as_ref().map(|filter| &filter.deny))
            .bind(moment(self.updated_at))
    }

    fn from_row(row: &PgRow) -> FromRow<Entry> {
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
}

impl RecordTable for ToolRecord {
    const NAME: &'static str = "tool";
    const COLUMNS: &'static str = "name, description, server, tool, updated_at";

    fn all(state: &StoreState) -> impl Iterator<Item = &ToolRecord> {
        state.tools.values().map(|tool| &**tool)
    }

    fn origin(&self) -> (i64, &str, Timestamp) {
        (self.id.0, &self.owner, self.created_at)
    }

    fn bind(&self, query: PgQuery) -> PgQuery {
        query
            .bind(&self.name)
            .bind(&self.description)
            .bind(&self.server)
            .bind(&self.tool)
            .bind(moment(self.updated_at))
    }

    fn from_row(row: &PgRow) -> FromRow<ToolRecord> {
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
}

impl RecordTable for Instance {
    const NAME: &'static str = "mcp";
    const FIXED: &'static str = "created_at";
    const COLUMNS: &'static str = "user_id, name, status, \
        key_digest, key_hint, key_created_at, expires_at, last_used_at, extra, updated_at";

    fn all(state: &StoreState) -> impl Iterator<Item = &Instance> {
        state.instances.values().map(|instance| &**instance)
    }

    fn origin(&self) -> (i64, &str, Timestamp) {
        (self.id.0, &self.owner, self.created_at)
    }

    fn bind_fixed(&self, query: PgQuery) -> PgQuery {
        query.bind(moment(self.created_at))
    }

    fn bind(&self, query: PgQuery) -> PgQuery {
        let query = query.bind(&*self.owner).bind(&self.name).bind(self.enabled);
        bind_key(query, &self.key)
            .bind(serde_json::Value::from(self.extra.clone()).to_string())
            .bind(moment(self.updated_at))
    }

    fn from_row(row: &PgRow) -> FromRow<Instance> {
        let extra: &str = row.try_get("extra")?;
        Ok(Instance {
            id: EntryId(row.try_get("id")?),
            owner: owner(row)?,
            name: row.try_get("name")?,
            enabled: row.try_get("status")?,
            key: key(row)?,
            extra: serde_json::from_str(extra)
                .map_err(|error| sqlx::Error::Decode(error.into()))?,
            created_at: at(row, "created_at")?,
            updated_at: at(row, "updated_at")?,
        })
    }
}

/// The columns of a table, as [`RecordTable::from_row`] reads them: times in
/// milliseconds since 1970, JSON as text.
pub(super) fn columns<R: RecordTable>() -> String {
    all_columns::<R>().fold("id".to_owned(), |list, column| match column {
        "extra" => list + ", extra::text as extra",
        column if column.ends_with("_at") => {
            format!("{list}, (extract(epoch from {column}) * 1000)::bigint as {column}")
        }
        column => list + ", " + column,
    })
}

fn all_columns<R: RecordTable>() -> impl Iterator<Item = &'static str> {
    R::FIXED.split(", ").chain(R::COLUMNS.split(", "))
}

/// The placeholder of a column's value in a write.
fn value(column: &str, number: usize) -> String {
    match column {
        "extra" => format!("${number}::json"),
        column if column.ends_with("_at") => format!("to_timestamp(${number} / 1000.0)"),
        _ => format!("${number}"),
    }
}

/// The records that the rest of a SELECT names.
pub(super) async fn select<R: RecordTable>(
    connection: &mut PgConnection,
    which: &str,
    bind: impl FnOnce(PgQuery) -> PgQuery,
) -> DbResult<Vec<R>> {
    let sql = format!("select {} from {} {which}", columns::<R>(), R::NAME);
    let rows = bind(sqlx::query(AssertSqlSafe(sql)))
        .fetch_all(connection)
        .await?;
    Ok(rows.iter().map(R::from_row).collect::<Result<_, _>>()?)
}

pub(super) async fn insert<R: RecordTable>(tx: &mut PgConnection, record: &R) -> DbResult<()> {
    let (mut names, mut values) = ("id".to_owned(), "$1".to_owned());
    for (column, number) in all_columns::<R>().zip(2..) {
        names = names + ", " + column;
        values = values + ", " + &value(column, number);
    }
    let sql = format!("insert into {} ({names}) values ({values})", R::NAME);
    let query = sqlx::query(AssertSqlSafe(sql)).bind(record.id());
    let query = record.bind(record.bind_fixed(query));
    written(&query.execute(tx).await?)
}

pub(super) async fn update<R: RecordTable>(tx: &mut PgConnection, record: &R) -> DbResult<()> {
    let set = R::COLUMNS.split(", ").zip(2..);
    let set: Vec<String> = set
        .map(|(column, number)| format!("{column} = {}", value(column, number)))
        .collect();
    let sql = format!("update {} set {} where id = $1", R::NAME, set.join(", "));
    let query = sqlx::query(AssertSqlSafe(sql)).bind(record.id());
    written(&record.bind(query).execute(tx).await?)
}

pub(super) async fn delete<R: RecordTable>(tx: &mut PgConnection, id: i64) -> DbResult<()> {
    let sql = format!("delete from {} where id = $1", R::NAME);
    let query = sqlx::query(AssertSqlSafe(sql)).bind(id);
    written(&query.execute(tx).await?)
}

/// One page, and the total number of records, in one statement.
pub(super) async fn list<R: RecordTable>(
    connection: &mut PgConnection,
    owner: Option<&str>,
    page: Page,
) -> DbResult<Listing<R>> {
    let (columns, table) = (columns::<R>(), R::NAME);
    let sql = format!(
        "select counted.total, page.* from \
         (select count(*) as total from {table} where $1::text is null or user_id = $1) counted \
         left join (select {columns} from {table} where $1::text is null or user_id = $1 \
         order by id offset $2 limit $3) page on true order by page.id"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(owner)
        .bind(i64::try_from(page.skip).unwrap_or(i64::MAX))
        .bind(i64::try_from(page.limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    let total: i64 = match rows.first() {
        Some(row) => row.try_get("total")?,
        None => 0,
    };
    // A page beyond the end still has the total: one row without a record.
    let records = rows.iter().filter(|row| {
        let id: Result<Option<i64>, _> = row.try_get("id");
        !matches!(id, Ok(None))
    });
    Ok(Listing {
        items: records.map(R::from_row).collect::<Result<_, _>>()?,
        total: u64::try_from(total).unwrap_or(0),
    })
}

/// A time as it is bound; `to_timestamp($n / 1000.0)` takes it.
pub(super) fn moment(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn at(row: &PgRow, column: &str) -> FromRow<Timestamp> {
    Ok(from_millis(row.try_get(column)?))
}

fn from_millis(millis: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(super) fn owner(row: &PgRow) -> FromRow<Arc<str>> {
    let owner: &str = row.try_get("user_id")?;
    Ok(owner.into())
}

pub(super) fn digest(row: &PgRow, column: &str) -> FromRow<KeyDigest> {
    let bytes: &[u8] = row.try_get(column)?;
    let bytes = bytes
        .try_into()
        .map_err(|_| sqlx::Error::Decode("a digest has 32 bytes".into()))?;
    Ok(KeyDigest::from_bytes(bytes))
}

fn key(row: &PgRow) -> FromRow<KeyRecord> {
    let at_or_never = |column| -> FromRow<Option<Timestamp>> {
        let millis: Option<i64> = row.try_get(column)?;
        Ok(millis.map(from_millis))
    };
    Ok(KeyRecord {
        digest: digest(row, "key_digest")?,
        hint: row.try_get("key_hint")?,
        created_at: at(row, "key_created_at")?,
        expires_at: at_or_never("expires_at")?,
        last_used_at: at_or_never("last_used_at")?,
    })
}

fn bind_key(query: PgQuery, key: &KeyRecord) -> PgQuery {
    query
        .bind(&key.digest.as_bytes()[..])
        .bind(&key.hint)
        .bind(moment(key.created_at))
        .bind(key.expires_at.map(moment))
        .bind(key.last_used_at.map(moment))
}

fn filter(row: &PgRow) -> FromRow<Option<Filter>> {
    let allow: Option<Vec<String>> = row.try_get("filter_allow")?;
    let deny: Option<Vec<String>> = row.try_get("filter_deny")?;
    let some = allow.is_some() || deny.is_some();
    Ok(some.then(|| Filter {
        allow: allow.unwrap_or_default(),
        deny: deny.unwrap_or_default(),
    }))
}
