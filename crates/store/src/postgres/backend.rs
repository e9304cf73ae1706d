//! The backend in PostgreSQL: every operation loads the rows that it needs, runs
//! the rule and writes its steps, in one transaction; grants come from memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::postgres::PgConnection;

use super::super::backend::RecordSelection;
use super::super::quota::{Quota, admit_steps};
use super::super::records::*;
use super::super::rules::Ruling;
use super::super::state::StoreState;
use super::super::{DefinitionChange, Grant, GrantLookup, KeyDigest, StoreErrorKind, StoreResult};
use super::database::{DbFuture, LIMIT, LONG};
use super::fault::DbResult;
use super::load::{Intent, load};
use super::mirror::MirrorError;
use super::mirror_status::{FROM_MEMORY, MirrorState};
use super::save::save;
use super::{PostgresStore, RecordTable, TouchedEntries, adopt, moved, quota, servers, table};
use config::ServerName;

/// Work on a connection, which may run again: it borrows its input.
fn work<T, G, F>(given: G, run: F) -> impl for<'c> Fn(&'c mut PgConnection) -> DbFuture<'c, T>
where
    G: Send + Sync + 'static,
    F: for<'c> Fn(&'c mut PgConnection, Arc<G>) -> DbFuture<'c, T>,
{
    let given = Arc::new(given);
    move |connection| run(connection, given.clone())
}

/// Runs a rule on the database: returns its result, and the entries it touched.
async fn apply<T>(
    tx: &mut PgConnection,
    needs: &RecordSelection,
    quota: &Quota,
    rule: &(impl Fn(&StoreState) -> Ruling<T> + Sync),
) -> DbResult<(T, TouchedEntries)> {
    let usage = quota::before(tx, quota).await?;
    let state = load(tx, needs, Intent::Change).await?;
    let (value, steps) = rule(&state)?;
    if let Some((_, limits)) = quota {
        admit_steps(limits, &state, &steps, |_| usage)?;
    }
    save(tx, &state, &steps).await?;
    let mut touched: TouchedEntries = steps.iter().flat_map(|step| state.touched(step)).collect();
    // Also where nothing changes: memory may lack an earlier change.
    touched.extend(needs.entry.filter(|id| state.entries.contains_key(id)));
    Ok((value, touched))
}

impl PostgresStore {
    pub(in super::super) async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        read: impl Fn(&StoreState) -> T + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let load = work((needs, read), |connection, given| {
            Box::pin(async move {
                let (needs, read) = &*given;
                Ok(read(&load(connection, needs, Intent::Read).await?))
            })
        });
        self.query(operation, load).await
    }

    pub(in super::super) async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: RecordSelection,
        quota: Quota,
        rule: impl Fn(&StoreState) -> Ruling<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let change = work((needs, quota, rule), |tx, given| {
            Box::pin(async move {
                let (needs, quota, rule) = &*given;
                apply(tx, needs, quota, rule).await
            })
        });
        self.write(operation, LIMIT, change).await
    }

    pub(in super::super) async fn list<R: RecordTable>(
        &self,
        operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> StoreResult<Listing<R>> {
        let list = work(scope.user(), move |connection, user| {
            Box::pin(async move { table::list::<R>(connection, user.as_deref(), page).await })
        });
        self.query(operation, list).await
    }

    pub(in super::super) async fn server_moved(
        &self,
        from: &ServerName,
        to: Option<&ServerName>,
    ) -> StoreResult<()> {
        let follow = work((from.clone(), to.cloned()), |tx, given| {
            Box::pin(async move {
                let (from, to) = &*given;
                moved::server_moved(tx, from.as_str(), to.as_ref().map(ServerName::as_str)).await
            })
        });
        self.write("move the server's records", LIMIT, follow).await
    }

    pub(in super::super) async fn definitions(&self) -> StoreResult<BTreeMap<String, String>> {
        let list = work((), |connection, _| {
            Box::pin(servers::definitions(connection))
        });
        self.query("read the definitions", list).await
    }

    pub(in super::super) async fn define(&self, changes: &[DefinitionChange]) -> StoreResult<bool> {
        let define = work(changes.to_vec(), |tx, changes| {
            Box::pin(async move { Ok((servers::define(tx, &changes).await?, Vec::new())) })
        });
        self.write("change the definitions", LIMIT, define).await
    }

    pub(in super::super) async fn migrate_instances(&self) -> StoreResult<Vec<MigratedInstance>> {
        let migrate = work((), |tx, _| Box::pin(adopt::migrate(tx)));
        self.write("migrate MCP instances", LONG, migrate).await
    }

    pub(in super::super) async fn adopt(&self, records: &[Instance]) -> StoreResult<Vec<Adoption>> {
        let adopt = work(records.to_vec(), |tx, records| {
            Box::pin(async move { adopt::adopt(tx, &records).await })
        });
        self.write("migrate records", LONG, adopt).await
    }

    pub(in super::super) fn grant(&self, key: &KeyDigest) -> GrantLookup {
        let found = self.mirror.grants.find(key);
        match (self.database.status.memory(), found) {
            (MirrorState::InStep, None) => GrantLookup::No,
            (MirrorState::InStep, Some(grant)) => GrantLookup::Yes(grant),
            (MirrorState::Away(unheard), Some(grant)) if unheard < FROM_MEMORY => {
                GrantLookup::Yes(grant)
            }
            _ => GrantLookup::Ask,
        }
    }

    pub(in super::super) async fn ask(&self, key: &KeyDigest) -> StoreResult<Option<Arc<Grant>>> {
        let status = &self.database.status;
        // Does not wait for a database that is known to be unreachable.
        let asked = if status.is_away() {
            Err(MirrorError {
                kind: StoreErrorKind::Unavailable("the database does not answer".to_owned()),
                away: true,
            })
        } else {
            self.mirror.ask(*key).await
        };
        let failed = match asked {
            Ok(grant) => return Ok(grant),
            Err(failed) => failed,
        };
        let in_step = status.memory() == MirrorState::InStep;
        let remembered = self.mirror.grants.find(key);
        let good = in_step || (failed.away && status.unheard() < FROM_MEMORY);
        match remembered {
            Some(grant) if good => Ok(Some(grant)),
            None if in_step => Ok(None),
            _ => Err(failed.kind.during("look up the key")),
        }
    }

    pub(in super::super) fn trouble(&self) -> Option<String> {
        match self.database.status.memory() {
            MirrorState::InStep => None,
            MirrorState::Behind => {
                Some("database notifications lost; every key is looked up in the database".into())
            }
            MirrorState::Away(unheard) => Some(format!(
                "the database has not answered for {} s; entries are served as they were then",
                unheard.as_secs()
            )),
        }
    }
}
