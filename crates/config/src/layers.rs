//! Several files, one list of servers. A later layer wins by name, also with
//! an invalid definition: silently falling back to an older one would run a
//! server that the user has just replaced.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::parse::{Definition, ServerDefinitions, ServerFile};

/// The layer of a definition, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// `~/.kode.json`.
    KodeGlobal,
    /// `projects[<dir>]` of `~/.kode.json`.
    KodeGlobalProject,
    /// `./.kode.json`.
    KodeProject,
    /// `./.mcp.json`.
    Mcp,
    /// The database, with `STORAGE_TYPE=supabase`.
    Database,
    /// `./.portway.json`, which defines no servers.
    Filters,
}

/// The file, or the database, that a definition comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Source {
    pub kind: SourceKind,
    pub path: PathBuf,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SourceKind::Database => f.write_str("database"),
            _ => self.path.display().fmt(f),
        }
    }
}

impl Source {
    /// For a sentence in which one file may appear twice.
    pub fn describe(&self) -> String {
        match self.kind {
            SourceKind::KodeGlobalProject => format!("{self} (its section for this project)"),
            _ => self.to_string(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Layer {
    pub source: Source,
    pub servers: ServerDefinitions,
}

/// A server after merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedServer {
    pub definition: Definition,
    pub source: Source,
    /// Other sources that define it and are overridden, the strongest first.
    pub shadows: Vec<Source>,
}

/// Merges layers given in any order. Names keep the order in which they
/// first appear, from the weakest layer to the strongest.
pub fn merge(mut layers: Vec<Layer>) -> IndexMap<String, MergedServer> {
    layers.sort_by_key(|layer| layer.source.kind);
    let mut merged: IndexMap<String, MergedServer> = IndexMap::new();
    for Layer { source, servers } in layers {
        for (name, definition) in servers {
            let mut shadows = Vec::new();
            if let Some(weaker) = merged.get_mut(&name) {
                shadows.push(weaker.source.clone());
                shadows.append(&mut weaker.shadows);
            }
            let source = source.clone();
            let effective = MergedServer {
                definition,
                source,
                shadows,
            };
            merged.insert(name, effective);
        }
    }
    merged
}

/// The layers of `~/.kode.json`: its own servers and those it has for a
/// project directory.
pub fn kode_global(path: &Path, parsed: ServerFile, project: &Path) -> Vec<Layer> {
    let layer = |kind, servers| Layer {
        source: Source {
            kind,
            path: path.to_owned(),
        },
        servers,
    };
    let mut layers = vec![layer(SourceKind::KodeGlobal, parsed.servers.clone())];
    let here = project_key(&parsed, project).map(str::to_owned);
    if let Some(servers) = here.and_then(|key| parsed.projects.get(&key).cloned()) {
        layers.push(layer(SourceKind::KodeGlobalProject, servers));
    }
    layers
}

/// The key of a project directory in the file, if it has one.
pub fn project_key<'a>(parsed: &'a ServerFile, project: &Path) -> Option<&'a str> {
    let mut written = parsed.projects.keys().map(String::as_str);
    // Compares path components: a trailing slash makes no difference.
    written.find(|directory| Path::new(directory).components().eq(project.components()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, parse_file};

    fn layer(kind: SourceKind, path: &str, text: &str) -> Layer {
        Layer {
            source: Source {
                kind,
                path: path.into(),
            },
            servers: parse_file(text, Dialect::Mcp).unwrap().servers,
        }
    }

    #[test]
    fn b4_project_overrides_global_and_mcp_json_overrides_both() {
        let global = r#"{
            "mcpServers": {"a": {"command": "g"}, "b": {"command": "g"}, "c": {"command": "g"}},
            "projects": {
                "/home/ada/shop/": {"mcpServers": {"b": {"command": "gp"}, "d": {"command": "gp"}}},
                "/other": {"mcpServers": {"e": {"command": "gp"}}}
            }
        }"#;
        let parsed = parse_file(global, Dialect::Kode).unwrap();
        let mut layers = kode_global(
            Path::new("~/.kode.json"),
            parsed,
            Path::new("/home/ada/shop"),
        );
        layers.push(layer(
            SourceKind::Mcp,
            ".mcp.json",
            r#"{"mcpServers": {"c": {"command": ""}, "f": {"command": "m"}}}"#,
        ));
        layers.push(layer(
            SourceKind::KodeProject,
            ".kode.json",
            r#"{"mcpServers": {"b": {"command": "p"}, "c": {"command": "p"}}}"#,
        ));

        let merged = merge(layers);

        let told: Vec<(&str, SourceKind, bool, Vec<SourceKind>)> = merged
            .iter()
            .map(|(name, server)| {
                let shadows = server.shadows.iter().map(|s| s.kind).collect();
                let good = server.definition.is_ok();
                (name.as_str(), server.source.kind, good, shadows)
            })
            .collect();
        use SourceKind::*;
        assert_eq!(
            told,
            [
                ("a", KodeGlobal, true, vec![]),
                ("b", KodeProject, true, vec![KodeGlobalProject, KodeGlobal]),
                ("c", Mcp, false, vec![KodeProject, KodeGlobal]),
                ("d", KodeGlobalProject, true, vec![]),
                ("f", Mcp, true, vec![]),
            ]
        );
    }
}
