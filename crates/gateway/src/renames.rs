//! Names of tools and prompts that change because of another server (SPEC D2):
//! each change is logged and sent to subscribers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::naming;
use fleet::catalog::{Catalog, ListKind};

/// Names in one event, and lines in the log.
const SHOWN: usize = 100;
const LOGGED: usize = 5;

/// The catalogs of all servers.
pub(super) type Catalogs = HashMap<Arc<str>, Arc<Catalog>>;

/// The changed names of one server.
#[derive(Debug, Serialize)]
pub struct Renames {
    pub server: Arc<str>,
    /// The first hundred.
    names: Vec<Rename>,
    total: usize,
    #[serde(skip)]
    pub(super) tools: bool,
    #[serde(skip)]
    pub(super) prompts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Rename {
    /// `tools` or `prompts`
    kind: &'static str,
    /// The server's own name for it.
    name: String,
    /// `null` for a new tool.
    from: Option<String>,
    to: String,
    /// `server:tool` that has the plain name now.
    because: Option<String>,
}

/// The names that are not plain because another server has the plain name.
#[derive(Default)]
pub(super) struct NameConflicts(BTreeMap<NameKey, NameConflict>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameKey {
    server: Arc<str>,
    kind: &'static str,
    name: String,
}

struct NameConflict {
    named: String,
    because: String,
}

impl NameConflicts {
    /// Takes the new catalogs; returns the renames against `before`.
    pub(crate) fn follow(&mut self, before: &Catalogs, now: &Catalogs) -> Vec<Renames> {
        let kinds = [ListKind::Tools, ListKind::Prompts].into_iter();
        let clashes = kinds.flat_map(|kind| clashing(now, kind)).collect();
        let old = std::mem::replace(&mut self.0, clashes);
        let mut renames: BTreeMap<Arc<str>, Vec<Rename>> = BTreeMap::new();
        let mut add = |key: &NameKey, from, to, because| {
            let of_server = renames.entry(key.server.clone()).or_default();
            of_server.push(Rename {
                kind: key.kind,
                name: key.name.clone(),
                from,
                to,
                because,
            });
        };
        let alone = |key: &NameKey| naming::name(&key.server, &key.name);
        for (key, clash) in &self.0 {
            let from = match old.get(key) {
                Some(old) if old.named == clash.named => continue,
                Some(old) => Some(old.named.clone()),
                None => key.is_in(before).then(|| alone(key)),
            };
            add(key, from, clash.named.clone(), Some(clash.because.clone()));
        }
        let over = old.iter().filter(|(key, _)| !self.0.contains_key(key));
        for (key, clash) in over.filter(|(key, _)| key.is_in(now)) {
            add(key, Some(clash.named.clone()), alone(key), None);
        }
        renames.into_iter().map(Renames::new).collect()
    }
}

impl NameKey {
    fn is_in(&self, catalogs: &Catalogs) -> bool {
        catalogs.get(&self.server).is_some_and(|catalog| {
            let is_tool = self.kind == ListKind::Tools.member();
            let items = if is_tool {
                &catalog.tools
            } else {
                &catalog.prompts
            };
            items.iter().any(|item| item.key == self.name)
        })
    }
}

fn clashing(catalogs: &Catalogs, kind: ListKind) -> Vec<(NameKey, NameConflict)> {
    let all = catalogs.iter().flat_map(|(server, catalog)| {
        let items = catalog.items(kind).iter();
        items.map(move |item| (server, item.key.as_str()))
    });
    let all: Vec<(&Arc<str>, &str)> = all.collect();
    let named = naming::names(all.iter().map(|(server, own)| (&***server, *own)));
    let clash = |((server, own), named): (&(&Arc<str>, &str), naming::ToolName)| {
        let (keeper, its) = all[named.yields_to?];
        let key = NameKey {
            server: (*server).clone(),
            kind: kind.member(),
            name: (*own).to_owned(),
        };
        let clash = NameConflict {
            named: named.name,
            because: format!("{keeper}:{its}"),
        };
        Some((key, clash))
    };
    all.iter().zip(named).filter_map(clash).collect()
}

impl Renames {
    fn new((server, mut names): (Arc<str>, Vec<Rename>)) -> Renames {
        let has = |kind: ListKind| names.iter().any(|rename| rename.kind == kind.member());
        let (tools, prompts) = (has(ListKind::Tools), has(ListKind::Prompts));
        let total = names.len();
        names.truncate(SHOWN);
        Renames {
            server,
            names,
            total,
            tools,
            prompts,
        }
    }

    pub(super) fn log(&self) {
        let server = &self.server;
        for rename in self.names.iter().take(LOGGED) {
            let Rename { name, from, to, .. } = rename;
            let why = match &rename.because {
                Some(other) => format!("{other:?} uses its plain name"),
                None => "no other server uses its plain name now".to_owned(),
            };
            match from {
                Some(from) => {
                    tracing::warn!(%server, "{from} ({name:?} of server {server:?}) is now named {to}: {why}")
                }
                None => {
                    tracing::warn!(%server, "{name:?} of server {server:?} is named {to}: {why}")
                }
            }
        }
        if self.total > LOGGED {
            let more = self.total - LOGGED;
            tracing::warn!(%server, "{more} more names of server {server:?} have changed");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::view::fixture::listed;
    use wire::Era;

    fn catalogs(servers: &[(&str, &[&str])]) -> Catalogs {
        let catalog = |tools: &[&str]| {
            let offer = listed(Era::Modern).tools(tools).offer().unwrap();
            offer.catalog.clone()
        };
        let all = servers.iter();
        all.map(|(name, tools)| ((*name).into(), catalog(tools)))
            .collect()
    }

    fn told(renames: &[Renames]) -> Value {
        serde_json::to_value(renames).unwrap()
    }

    #[test]
    fn d2_names_that_change_because_of_another_server_are_told() {
        let none = Catalogs::new();
        let alone = catalogs(&[("a_b", &["c", "d"])]);
        let both = catalogs(&[("a_b", &["c", "d"]), ("a", &["b_c"])]);
        let mut clashes = NameConflicts::default();
        assert!(clashes.follow(&none, &alone).is_empty());
        let renames = clashes.follow(&alone, &both);
        assert!(renames[0].tools && !renames[0].prompts);
        let (plain, qualified) = ("mcp_a_b_c", "mcp_a_b_c_3d4x8cz");
        let rename = |from: Value, to, because: Value| {
            json!([{"server": "a_b", "total": 1, "names": [
                {"kind": "tools", "name": "c", "from": from, "to": to, "because": because}]}])
        };
        assert_eq!(
            told(&renames),
            rename(json!(plain), qualified, json!("a:b_c"))
        );
        assert!(clashes.follow(&both, &both).is_empty());
        let renames = clashes.follow(&both, &alone);
        assert_eq!(told(&renames), rename(json!(qualified), plain, Value::Null));
        // A new server with such a name is reported as well.
        let first = catalogs(&[("a", &["b_c"])]);
        assert!(clashes.follow(&alone, &first).is_empty());
        let renames = clashes.follow(&first, &both);
        assert_eq!(
            told(&renames),
            rename(Value::Null, qualified, json!("a:b_c"))
        );
    }
}
