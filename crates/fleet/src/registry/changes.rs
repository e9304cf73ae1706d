//! Edits of the registry: servers are created, changed and removed in their
//! files or the database.

use std::sync::Arc;

use super::rewrite::{Draft, SourceError, TRIES};
use super::{DesiredServer, Edits, Occasion, Registry, RegistryError, RegistryResult, UpdateError};
use config::body::ServerChange;
use config::layers::Source;
use config::{Problem, ServerName, ServerSpec};
use store::ServerRecord;

/// The version of the definition that a change is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditBasis {
    /// The current definition, because the change replaces only a part of it.
    Newest,
    /// The definition as last published; the change fails if a newer one
    /// exists, so as not to undo it.
    AsTold,
}

impl Registry {
    /// Registers a server. If any step fails, nothing of it remains.
    pub async fn create(
        &self,
        name: ServerName,
        spec: ServerSpec,
        auto_start: bool,
    ) -> RegistryResult<Arc<DesiredServer>> {
        let mut edits = self.open_edits().await?;
        if self.desired().contains_key(name.as_str()) {
            return Err(RegistryError::NameTaken(name.to_string()));
        }
        // A server that a person removed from the file by hand left its id behind.
        let past = edits.records.get(name.as_str()).cloned();
        let record = ServerRecord {
            run: (!auto_start && spec.enabled).then_some(false),
            ..past
                .clone()
                .unwrap_or_else(|| ServerRecord::new(name.clone()))
        };
        self.store.put_server(&record).await?;
        if let Err(error) = self.add(&name, &spec, &edits).await {
            // The id alone is no server: without its definition it is removed too.
            match &past {
                Some(past) => self.store.put_server(past).await?,
                None => drop(self.store.delete_server(&name).await?),
            }
            return Err(error);
        }
        edits.records.insert(name.to_string(), record);
        let occasion = Occasion::Edit(name.as_str());
        self.refresh(&mut edits, occasion).await?;
        self.found(name.as_str())
    }

    async fn add(&self, name: &ServerName, spec: &ServerSpec, edits: &Edits) -> RegistryResult<()> {
        let source = self.files.for_new();
        for _ in 0..TRIES {
            let mut draft = self.draft(&source, edits).await?;
            if draft.has(name.as_str())? {
                return Err(RegistryError::NameTaken(name.to_string()));
            }
            draft.set(name.as_str(), spec)?;
            if draft.save().await? {
                return Ok(());
            }
        }
        Err(busy(&source))
    }

    /// Changes a definition in its source, and its name if the change has one.
    /// The id stays. `read` may run more than once: each time it gets the
    /// definition as the latest concurrent edit left it.
    pub async fn update(
        &self,
        server: &str,
        basis: EditBasis,
        read: impl Fn(&ServerSpec) -> Result<ServerChange, Vec<Problem>>,
    ) -> Result<Arc<DesiredServer>, UpdateError> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        let renamed = match self.rewrite(&mut edits, &wanted, basis, &read).await {
            Ok(renamed) => renamed,
            Err(UpdateError::Problems(problems)) => return Err(UpdateError::Problems(problems)),
            Err(error) => {
                // The reload publishes the state that caused the error.
                self.refresh(&mut edits, Occasion::Reload).await?;
                return Err(error);
            }
        };
        let name = renamed.as_ref().map_or(&*wanted.name, ServerName::as_str);
        self.refresh(&mut edits, Occasion::Edit(name)).await?;
        Ok(self.found(name)?)
    }

    /// Returns the new name, if the server got one.
    async fn rewrite(
        &self,
        edits: &mut Edits,
        wanted: &DesiredServer,
        basis: EditBasis,
        read: &impl Fn(&ServerSpec) -> Result<ServerChange, Vec<Problem>>,
    ) -> Result<Option<ServerName>, UpdateError> {
        for _ in 0..TRIES {
            let mut draft = self.draft(&wanted.source, edits).await?;
            let renamed = self.amend(&mut draft, wanted, basis, read)?;
            // A server whose old name is invalid has no record yet.
            let record = edits.records.get(&*wanted.name).cloned();
            let saved = match (&renamed, record) {
                (Some(name), Some(record)) => {
                    let name = Some(name);
                    self.save_moved(edits, &record, name, draft).await?
                }
                _ => draft.save().await?,
            };
            if saved {
                return Ok(renamed);
            }
        }
        Err(busy(&wanted.source).into())
    }

    /// Makes the change in a draft; returns the new name, if it has one.
    fn amend(
        &self,
        draft: &mut Draft<'_>,
        wanted: &DesiredServer,
        basis: EditBasis,
        read: impl Fn(&ServerSpec) -> Result<ServerChange, Vec<Problem>>,
    ) -> Result<Option<ServerName>, UpdateError> {
        let broken = || RegistryError::Broken(wanted.name.to_string());
        let (current, misnamed) = match draft.definition(&wanted.name)? {
            Some(Ok((_, spec))) => (spec, None),
            Some(Err(_)) => match ServerName::parse(&wanted.name) {
                Ok(_) => return Err(broken().into()),
                Err(rule) => (
                    draft.misnamed(&wanted.name)?.ok_or_else(broken)?,
                    Some(rule),
                ),
            },
            None => return Err(draft.gone().into()),
        };
        let told = wanted.spec.as_deref().ok();
        if basis == EditBasis::AsTold && told != Some(&current) && misnamed.is_none() {
            return Err(RegistryError::Stale(wanted.name.to_string()).into());
        }
        let change = read(&current).map_err(UpdateError::Problems)?;
        if let (Some(rule), None) = (misnamed, &change.name) {
            let rule = format!("needs a new name, for {:?} is none: {rule}", wanted.name);
            return Err(UpdateError::Problems(vec![Problem::new("name", rule)]));
        }
        let renamed = change.name.filter(|name| name.as_str() != &*wanted.name);
        let name = renamed.as_ref().map_or(&*wanted.name, ServerName::as_str);
        if renamed.is_some() {
            if self.desired().contains_key(name) {
                return Err(RegistryError::NameTaken(name.to_owned()).into());
            }
            draft.rename(&wanted.name, name)?;
        }
        if change.spec != current {
            draft.set(name, &change.spec)?;
        }
        Ok(renamed)
    }

    /// Removes a definition from its source; one that it shadowed takes effect.
    pub async fn remove(&self, server: &str) -> RegistryResult<Arc<DesiredServer>> {
        let mut edits = self.open_edits().await?;
        let wanted = self.found(server)?;
        self.take_out(&wanted, &mut edits).await?;
        let occasion = Occasion::Edit(&wanted.name);
        self.refresh(&mut edits, occasion).await?;
        Ok(wanted)
    }

    async fn take_out(&self, wanted: &DesiredServer, edits: &mut Edits) -> RegistryResult<()> {
        // The record stays for the definition that takes effect.
        let record = edits.records.get(&*wanted.name).cloned();
        let record = record.filter(|_| wanted.shadows.is_empty());
        for _ in 0..TRIES {
            let mut draft = self.draft(&wanted.source, edits).await?;
            draft.remove(&wanted.name)?;
            let saved = match &record {
                Some(record) => self.save_moved(edits, record, None, draft).await?,
                None => draft.save().await?,
            };
            if saved {
                return Ok(());
            }
        }
        Err(busy(&wanted.source))
    }

    pub(super) async fn draft(
        &self,
        source: &Source,
        edits: &Edits,
    ) -> Result<Draft<'_>, SourceError> {
        let draft = self.files.draft(source, &edits.loaded, &self.store);
        draft.await
    }

    /// Records that a server asks its client during calls, as long as its
    /// definition has this fingerprint.
    pub async fn remember_asking(&self, server: &str, fingerprint: &str) -> RegistryResult<()> {
        let mut edits = self.open_edits().await?;
        if let Some(record) = edits.records.get_mut(server)
            && record.asks.as_deref() != Some(fingerprint)
        {
            let changed = ServerRecord {
                asks: Some(fingerprint.to_owned()),
                ..record.clone()
            };
            self.store.put_server(&changed).await?;
            *record = changed;
            self.publish(&edits, Occasion::Reload);
        }
        Ok(())
    }
}

fn busy(source: &Source) -> RegistryError {
    let path = source.path.clone();
    SourceError::Busy { path }.into()
}
