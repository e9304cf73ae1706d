//! Loads the rows that a rule reads. Rows that are to change are locked until
//! the transaction ends; the constraints of the tables catch what other
//! transactions do meanwhile to the other rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use super::super::backend::{RecordKind, RecordSelection};
use super::super::records::*;
use super::super::state::{BoundEntry, CreateOutcome, StoreState};
use super::super::{KeyDigest, Timestamp};
use super::fault::{DbError, DbResult};
use super::idempotency;
use super::servers;
use super::table::{self, RecordTable, at, columns};

/// Whether the rows are to change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Change,
}

impl Intent {
    fn lock(self, lock: &'static str) -> &'static str {
        match self {
            Intent::Read => "",
            Intent::Change => lock,
        }
    }
}

pub(super) async fn load(
    connection: &mut PgConnection,
    needs: &RecordSelection,
    intent: Intent,
) -> DbResult<StoreState> {
    let mut state = StoreState::default();
    let owner = needs.owner.as_deref();
    if let Some((kind, request)) = &needs.create
        && !create(connection, *kind, request.as_ref(), &mut state).await?
    {
        return Ok(state);
    }
    if let Some(request) = &needs.request {
        let made = idempotency::find(connection, request).await?;
        let key = KeyDigest::from_bytes(request.key);
        state.once = Arc::new(made.map(|made| (key, made)).into_iter().collect());
    }
    if needs.all_servers || !needs.servers.is_empty() {
        let which = (!needs.all_servers).then_some(&*needs.servers);
        let found = servers::select(connection, which, intent.lock("for update")).await?;
        state.servers = Arc::new(found.into_iter().map(|found| (found.id, found)).collect());
    }
    if let Some(id) = needs.entry {
        let which = "where id = $1 and ($2::text is null or user_id = $2)";
        let which = format!("{which} {}", intent.lock("for update"));
        let found =
            table::select::<Entry>(connection, &which, |query| query.bind(id.0).bind(owner));
        state.add_entries(found.await?);
        if needs.bindings && !state.entries.is_empty() {
            bindings(connection, id, &mut state).await?;
        }
    }
    if !needs.tools.is_empty() {
        let ids: Vec<i64> = needs.tools.iter().map(|id| id.0).collect();
        // No transaction renames or deletes a tool until it is bound.
        let which = format!(
            "where id = any($1) order by id {}",
            intent.lock("for key share")
        );
        state.add_tools(table::select(connection, &which, |query| query.bind(ids)).await?);
    }
    if let Some((id, name)) = &needs.bound_tool {
        bound_tool(connection, owner, *id, name.as_deref(), &mut state).await?;
    }
    if let Some(named) = &needs.instance {
        let which = "where key_digest = $1 or id = $2 order by key_digest = $1 desc limit 1";
        let which = format!("{which} {}", intent.lock("for update"));
        let found = table::select::<Instance>(connection, &which, |query| {
            let query = query.bind(named.key.as_bytes().to_vec());
            query.bind(named.id.map(|id| id.0))
        });
        let found = found.await?.into_iter();
        state.instances = Arc::new(found.map(|found| (found.id, Arc::new(found))).collect());
    }
    if let Some(key) = &needs.key {
        let key = key.as_bytes().to_vec();
        let found = table::select(connection, "where key_digest = $1", |query| query.bind(key));
        state.add_entries(found.await?);
    }
    Ok(state)
}

impl StoreState {
    /// Adds entries without their bindings; keeps an entry that is already there.
    fn add_entries(&mut self, found: Vec<Entry>) {
        let entries = Arc::make_mut(&mut self.entries);
        for entry in found {
            let bindings = Vec::new();
            let held = BoundEntry { entry, bindings };
            entries.entry(held.entry.id).or_insert(Arc::new(held));
        }
    }

    fn add_tools(&mut self, found: Vec<ToolRecord>) {
        let tools = Arc::make_mut(&mut self.tools);
        tools.extend(found.into_iter().map(|tool| (tool.id, Arc::new(tool))));
    }

    fn add_binding(&mut self, entry: EntryId, binding: Binding) {
        if let Some(held) = Arc::make_mut(&mut self.entries).get_mut(&entry) {
            Arc::make_mut(held).bindings.push(binding);
        }
    }
}

/// Reserves the number of a new record, or finds the record of an earlier request
/// with the same `Idempotency-Key`; whether the record is to be created.
async fn create(
    connection: &mut PgConnection,
    kind: RecordKind,
    request: Option<&Idempotency>,
    state: &mut StoreState,
) -> DbResult<bool> {
    if let Some(request) = request
        && let Some(made) = idempotency::claim(connection, request).await?
    {
        let id = made.id;
        let key = KeyDigest::from_bytes(request.key);
        // The claim has already decided that it is remembered.
        let at = Timestamp::now();
        let made = CreateOutcome { at, ..made };
        let needs = match kind {
            RecordKind::Tool => RecordSelection {
                tools: vec![ToolId(id)],
                ..RecordSelection::default()
            },
            RecordKind::Entry => RecordSelection::of_entry(&OwnerScope::Everyone, EntryId(id)),
            RecordKind::Instance => {
                let id = Some(EntryId(id));
                RecordSelection::of_instance(&InstanceName { key, id })
            }
        };
        let earlier = Box::pin(load(connection, &needs, Intent::Read)).await?;
        let once = Arc::new(BTreeMap::from([(key, made)]));
        *state = StoreState { once, ..earlier };
        return Ok(false);
    }
    match kind {
        RecordKind::Tool => state.new_tools = new_tools(connection, 1).await?,
        RecordKind::Entry => state.last.entry = new_id::<Entry>(connection).await? - 1,
        RecordKind::Instance => state.last.instance = new_id::<Instance>(connection).await? - 1,
    }
    Ok(true)
}

async fn new_id<R: RecordTable>(connection: &mut PgConnection) -> DbResult<i64> {
    let ids = new_ids::<R>(connection, 1).await?;
    ids.first()
        .copied()
        .ok_or(DbError::Sql(sqlx::Error::RowNotFound))
}

async fn new_tools(connection: &mut PgConnection, count: usize) -> DbResult<Vec<ToolId>> {
    let ids = new_ids::<ToolRecord>(connection, count).await?;
    Ok(ids.into_iter().map(ToolId).collect())
}

async fn new_ids<R: RecordTable>(
    connection: &mut PgConnection,
    count: usize,
) -> DbResult<Vec<i64>> {
    let sql = "select nextval(pg_get_serial_sequence($1, 'id')) from generate_series(1, $2)";
    let ids = sqlx::query_scalar(sql)
        .bind(R::NAME)
        .bind(i32::try_from(count).unwrap_or(i32::MAX));
    Ok(ids.fetch_all(connection).await?)
}

/// The bindings of an entry in the order of creation, with their tools.
async fn bindings(
    connection: &mut PgConnection,
    entry: EntryId,
    state: &mut StoreState,
) -> DbResult<()> {
    let sql = format!(
        "select t.*, b.status, b.bound_at from (select {} from tool) t \
         join (select id as seq, mcp_id, tool_id, status, \
         (extract(epoch from created_at) * 1000)::bigint as bound_at from mcp_binding) b \
         on b.tool_id = t.id where b.mcp_id = $1 order by b.seq",
        columns::<ToolRecord>()
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).bind(entry.0);
    let rows = rows.fetch_all(connection).await?;
    let mut tools = Vec::with_capacity(rows.len());
    for row in &rows {
        let tool = ToolRecord::from_row(row)?;
        let binding = Binding {
            tool: tool.id,
            enabled: row.try_get("status")?,
            created_at: at(row, "bound_at")?,
        };
        state.add_binding(entry, binding);
        tools.push(tool);
    }
    state.add_tools(tools);
    Ok(())
}

/// A tool, locked against changes, deletion and binding; the entries that have
/// it, and their other tools that have its new name.
async fn bound_tool(
    tx: &mut PgConnection,
    owner: Option<&str>,
    id: ToolId,
    name: Option<&str>,
    state: &mut StoreState,
) -> DbResult<()> {
    let which = "where id = $1 and ($2::text is null or user_id = $2) for update";
    let found = table::select(tx, which, |query| query.bind(id.0).bind(owner)).await?;
    if found.is_empty() {
        return Ok(());
    }
    state.add_tools(found);
    let which = "where id in (select mcp_id from mcp_binding where tool_id = $1)";
    state.add_entries(table::select(tx, which, |query| query.bind(id.0)).await?);
    let rows = sqlx::query(
        "select b.mcp_id, b.tool_id, b.status, \
         (extract(epoch from b.created_at) * 1000)::bigint as created_at \
         from mcp_binding mine join mcp_binding b on b.mcp_id = mine.mcp_id \
         where mine.tool_id = $1 and (b.tool_id = $1 or b.tool_name = $2)",
    )
    .bind(id.0)
    .bind(name)
    .fetch_all(&mut *tx)
    .await?;
    let mut others = Vec::new();
    for row in &rows {
        let tool: i64 = row.try_get("tool_id")?;
        if tool != id.0 {
            others.push(tool);
        }
        let binding = Binding {
            tool: ToolId(tool),
            enabled: row.try_get("status")?,
            created_at: at(row, "created_at")?,
        };
        state.add_binding(EntryId(row.try_get("mcp_id")?), binding);
    }
    if !others.is_empty() {
        let which = "where id = any($1)";
        state.add_tools(table::select(tx, which, |query| query.bind(others)).await?);
    }
    Ok(())
}

/// Loads what the rules read that make an entry of an old record.
pub(super) async fn conversion(tx: &mut PgConnection, record: &Instance) -> DbResult<StoreState> {
    let needs = RecordSelection {
        create: Some((RecordKind::Entry, None)),
        instance: Some(record.key.digest.into()),
        key: Some(record.key.digest),
        ..RecordSelection::default()
    };
    let mut state = load(tx, &needs, Intent::Change).await?;
    let (servers, tools): (Vec<&str>, Vec<&str>) = record.registered().into_iter().unzip();
    if !tools.is_empty() {
        state.new_tools = new_tools(tx, tools.len()).await?;
        let which = "where user_id = $1 and (server, tool) in \
             (select * from unnest($2::text[], $3::text[])) order by id";
        let found = table::select(tx, which, |query| {
            query.bind(&*record.owner).bind(servers).bind(tools)
        });
        state.add_tools(found.await?);
    }
    Ok(state)
}
