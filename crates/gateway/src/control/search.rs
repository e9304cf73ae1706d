//! A search of all tools of all servers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Control, NAME};
use crate::naming;
use fleet::Offer;
use fleet::catalog::CatalogItem;
use fleet::registry::RegistryError;
use wire::invisible::without_tags;

const SHOWN: usize = 100;
pub(super) const MOST_SHOWN: usize = 1000;

#[derive(Serialize)]
pub(super) struct ToolMatches {
    tools: Vec<ToolMatch>,
    /// Also counts matches beyond the limit.
    total: usize,
}

#[derive(Serialize)]
struct ToolMatch {
    /// As clients of the shared endpoint call it.
    name: String,
    key: String,
    server: Arc<str>,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[derive(Default, Deserialize)]
struct ToolDescription {
    title: Option<String>,
    description: Option<String>,
}

impl Control {
    /// The tools that have all words, of one server or of all.
    pub(super) fn search(
        &self,
        words: Option<String>,
        server: Option<String>,
        limit: Option<usize>,
    ) -> Result<ToolMatches, RegistryError> {
        let snapshot = self.servers.fleet.snapshot();
        let own = self.offer(&snapshot).map(|offer| (&self.name, offer));
        let only = match server {
            Some(server) if server == NAME && own.is_some() => Some(self.name.clone()),
            Some(server) => Some(self.servers.find(&server)?.name.clone()),
            None => None,
        };
        let running = snapshot.servers.iter();
        let offers: Vec<(&Arc<str>, &Arc<Offer>)> = running
            .filter_map(|(name, view)| Some((name, view.offer.as_ref()?)))
            .chain(own)
            .collect();
        let items = offers.iter().flat_map(|(server, offer)| {
            let tools = offer.catalog.tools.iter();
            tools.map(move |item| (*server, item))
        });
        // Names are given over all tools, as at the shared endpoint.
        let names = naming::names(items.clone().map(|(server, item)| (&**server, &*item.key)));
        let words = words.unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut found: Vec<ToolMatch> = names
            .into_iter()
            .zip(items)
            .filter(|(_, (server, _))| only.as_ref().is_none_or(|only| only == *server))
            .map(|(named, (server, item))| found(named.name, server, item))
            .filter(|tool| tool.has(&words))
            .collect();
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let total = found.len();
        found.truncate(limit.unwrap_or(SHOWN).min(MOST_SHOWN));
        Ok(ToolMatches {
            tools: found,
            total,
        })
    }
}

fn found(name: String, server: &Arc<str>, item: &CatalogItem) -> ToolMatch {
    let described: ToolDescription =
        serde_json::from_str(&without_tags(item.raw.get())).unwrap_or_default();
    ToolMatch {
        name,
        key: format!("{server}:{}", item.key),
        server: server.clone(),
        tool: item.key.clone(),
        title: described.title,
        description: described.description,
    }
}

impl ToolMatch {
    fn has(&self, words: &[&str]) -> bool {
        let told = [self.title.as_ref(), self.description.as_ref()];
        let told = told.into_iter().flatten().chain([&self.key]);
        let told: Vec<String> = told.map(|text| text.to_lowercase()).collect();
        let told_of = |word: &&str| told.iter().any(|text| text.contains(*word));
        words.iter().all(told_of)
    }
}
