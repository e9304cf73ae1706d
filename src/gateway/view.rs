//! What one endpoint shows, prepared: names, lists as bytes, and the way back
//! from a name to its server.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::Scope;
use crate::fleet::Snapshot;
use crate::wire::header::ParamHeader;
use crate::wire::{Era, RpcError};

/// The catalog of one scope at one moment. Immutable.
pub struct View;

/// Where a tool or prompt of a view really is.
pub struct Target {
    pub server: Arc<str>,
    /// Its name there.
    pub name: String,
    /// The headers a modern client must send with it.
    pub headers: Vec<ParamHeader>,
    /// Its `outputSchema` was wrapped for legacy clients, so its results are.
    pub wrapped: bool,
}

/// A client as lists see it: which spelling it gets.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub era: Era,
    pub version: &'a str,
}

#[derive(Default)]
pub struct Views;

impl Views {
    /// The view of a scope on what runs now; made anew only when a catalog
    /// has changed.
    pub fn get(&self, scope: &Scope, snapshot: &Arc<Snapshot>) -> Arc<View> {
        let _ = (scope, snapshot);
        Arc::new(View)
    }
}

impl View {
    pub fn tool(&self, visible: &str) -> Option<&Target> {
        let _ = visible;
        None
    }

    pub fn prompt(&self, visible: &str) -> Option<&Target> {
        let _ = visible;
        None
    }

    /// The server of a resource, and its URI there.
    pub fn resource(&self, uri: &str) -> Option<(Arc<str>, String)> {
        let _ = uri;
        None
    }

    /// The result of a list method, whole and spelled for its reader.
    pub fn list(
        &self,
        method: &str,
        reader: Reader<'_>,
        params: Option<&RawValue>,
    ) -> Result<Arc<RawValue>, RpcError> {
        let _ = (method, reader, params);
        Err(RpcError::new(
            crate::wire::code::METHOD_NOT_FOUND,
            "not yet",
        ))
    }
}
