//! The files as the API shows them: the definitions, the shadowed definitions
//! and the problems of each.

use serde::{Serialize, Serializer};

use super::filters::FilterFile;
use super::rewrite::SourceError;
use super::sources::{LoadedSources, SourceFiles};
use config::layers::{Layer, MergedServer, SourceKind};
use config::{Problem, ServerSpec};

/// One layer: a file, or the section of a file for this project.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    pub path: String,
    pub kind: SourceKind,
    /// The reason why the file is unusable now; its last good state is in force.
    #[serde(serialize_with = "as_text")]
    pub error: Option<Problem>,
    pub problems: Vec<Problem>,
    pub servers: Vec<DefinitionReport>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionReport {
    pub name: String,
    /// The file whose definition of the same name is in force instead.
    pub shadowed_by: Option<String>,
    pub problems: Vec<Problem>,
}

fn as_text<S: Serializer>(problem: &Option<Problem>, serializer: S) -> Result<S::Ok, S::Error> {
    match problem {
        Some(problem) => serializer.collect_str(problem),
        None => serializer.serialize_none(),
    }
}

impl SourceFiles {
    pub fn reports(&self, loaded: &LoadedSources) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        for (path, state) in &loaded.files {
            let mut problems = state.parsed.problems.clone();
            for layer in self.layers_of(path, state) {
                reports.push(SourceReport {
                    path: path.display().to_string(),
                    kind: layer.source.kind,
                    error: state.problem.clone(),
                    // The problems are those of the file: report them once.
                    problems: std::mem::take(&mut problems),
                    servers: loaded.definitions(layer),
                });
            }
        }
        reports
    }

    /// The current report of the file of named filters. Blocks on the disk.
    pub fn filters_report(&self) -> Option<SourceReport> {
        let path = self.filters();
        FilterFile::load_now(&path).report(&path)
    }

    /// The files as they would be if the API wrote one server.
    pub fn with_server(
        &self,
        loaded: &LoadedSources,
        name: &str,
        spec: &ServerSpec,
    ) -> Result<LoadedSources, SourceError> {
        let source = loaded
            .merged
            .get(name)
            .map_or_else(|| self.for_new(), |e| e.source.clone());
        if let Some(problem) = loaded.problem(&source) {
            return Err(SourceError::Unusable {
                path: source.path,
                reason: problem.to_string(),
            });
        }
        let state = loaded.files.get(&source.path);
        let good = state.map(|state| state.good.to_vec()).unwrap_or_default();
        let text = String::from_utf8(good).unwrap_or_default();
        let mut draft = self.draft_of(&source, text);
        draft.set(name, spec)?;
        Ok(self.with_file(loaded, &source, draft.text.as_bytes()))
    }
}

impl LoadedSources {
    /// The definition in force for a name, and its source.
    pub fn effective(&self, name: &str) -> Option<&MergedServer> {
        self.merged.get(name)
    }

    /// Every defined name, valid or not.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.merged.keys().map(String::as_str)
    }

    /// The valid definitions that are in force.
    pub fn usable(&self) -> Vec<(String, ServerSpec)> {
        let good = |(name, effective): (&String, &MergedServer)| {
            let (_, spec) = effective.definition.as_ref().ok()?;
            Some((name.clone(), spec.clone()))
        };
        self.merged.iter().filter_map(good).collect()
    }

    fn definitions(&self, layer: Layer) -> Vec<DefinitionReport> {
        let source = layer.source;
        let report = |(name, definition): (String, Result<_, Vec<Problem>>)| {
            let winner = self.merged.get(&name).map(|effective| &effective.source);
            DefinitionReport {
                shadowed_by: winner
                    .filter(|winner| **winner != source)
                    .map(ToString::to_string),
                problems: definition.err().unwrap_or_default(),
                name,
            }
        };
        layer.servers.into_iter().map(report).collect()
    }
}
