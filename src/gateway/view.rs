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

    pub fn uri_to_client(&self, server: &str, uri: &str) -> String {
        let _ = server;
        uri.to_owned()
    }

    pub fn result_to_client<'a>(
        &self,
        server: &str,
        method: &str,
        result: &'a RawValue,
    ) -> std::borrow::Cow<'a, RawValue> {
        let _ = (server, method);
        std::borrow::Cow::Borrowed(result)
    }

    pub fn server_info(&self) -> Option<&RawValue> {
        None
    }

    pub fn offers(&self, capability: &str) -> bool {
        let _ = capability;
        true
    }

    pub fn discover(&self) -> Box<RawValue> {
        crate::wire::object::empty().to_owned()
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
