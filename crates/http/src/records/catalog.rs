//! `/api/v1/catalog`: the tools that the user, or the admin, may bind (SPEC E2).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Paging, RecordsApi};
use crate::Principal;
use crate::error::ApiError;
use crate::extract::Query;
use fleet::catalog::{Catalog, CatalogItem};
use wire::invisible::without_tags;

/// Longer searches find nothing better.
const SEARCH: usize = 200;

#[derive(Deserialize)]
pub(crate) struct CatalogQuery {
    skip: Option<u64>,
    limit: Option<u64>,
    /// Only the tools of this server.
    server: Option<String>,
    /// Words that must all be in the key, the title or the description.
    search: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct CatalogAnswer {
    items: Vec<BindableTool>,
    /// The number of tools on all pages.
    total: u64,
    servers: Vec<Value>,
}

#[derive(Serialize)]
struct BindableTool {
    server: Arc<str>,
    tool: String,
    /// `server:tool`
    key: String,
    #[serde(flatten)]
    details: BindableDetails,
}

#[derive(Default, Serialize, Deserialize)]
struct BindableDetails {
    title: Option<String>,
    description: Option<String>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Box<RawValue>>,
}

pub(crate) async fn list(
    State(records): State<RecordsApi>,
    principal: Principal,
    Query(asked): Query<CatalogQuery>,
) -> Result<Json<CatalogAnswer>, ApiError> {
    let paging = Paging {
        user_id: None,
        skip: asked.skip,
        limit: asked.limit,
    };
    let page = paging.page()?;
    let owner = principal.owner();
    let words = asked.search.unwrap_or_default().to_lowercase();
    let words: String = words.chars().take(SEARCH).collect();
    let words: Vec<&str> = words.split_whitespace().collect();
    let servers = records.targets().servers(&owner);
    let servers = servers.into_iter().map(|name| {
        let catalog = records.gateway.catalog_of(&name);
        (name, catalog)
    });
    let servers: Vec<(Arc<str>, Option<Arc<Catalog>>)> = servers.collect();
    let only = |server: &str| asked.server.as_deref().is_none_or(|only| only == server);
    let tools = servers.iter().filter(|(name, _)| only(name));
    let tools = tools.flat_map(|(name, catalog)| {
        let items = catalog.iter().flat_map(|catalog| catalog.tools.iter());
        items.map(move |item| (name, item))
    });
    let mut found: Vec<(&Arc<str>, &CatalogItem)> = tools
        .filter(|(server, item)| mentions(server, item, &words))
        .collect();
    found.sort_unstable_by(|one, other| (one.0, &one.1.key).cmp(&(other.0, &other.1.key)));
    let total = found.len() as u64;
    let skip = usize::try_from(page.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let items = found.into_iter().skip(skip).take(limit);
    let items = items.map(|(server, item)| BindableTool {
        key: format!("{server}:{}", item.key),
        server: server.clone(),
        tool: item.key.clone(),
        details: described(item),
    });
    Ok(Json(CatalogAnswer {
        items: items.collect(),
        total,
        servers: servers.iter().map(shown).collect(),
    }))
}

fn described(item: &CatalogItem) -> BindableDetails {
    serde_json::from_str(&without_tags(item.raw.get())).unwrap_or_default()
}

fn mentions(server: &str, item: &CatalogItem, words: &[&str]) -> bool {
    if words.is_empty() {
        return true;
    }
    let details = described(item);
    let (title, description) = (details.title, details.description);
    let (title, description) = (title.unwrap_or_default(), description.unwrap_or_default());
    let text = format!("{server}:{} {title} {description}", item.key).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// A server is connected if its tools are known now.
fn shown((name, catalog): &(Arc<str>, Option<Arc<Catalog>>)) -> Value {
    let tools = catalog.as_ref().map_or(0, |catalog| catalog.tools.len());
    json!({"name": name, "connected": catalog.is_some(), "tools": tools})
}
