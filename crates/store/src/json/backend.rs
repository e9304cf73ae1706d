//! The backend of the store in files: all records are in memory.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::super::backend::{Backend, PagedRecord, RecordSelection, StoreResult};
use super::super::quota::{self, Usage};
use super::super::records::*;
use super::super::rules::{self, Ruling};
use super::super::state::StoreState;
use super::super::{Grant, GrantDirectory, GrantLookup, KeyDigest, StoreChange};
use super::JsonStore;
use config::ServerName;

impl Backend for JsonStore {
    fn grants(&self) -> &GrantDirectory {
        &self.grants
    }

    async fn read<T: Send + 'static>(
        &self,
        _operation: &'static str,
        _needs: RecordSelection,
        read: impl Fn(&StoreState) -> T + Send + Sync + 'static,
    ) -> StoreResult<T> {
        Ok(read(&self.state()))
    }

    async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        _needs: RecordSelection,
        user: Option<Arc<str>>,
        rule: impl Fn(&StoreState) -> Ruling<T> + Send + Sync + 'static,
    ) -> StoreResult<T> {
        let limits = self
            .limits
            .filter(|_| user.is_some_and(|user| *user != *ADMIN));
        self.write(operation, move |state| {
            let (value, steps) = rule(state)?;
            if let Some(limits) = limits {
                quota::admit_steps(&limits, state, &steps, |owner| Usage::of(state, owner))?;
            }
            Ok((value, steps))
        })
        .await
    }

    async fn list<R: PagedRecord>(
        &self,
        _operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> StoreResult<Listing<R>> {
        let state = self.state();
        let (mut items, mut total) = (Vec::new(), 0);
        for record in R::all(&state).filter(|record| scope.includes(record.owner())) {
            if total >= page.skip && (items.len() as u64) < page.limit {
                items.push(record.clone());
            }
            total += 1;
        }
        Ok(Listing { items, total })
    }

    async fn server_moved(&self, from: &ServerName, to: Option<&ServerName>) -> StoreResult<()> {
        let (from, to) = (from.clone(), to.cloned());
        self.write("move the server's records", move |state| {
            rules::server_moved(state, &from, to.as_ref())
        })
        .await
    }

    async fn migrate_instances(&self) -> StoreResult<Vec<MigratedInstance>> {
        self.write("migrate MCP instances", rules::migrate).await
    }

    async fn adopt(&self, records: &[Instance]) -> StoreResult<Vec<Adoption>> {
        let records = records.to_vec();
        self.write("migrate records", move |state| {
            rules::adopt(state, &records)
        })
        .await
    }

    fn grant(&self, key: &KeyDigest) -> GrantLookup {
        match self.grants.find(key) {
            Some(grant) => GrantLookup::Yes(grant),
            None => GrantLookup::No,
        }
    }

    async fn ask(&self, key: &KeyDigest) -> StoreResult<Option<Arc<Grant>>> {
        Ok(self.grants.find(key))
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        self.changes.subscribe()
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
