//! All records are in memory: every operation finds what it needs there.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::super::backend::{Answer, Backend, Needs, Record};
use super::super::quota::{self, Usage};
use super::super::records::*;
use super::super::rules::{self, Ruling};
use super::super::state::State;
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
        _needs: Needs,
        read: impl Fn(&State) -> T + Send + Sync + 'static,
    ) -> Answer<T> {
        Ok(read(&self.state()))
    }

    async fn change<T: Send + 'static>(
        &self,
        operation: &'static str,
        _needs: Needs,
        user: Option<Arc<str>>,
        rule: impl Fn(&State) -> Ruling<T> + Send + Sync + 'static,
    ) -> Answer<T> {
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

    async fn list<R: Record>(
        &self,
        _operation: &'static str,
        scope: &OwnerScope,
        page: Page,
    ) -> Answer<Listing<R>> {
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

    async fn server_moved(&self, from: &ServerName, to: Option<&ServerName>) -> Answer<()> {
        let (from, to) = (from.clone(), to.cloned());
        self.write("move the server's records", move |state| {
            rules::server_moved(state, &from, to.as_ref())
        })
        .await
    }

    async fn migrate_instances(&self) -> Answer<Vec<MigratedInstance>> {
        self.write("migrate MCP instances", rules::migrate).await
    }

    async fn adopt(&self, records: &[Instance]) -> Answer<Vec<Adoption>> {
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

    async fn ask(&self, key: &KeyDigest) -> Answer<Option<Arc<Grant>>> {
        Ok(self.grants.find(key))
    }

    fn changes(&self) -> broadcast::Receiver<StoreChange> {
        self.changes.subscribe()
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
