//! Every operation loads the rows that it needs, runs the rule and writes its
//! steps, in one transaction; what keys open comes from memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::postgres::PgConnection;
use tokio::sync::broadcast;

use super::super::backend::{Answer, Backend, Needs, Record};
use super::super::quota::admit_steps;
use super::super::records::*;
use super::super::rules::Ruling;
use super::super::state::State;
use super::super::{
    DefinitionChange, Grant, GrantDirectory, GrantLookup, KeyDigest, StoreChange, StoreErrorKind,
};
use super::fault::Fault;
use super::link::{Doing, LIMIT, LONG};
use super::load::{Intent, load};
use super::mirror::Failed;
use super::quota::Quota;
use super::save::save;
use super::standing::{FROM_MEMORY, Memory};
use super::{PostgresStore, Touched, adopt, moved, quota, servers, table};
use config::ServerName;

/// Work on a connection, which may run again: it gets what it needs by reference.
fn work<T, G, F>(given: G, run: F) -> impl for<'c> Fn(&'c mut PgConnection) -> Doing<'c, T>
where
    G: Send + Sync + 'static,
    F: for<'c> Fn(&'c mut PgConnection, Arc<G>) -> Doing<'c, T>,
{
    let given = Arc::new(given);
    move |connection| run(connection, given.clone())
}

/// A rule on what is in the database: its answer, and the entries it touched.
async fn apply<T>(
    tx: &mut PgConnection,
    needs: &Needs,
    quota: &Quota,
    rule: &(impl Fn(&State) -> Ruling<T> + Sync),
) -> Result<(T, Touched), Fault> {
    let usage = quota::before(tx, quota).await?;
    let state = load(tx, needs, Intent::Change).await?;
    let (value, steps) = rule(&state)?;
    if let Some((_, limits)) = quota {
        admit_steps(limits, &state, &steps, |_| usage)?;
    }
    save(tx, &state, &steps).await?;
    let mut touched: Touched = steps.iter().flat_map(|step| state.touched(step)).collect();
    // Also where nothing changes: memory may be behind an earlier change.
    touched.extend(needs.entry.filter(|id| state.entries.contains_key(id)));
    Ok((value, touched))
}

impl Backend for PostgresStore {
    fn grants(&self) -> &GrantDirectory {
        &self.mirror.grants
    }

    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: Needs,
        read: impl Fn(&State) -> T + Send + Sync + 'static,
    ) -> Answer<T> {
        let load = work((needs, read), |connection, given| {
            Box::pin(async move {
                let (needs, read) = &*given;
                Ok(read(&load(connection, needs, Intent::Read).await?))
            })
        });
        self.query(operation, load).await
    }

    async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        needs: Needs,
        user: Option<Arc<str>>,
        rule: impl Fn(&State) -> Ruling<T> + Send + Sync + 'static,
    ) -> Answer<T> {
        let quota = quota::of(user, self.limits);
        let change = work((needs, quota, rule), |tx, given| {
            Box::pin(async move {
                let (needs, quota, rule) = &*given;
                apply(tx, needs, quota, rule).await
            })
        });
        self.write(operation, LIMIT, change).await
    }

    async fn list<R: Record>(
        &self,
        operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> Answer<Listing<R>> {
        let list = work(scope.user(), move |connection, user| {
            Box::pin(async move { table::list::<R>(connection, user.as_deref(), page).await })
        });
        self.query(operation, list).await
    }

    async fn server_moved(&self, from: &ServerName, to: Option<&ServerName>) -> Answer<()> {
        let follow = work((from.clone(), to.cloned()), |tx, given| {
            Box::pin(async move {
                let (from, to) = &*given;
                moved::server_moved(tx, from.as_str(), to.as_ref().map(ServerName::as_str)).await
            })
        });
        self.write("move the server's records", LIMIT, follow).await
    }

    async fn definitions(&self) -> Answer<Option<BTreeMap<String, String>>> {
        let list = work((), |connection, _| {
            Box::pin(servers::definitions(connection))
        });
        self.query("read the definitions", list).await.map(Some)
    }

    async fn define(&self, changes: &[DefinitionChange]) -> Answer<bool> {
        let define = work(changes.to_vec(), |tx, changes| {
            Box::pin(async move { Ok((servers::define(tx, &changes).await?, Vec::new())) })
        });
        self.write("change the definitions", LIMIT, define).await
    }

    async fn migrate_instances(&self) -> Answer<Vec<MigratedInstance>> {
        let migrate = work((), |tx, _| Box::pin(adopt::migrate(tx)));
        self.write("migrate MCP instances", LONG, migrate).await
    }

    async fn adopt(&self, records: &[Instance]) -> Answer<Vec<Adoption>> {
        let adopt = work(records.to_vec(), |tx, records| {
            Box::pin(async move { adopt::adopt(tx, &records).await })
        });
        self.write("migrate records", LONG, adopt).await
    }

    fn grant(&self, key: &KeyDigest) -> GrantLookup {
        let found = self.mirror.grants.find(key);
        match (self.link.standing.memory(), found) {
            (Memory::InStep, None) => GrantLookup::No,
            (Memory::InStep, Some(grant)) => GrantLookup::Yes(grant),
            (Memory::Away(unheard), Some(grant)) if unheard < FROM_MEMORY => {
                GrantLookup::Yes(grant)
            }
            _ => GrantLookup::Ask,
        }
    }

    async fn ask(&self, key: &KeyDigest) -> Answer<Option<Arc<Grant>>> {
        let standing = &self.link.standing;
        // A database that is known to be away is not waited for.
        let asked = if standing.is_away() {
            Err(Failed {
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
        let in_step = standing.memory() == Memory::InStep;
        let remembered = self.mirror.grants.find(key);
        let good = in_step || (failed.away && standing.unheard() < FROM_MEMORY);
        match remembered {
            Some(grant) if good => Ok(Some(grant)),
            None if in_step => Ok(None),
            _ => Err(failed.kind.during("look up the key")),
        }
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        self.mirror.changes.subscribe()
    }

    fn trouble(&self) -> Option<String> {
        match self.link.standing.memory() {
            Memory::InStep => None,
            Memory::Behind => {
                Some("database notifications lost; every key is looked up in the database".into())
            }
            Memory::Away(unheard) => Some(format!(
                "the database has not answered for {} s; entries are served as they were then",
                unheard.as_secs()
            )),
        }
    }
}
