//! The copy in memory of what keys open. One task reads, one read at a time,
//! so that an older read can never take the place of a newer one; whoever
//! waits meanwhile shares the next.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Executor, Row};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use super::super::records::{Entry, EntryId};
use super::super::{Directory, Grant, GrantedTool, KeyDigest, StoreChange, StoreErrorKind};
use super::fault::Fault;
use super::link::{LONG, Link};
use super::rows;

/// Those who may wait for a read.
const WAITING: usize = 2048;

/// For a read of a few entries.
const READ: Duration = Duration::from_millis(1500);

/// Changes that others may not have heard of yet.
const CHANGES: usize = 4096;

pub(super) struct Mirror {
    pub(super) grants: Directory,
    pub(super) changes: broadcast::Sender<StoreChange>,
    /// Something could not be read that should have been.
    pub(super) doubt: Notify,
    requests: mpsc::Sender<Request>,
}

/// What to read again.
#[derive(Default)]
struct Wanted {
    entries: Vec<EntryId>,
    keys: Vec<KeyDigest>,
    everything: bool,
    /// Memory is in step from then on.
    in_step: bool,
}

struct Request {
    wanted: Wanted,
    reply: oneshot::Sender<Result<Leaving, Failed>>,
}

/// Why there was no answer.
#[derive(Clone)]
pub(super) struct Failed {
    pub(super) kind: StoreErrorKind,
    /// The database could not be reached.
    pub(super) away: bool,
}

impl From<Failed> for StoreErrorKind {
    fn from(failed: Failed) -> StoreErrorKind {
        failed.kind
    }
}

/// Grants out of force through which calls may still be passing.
type Leaving = Vec<Arc<Grant>>;

impl Mirror {
    /// With the reader, which must be run.
    pub(super) fn new(link: Arc<Link>) -> (Arc<Mirror>, impl Future<Output = ()> + Send) {
        let (requests, queue) = mpsc::channel(WAITING);
        let (changes, _) = broadcast::channel(CHANGES);
        let mirror = Arc::new(Mirror {
            grants: Directory::default(),
            changes,
            doubt: Notify::new(),
            requests,
        });
        let reader = Reader {
            link,
            mirror: mirror.clone(),
            leaving: Vec::new(),
        };
        (mirror, reader.run(queue))
    }

    /// Puts in force what has been committed. On return nothing passes any
    /// more on the strength of what it took away.
    pub(super) async fn refresh(&self, entries: Vec<EntryId>) -> Result<(), StoreErrorKind> {
        let wanted = Wanted {
            entries,
            ..Wanted::default()
        };
        let leaving = self.request(wanted)?.await;
        let leaving = leaving.unwrap_or_else(|_| Err(closed()))?;
        Directory::settle(&leaving).await
    }

    /// Without waiting for it.
    pub(super) fn refresh_soon(&self, entries: Vec<EntryId>) {
        let wanted = Wanted {
            entries,
            ..Wanted::default()
        };
        if self.request(wanted).is_err() {
            self.doubt.notify_one();
        }
    }

    pub(super) async fn ask(&self, key: KeyDigest) -> Result<Option<Arc<Grant>>, Failed> {
        let wanted = Wanted {
            keys: vec![key],
            ..Wanted::default()
        };
        let asked = self.request(wanted)?.await;
        asked.unwrap_or_else(|_| Err(closed()))?;
        Ok(self.grants.find(&key))
    }

    /// Reads everything; with `in_step` from then on.
    pub(super) async fn reload(&self, in_step: bool) -> Result<(), StoreErrorKind> {
        let wanted = Wanted {
            everything: true,
            in_step,
            ..Wanted::default()
        };
        let leaving = self.request(wanted)?.await;
        leaving.unwrap_or_else(|_| Err(closed()))?;
        Ok(())
    }

    fn request(
        &self,
        wanted: Wanted,
    ) -> Result<oneshot::Receiver<Result<Leaving, Failed>>, Failed> {
        let (reply, answered) = oneshot::channel();
        let request = Request { wanted, reply };
        let sent = self.requests.try_send(request);
        sent.map_err(|_| Failed::here("too many wait for the database"))?;
        Ok(answered)
    }

    pub(super) fn tell(&self, change: StoreChange) {
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }
}

impl Failed {
    /// For a reason that is not the database's.
    fn here(text: &str) -> Failed {
        Failed {
            kind: StoreErrorKind::Unavailable(text.to_owned()),
            away: false,
        }
    }
}

fn closed() -> Failed {
    Failed::here("the store is closed")
}

struct Reader {
    link: Arc<Link>,
    mirror: Arc<Mirror>,
    leaving: Leaving,
}

impl Reader {
    async fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        let mut batch = Vec::new();
        while queue.recv_many(&mut batch, WAITING).await > 0 {
            let wanted = Wanted::all(batch.iter().map(|request| &request.wanted));
            let outcome = self.read(&wanted).await;
            self.leaving.retain(|grant| !grant.gate.is_empty());
            for request in batch.drain(..) {
                let answer = match &outcome {
                    Ok(()) => Ok(self.leaving_of(&request.wanted)),
                    Err(failed) => Err(failed.clone()),
                };
                // Who asked may have gone.
                let _ = request.reply.send(answer);
            }
        }
    }

    /// Also those that an earlier read has put out of force: somebody may
    /// have heard of the change before the one who made it came here.
    fn leaving_of(&self, wanted: &Wanted) -> Leaving {
        let concerns = |grant: &&Arc<Grant>| wanted.entries.contains(&grant.entry);
        self.leaving.iter().filter(concerns).cloned().collect()
    }

    async fn read(&mut self, wanted: &Wanted) -> Result<(), Failed> {
        let answers = self.link.standing.answers();
        let mut entries: BTreeSet<EntryId> = wanted.entries.iter().copied().collect();
        // A key may have opened another entry before.
        let known = wanted
            .keys
            .iter()
            .filter_map(|key| self.mirror.grants.find(key));
        entries.extend(known.map(|grant| grant.entry));
        let found = match wanted.everything {
            true => load(&self.link, None).await,
            false => {
                let ids = entries.iter().copied().collect();
                load(&self.link, Some((ids, wanted.keys.clone()))).await
            }
        };
        let found = match found {
            Ok(found) => found,
            Err(fault) => {
                self.give_up(wanted, &fault, answers);
                let away = fault.is_connection();
                let kind = fault.kind();
                return Err(Failed { kind, away });
            }
        };
        if wanted.everything {
            entries.extend(self.mirror.grants.all().iter().map(|grant| grant.entry));
        }
        self.publish(entries, found);
        for id in &wanted.entries {
            self.mirror.tell(StoreChange::Entry(*id));
        }
        if wanted.everything {
            self.mirror.tell(StoreChange::Everything);
        }
        if wanted.in_step {
            self.link.standing.set_in_step();
        }
        Ok(())
    }

    /// What is known to have changed is not served as it was.
    fn give_up(&mut self, wanted: &Wanted, fault: &Fault, answers: u64) {
        let gone = wanted.entries.iter().map(|id| (*id, None));
        self.leaving
            .extend(self.mirror.grants.replace(gone.collect()));
        if fault.is_connection() {
            self.link.standing.suspect_away(answers);
        }
        if !wanted.entries.is_empty() {
            self.link.standing.doubt();
            self.mirror.doubt.notify_one();
        }
    }

    /// Those asked for that were not found are closed.
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
        // A key that went from one entry to another must not go with the one.
        changed.sort_by_key(|(_, grant)| grant.is_some());
        self.leaving.extend(grants.replace(changed));
    }
}

impl Wanted {
    fn all<'a>(each: impl Iterator<Item = &'a Wanted>) -> Wanted {
        let mut all = Wanted::default();
        for wanted in each {
            all.entries.extend(&wanted.entries);
            all.keys.extend(&wanted.keys);
            all.everything |= wanted.everything;
            all.in_step |= wanted.in_step;
        }
        all
    }
}

/// An entry's enabled tools beside it, so that one statement sees them at
/// one moment.
macro_rules! select_grants {
    ($which:literal) => {
        concat!(
            "select ",
            entry_columns!(),
            ", (select json_agg(json_build_array(t.name, t.description, t.server, t.tool)) ",
            "from mcp_binding b join tool t on t.id = b.tool_id ",
            "where b.mcp_id = e.id and b.status)::text as tools, ",
            "array(select t.server || ':' || t.tool from mcp_binding b ",
            "join tool t on t.id = b.tool_id where b.mcp_id = e.id and not b.status ",
            "and (e.filter_allow is not null or e.filter_deny is not null)) as off ",
            "from mcp_v2 e ",
            $which
        )
    };
}

type Few = Option<(Vec<EntryId>, Vec<KeyDigest>)>;

async fn load(link: &Arc<Link>, few: Few) -> Result<Vec<(EntryId, Option<Grant>)>, Fault> {
    let limit = if few.is_some() { READ } else { LONG };
    link.try_read(limit, move |connection| {
        let few = few.clone();
        Box::pin(async move { rows::all(&select(connection, few).await?, granted) })
    })
    .await
}

async fn select(connection: &mut PgConnection, few: Few) -> Result<Vec<PgRow>, Fault> {
    let Some((ids, keys)) = few else {
        // In a transaction, so that the longer limit ends with it.
        let mut whole = connection.begin().await?;
        whole.execute("set local statement_timeout = '60s'").await?;
        let rows = sqlx::query(select_grants!("where e.status"))
            .fetch_all(&mut *whole)
            .await?;
        whole.commit().await?;
        return Ok(rows);
    };
    let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key.as_bytes()[..]).collect();
    let rows = sqlx::query(select_grants!(
        "where e.id = any($1) or e.key_digest = any($2)"
    ))
    .bind(ids)
    .bind(keys)
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

fn granted(row: &PgRow) -> Result<(EntryId, Option<Grant>), Fault> {
    type Told = (String, Option<String>, String, String);
    let entry: Entry = rows::entry(row)?;
    let tools: Option<&str> = row.try_get("tools")?;
    let tools: Vec<Told> = match tools {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Fault::Sql(sqlx::Error::Decode(Box::new(error))))?,
        None => Vec::new(),
    };
    let tools = tools
        .into_iter()
        .map(|(name, description, server, tool)| GrantedTool {
            name,
            description,
            server,
            tool,
        });
    let off: Vec<String> = row.try_get("off")?;
    let grant = Grant::with_tools(&entry, tools.collect(), off);
    Ok((entry.id, grant))
}
