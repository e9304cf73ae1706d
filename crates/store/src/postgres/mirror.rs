//! The copy of the grants in memory. One task reads, one read at a time, so
//! that an older read never replaces a newer one; all requests that wait
//! meanwhile share the next read.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Executor, Row};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use super::super::records::{Entry, EntryId, ToolId, ToolRecord};
use super::super::{Grant, GrantDirectory, KeyDigest, StoreChange, StoreErrorKind};
use super::database::{Database, LONG, OperationKind};
use super::fault::{DbError, DbResult};
use super::table::{self, RecordTable, columns};

/// The number of requests that may wait for a read.
const WAITING: usize = 2048;

/// The time limit of a read of a few entries.
const READ: Duration = Duration::from_millis(1500);

/// The capacity of the channel of changes.
const CHANGES: usize = 4096;

pub(in super::super) struct Mirror {
    pub(in super::super) grants: GrantDirectory,
    pub(in super::super) changes: broadcast::Sender<StoreChange>,
    /// Notified when a necessary read has failed.
    pub(super) doubt: Notify,
    requests: mpsc::Sender<MirrorRead>,
}

/// The records to read again.
#[derive(Default)]
struct MirrorScope {
    entries: Vec<EntryId>,
    keys: Vec<KeyDigest>,
    everything: bool,
    /// Memory is up to date after this read.
    in_step: bool,
}

struct MirrorRead {
    wanted: MirrorScope,
    reply: oneshot::Sender<Result<ClosedGrants, MirrorError>>,
}

/// Why a read failed.
#[derive(Clone)]
pub(super) struct MirrorError {
    pub(super) kind: StoreErrorKind,
    /// Set if the database could not be reached.
    pub(super) away: bool,
}

impl From<MirrorError> for StoreErrorKind {
    fn from(failed: MirrorError) -> StoreErrorKind {
        failed.kind
    }
}

/// Replaced grants that calls in flight may still use.
type ClosedGrants = Vec<Arc<Grant>>;

impl Mirror {
    /// Also returns the reader, which the caller must run.
    pub(super) fn new(database: Arc<Database>) -> (Arc<Mirror>, impl Future<Output = ()> + Send) {
        let (requests, queue) = mpsc::channel(WAITING);
        let (changes, _) = broadcast::channel(CHANGES);
        let mirror = Arc::new(Mirror {
            grants: GrantDirectory::default(),
            changes,
            doubt: Notify::new(),
            requests,
        });
        let reader = MirrorReader {
            database,
            mirror: mirror.clone(),
            leaving: Vec::new(),
            tools: SharedTools::default(),
        };
        (mirror, reader.run(queue))
    }

    /// Makes a committed change take effect. Once this returns, no call uses
    /// access that the change removed.
    pub(super) async fn refresh(&self, entries: Vec<EntryId>) -> Result<(), StoreErrorKind> {
        let leaving = self.request(MirrorScope::entries(entries))?.await?;
        GrantDirectory::settle(&leaving).await
    }

    /// Like [`Mirror::refresh`], without waiting for it.
    pub(super) fn refresh_soon(&self, entries: Vec<EntryId>) {
        if self.request(MirrorScope::entries(entries)).is_err() {
            self.doubt.notify_one();
        }
    }

    pub(super) async fn ask(&self, key: KeyDigest) -> Result<Option<Arc<Grant>>, MirrorError> {
        let wanted = MirrorScope {
            keys: vec![key],
            ..MirrorScope::default()
        };
        self.request(wanted)?.await?;
        Ok(self.grants.find(&key))
    }

    /// Reads everything; with `in_step`, memory then counts as up to date.
    pub(super) async fn reload(&self, in_step: bool) -> Result<(), StoreErrorKind> {
        let wanted = MirrorScope {
            everything: true,
            in_step,
            ..MirrorScope::default()
        };
        self.request(wanted)?.await?;
        Ok(())
    }

    fn request(
        &self,
        wanted: MirrorScope,
    ) -> Result<impl Future<Output = Result<ClosedGrants, MirrorError>> + use<>, MirrorError> {
        let (reply, answered) = oneshot::channel();
        let request = MirrorRead { wanted, reply };
        let sent = self.requests.try_send(request);
        sent.map_err(|_| MirrorError::here("too many wait for the database"))?;
        let closed = |_| Err(MirrorError::here("the store is closed"));
        Ok(async move { answered.await.unwrap_or_else(closed) })
    }

    pub(super) fn tell(&self, change: StoreChange) {
        // There may be no subscriber.
        let _ = self.changes.send(change);
    }
}

impl MirrorError {
    /// An error whose cause is not the database.
    fn here(text: &str) -> MirrorError {
        MirrorError {
            kind: StoreErrorKind::Unavailable(text.to_owned()),
            away: false,
        }
    }
}

struct MirrorReader {
    database: Arc<Database>,
    mirror: Arc<Mirror>,
    leaving: ClosedGrants,
    tools: SharedTools,
}

impl MirrorReader {
    async fn run(mut self, mut queue: mpsc::Receiver<MirrorRead>) {
        let mut batch = Vec::new();
        while queue.recv_many(&mut batch, WAITING).await > 0 {
            let wanted = MirrorScope::all(batch.iter().map(|request| &request.wanted));
            let outcome = self.read(&wanted).await;
            self.leaving.retain(|grant| !grant.calls.is_empty());
            for request in batch.drain(..) {
                let answer = match &outcome {
                    Ok(()) => Ok(self.leaving_of(&request.wanted)),
                    Err(failed) => Err(failed.clone()),
                };
                // The caller may have gone.
                let _ = request.reply.send(answer);
            }
        }
    }

    /// Includes grants that an earlier read has replaced: the notification of a
    /// change may arrive before the request of the caller that made it.
    fn leaving_of(&self, wanted: &MirrorScope) -> ClosedGrants {
        let concerns = |grant: &&Arc<Grant>| wanted.entries.contains(&grant.entry);
        self.leaving.iter().filter(concerns).cloned().collect()
    }

    async fn read(&mut self, wanted: &MirrorScope) -> Result<(), MirrorError> {
        let answers = self.database.status.answers();
        let mut entries: BTreeSet<EntryId> = wanted.entries.iter().copied().collect();
        // The key may have belonged to another entry before.
        let known = wanted
            .keys
            .iter()
            .filter_map(|key| self.mirror.grants.find(key));
        entries.extend(known.map(|grant| grant.entry));
        let few = || (Vec::from_iter(entries.iter().copied()), wanted.keys.clone());
        let few = (!wanted.everything).then(few);
        let found = load(&self.database, few).await.map_err(|fault| {
            self.give_up(wanted, &fault, answers);
            let away = fault.is_connection();
            let kind = fault.kind();
            MirrorError { kind, away }
        })?;
        if wanted.everything {
            entries.extend(self.mirror.grants.all().iter().map(|grant| grant.entry));
        }
        let found = self.tools.grants(found);
        self.publish(entries, found);
        for id in &wanted.entries {
            self.mirror.tell(StoreChange::Entry(*id));
        }
        if wanted.everything {
            self.mirror.tell(StoreChange::Everything);
        }
        if wanted.in_step {
            self.database.status.set_in_step();
        }
        Ok(())
    }

    /// Removes the grants of entries that are known to have changed.
    fn give_up(&mut self, wanted: &MirrorScope, fault: &DbError, answers: u64) {
        let gone = wanted.entries.iter().map(|id| (*id, None));
        self.leaving
            .extend(self.mirror.grants.replace(gone.collect()));
        if fault.is_connection() {
            self.database.status.suspect_away(answers);
        }
        if !wanted.entries.is_empty() {
            self.database.status.doubt();
            self.mirror.doubt.notify_one();
        }
    }

    /// Closes the requested entries that were not found.
    fn publish(&mut self, asked: BTreeSet<EntryId>, found: Vec<(EntryId, Option<Grant>)>) {
        let mut found: HashMap<EntryId, Option<Grant>> = found.into_iter().collect();
        for id in asked {
            found.entry(id).or_default();
        }
        let grants = &self.mirror.grants;
        let mut changed: Vec<_> = found
            .into_iter()
            .filter(|(id, grant)| match (grants.of_entry(*id), grant) {
                (Some(before), Some(grant)) => !before.gives_the_same(grant),
                (before, grant) => before.is_some() || grant.is_some(),
            })
            .collect();
        // Removals first: a key that moved to another entry must stay there.
        changed.sort_by_key(|(_, grant)| grant.is_some());
        self.leaving.extend(grants.replace(changed));
    }
}

impl MirrorScope {
    fn entries(entries: Vec<EntryId>) -> MirrorScope {
        MirrorScope {
            entries,
            ..MirrorScope::default()
        }
    }

    fn all<'a>(each: impl Iterator<Item = &'a MirrorScope>) -> MirrorScope {
        let mut all = MirrorScope::default();
        for wanted in each {
            all.entries.extend(&wanted.entries);
            all.keys.extend(&wanted.keys);
            all.everything |= wanted.everything;
            all.in_step |= wanted.in_step;
        }
        all
    }
}

fn select_grants(which: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "select {}, \
         array(select b.tool_id from mcp_binding b where b.mcp_id = e.id and b.status) as tools, \
         array(select b.tool_id from mcp_binding b where b.mcp_id = e.id and not b.status \
         and (e.filter_allow is not null or e.filter_deny is not null)) as off \
         from mcp_v2 e {which}",
        columns::<Entry>()
    ))
}

type EntrySelection = Option<(Vec<EntryId>, Vec<KeyDigest>)>;

/// Entries with the numbers of their tools and whether each is enabled, and
/// each of those tools once, however many entries have it.
struct LoadedGrants {
    entries: Vec<(Entry, Vec<(ToolId, bool)>)>,
    tools: Vec<ToolRecord>,
}

async fn load(database: &Arc<Database>, few: EntrySelection) -> DbResult<LoadedGrants> {
    let limit = if few.is_some() { READ } else { LONG };
    let run = database.run(limit, OperationKind::Test, move |connection| {
        Box::pin(select(connection, few.clone()))
    });
    run.await
}

async fn select(connection: &mut PgConnection, few: EntrySelection) -> DbResult<LoadedGrants> {
    let Some((ids, keys)) = few else {
        // In a transaction, so that the longer limit ends with it.
        let mut whole = connection.begin().await?;
        whole.execute("set local statement_timeout = '60s'").await?;
        let all = sqlx::query(select_grants("where e.status"));
        let rows = all.fetch_all(&mut *whole).await?;
        let loaded = with_their_tools(&mut whole, &rows).await?;
        whole.commit().await?;
        return Ok(loaded);
    };
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key.as_bytes()[..]).collect();
    let few = select_grants("where e.id = any($1) or e.key_digest = any($2)");
    let few = sqlx::query(few).bind(ids).bind(keys);
    let rows = few.fetch_all(&mut *connection).await?;
    with_their_tools(connection, &rows).await
}

/// Reads the tools after the entries, so they may be newer. The process that
/// changed one meanwhile has its entries read again.
async fn with_their_tools(connection: &mut PgConnection, rows: &[PgRow]) -> DbResult<LoadedGrants> {
    let entries: Vec<_> = rows.iter().map(with_tools).collect::<Result<_, _>>()?;
    let wanted: BTreeSet<i64> = entries
        .iter()
        .flat_map(|(_, tools)| tools.iter().map(|(id, _)| id.0))
        .collect();
    let tools = if wanted.is_empty() {
        Vec::new()
    } else {
        let wanted = Vec::from_iter(wanted);
        table::select(connection, "where id = any($1)", |query| query.bind(wanted)).await?
    };
    Ok(LoadedGrants { entries, tools })
}

fn with_tools(row: &PgRow) -> DbResult<(Entry, Vec<(ToolId, bool)>)> {
    let tools: Vec<i64> = row.try_get("tools")?;
    let off: Vec<i64> = row.try_get("off")?;
    let tools = tools.into_iter().map(|id| (ToolId(id), true));
    let off = off.into_iter().map(|id| (ToolId(id), false));
    Ok((Entry::from_row(row)?, tools.chain(off).collect()))
}

/// The tool records in use, so that a record that is read again is kept once.
#[derive(Default)]
struct SharedTools(HashMap<ToolId, Weak<ToolRecord>>);

impl SharedTools {
    fn grants(&mut self, loaded: LoadedGrants) -> Vec<(EntryId, Option<Grant>)> {
        let tools = loaded.tools.into_iter();
        let tools: HashMap<ToolId, Arc<ToolRecord>> =
            tools.map(|tool| (tool.id, self.share(tool))).collect();
        self.0.retain(|_, known| known.strong_count() > 0);
        let grant = |(entry, ids): (Entry, Vec<(ToolId, bool)>)| {
            let its = ids.iter();
            let its = its.filter_map(|(id, enabled)| Some((tools.get(id)?.clone(), *enabled)));
            (entry.id, Grant::new(&entry, its))
        };
        loaded.entries.into_iter().map(grant).collect()
    }

    fn share(&mut self, tool: ToolRecord) -> Arc<ToolRecord> {
        let known = self.0.get(&tool.id).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| **known == tool) {
            return known;
        }
        let tool = Arc::new(tool);
        self.0.insert(tool.id, Arc::downgrade(&tool));
        tool
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn tool(id: i64, description: &str) -> ToolRecord {
        ToolRecord {
            id: ToolId(id),
            owner: "ann".into(),
            name: format!("tool {id}"),
            description: Some(description.into()),
            server: "s".into(),
            tool: "t".into(),
            created_at: Timestamp::from_millis(1),
            updated_at: Timestamp::from_millis(1),
        }
    }

    #[test]
    fn t_a_tool_that_is_read_again_is_kept_once() {
        let mut shared = SharedTools::default();
        let first = shared.share(tool(1, "long"));
        assert!(Arc::ptr_eq(&first, &shared.share(tool(1, "long"))));
        let changed = shared.share(tool(1, "other"));
        assert!(!Arc::ptr_eq(&first, &changed));
        assert!(Arc::ptr_eq(&changed, &shared.share(tool(1, "other"))));
        drop((first, changed));
        let nothing = LoadedGrants {
            entries: Vec::new(),
            tools: Vec::new(),
        };
        shared.grants(nothing);
        assert!(shared.0.is_empty(), "what nobody has is forgotten");
    }
}
