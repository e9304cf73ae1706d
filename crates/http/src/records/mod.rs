//! Entries, the tools that can be bound to them, and the old records (SPEC
//! E1-E5, E9-E11, K6). A handler reads strictly, calls the store, and returns
//! the result; the principal decides whose records it sees.

mod answers;
pub(super) mod bindings;
mod bodies;
pub(super) mod catalog;
pub(super) mod entries;
mod idempotency;
mod instances;
mod keys;
mod resource;
mod targets;
mod tools;
mod values;

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::watch;

use super::error::{ApiError, FieldProblem};
use fleet::registry::Desired;
use gateway::{Gateway, run_to_completion};
use store::{Page, Store};

pub(super) use instances::OURS;
pub use keys::KeyIssuer;
pub(super) use resource::{change, create, list, remove, show};

/// The MCP path of an entry; its key follows.
const ENDPOINT: &str = "/api/v1/mcp_v2/server/";

/// The tools of the entry whose key is in the path, which is the only
/// credential needed.
pub(super) const BY_KEY: &str = "/api/v1/mcp/{api_key}/tools";

#[derive(Clone)]
pub struct RecordsApi {
    pub store: Arc<Store>,
    pub keys: Arc<KeyIssuer>,
    /// The defined servers.
    pub desired: watch::Receiver<Arc<Desired>>,
    pub gateway: Arc<Gateway>,
}

/// Finishes an edit that has begun, even if the client disconnects.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        next.run(request).await
    } else {
        run_to_completion(next.run(request)).await
    }
}

const LIMIT: u64 = 100;
const MOST: u64 = 1000;

/// `?user_id=…&skip=…&limit=…`
#[derive(Deserialize)]
pub(crate) struct Paging {
    user_id: Option<String>,
    skip: Option<u64>,
    limit: Option<u64>,
}

impl Paging {
    fn page(self) -> Result<Page, ApiError> {
        let page = Page {
            skip: self.skip.unwrap_or(0),
            limit: self.limit.unwrap_or(LIMIT),
        };
        let mut problems = Vec::new();
        if i64::try_from(page.skip).is_err() {
            problems.push(FieldProblem::new("skip", "is too large"));
        }
        if page.limit > MOST {
            problems.push(FieldProblem::new("limit", format!("is at most {MOST}")));
        }
        refuse(problems).map(|()| page)
    }
}

/// Fails if there are problems.
fn refuse(problems: Vec<FieldProblem>) -> Result<(), ApiError> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::validation(problems))
}

#[cfg(test)]
mod tests;
