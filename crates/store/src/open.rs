//! Opens the store that the settings name.

use std::sync::Arc;

use super::lock::{DirectoryLock, make_directory};
use super::{JsonStore, PostgresStore, Store, StoreError, StoreErrorKind};
use config::settings::{Settings, StorageType};

/// An open store, with warnings for a person.
pub struct OpenedStore<S> {
    pub store: S,
    pub warnings: Vec<String>,
}

/// Opens the store. The process holds the data directory while the store lives,
/// even where the records are elsewhere: the admin token is there.
pub async fn open(settings: &Settings) -> Result<OpenedStore<Arc<dyn Store>>, StoreError> {
    if settings.storage == StorageType::Json {
        let opened = JsonStore::open(&settings.data_dir)?;
        return Ok(OpenedStore {
            store: Arc::new(opened.store.limiting(settings.limits.users)),
            warnings: opened.warnings,
        });
    }
    let directory = &settings.data_dir;
    let lock = make_directory(directory)
        .and_then(|()| DirectoryLock::take(directory))
        .map_err(|kind| kind.during("open the data directory"))?;
    let url = settings.supabase_db_url.as_ref().ok_or_else(|| {
        StoreErrorKind::Setup("SUPABASE_DB_URL is not set".into()).during("open the database")
    })?;
    let store = PostgresStore::open(url, &settings.supabase_db_schema).await?;
    let store = store.limiting(settings.limits.users).holding(lock);
    Ok(OpenedStore {
        store: Arc::new(store),
        warnings: Vec::new(),
    })
}
