//! The files as the API shows them: what each defines, what is hidden, what
//! is wrong.

use serde::Serialize;

use super::rewrite::{Edit, SourceError};
use super::sources::{Files, Loaded};
use crate::config::layers::SourceKind;
use crate::config::{Problem, ServerSpec};

/// One file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    pub path: String,
    pub kind: SourceKind,
    /// Why the file cannot be used now; its last good state is in force.
    pub error: Option<String>,
    pub problems: Vec<Problem>,
    pub servers: Vec<DefinitionReport>,
}

/// One definition in a file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionReport {
    pub name: String,
    /// The file whose definition of the same name is in force instead.
    pub shadowed_by: Option<String>,
    pub problems: Vec<Problem>,
}

impl Loaded {
    pub fn reports(&self) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        for (path, state) in &self.files {
            let servers = state.parsed.servers.iter().map(|(name, definition)| {
                let winner = self.merged.get(name).map(|effective| &effective.source);
                let beaten = winner.filter(|winner| winner.path != *path);
                DefinitionReport {
                    name: name.clone(),
                    shadowed_by: beaten.map(ToString::to_string),
                    problems: definition.as_ref().err().cloned().unwrap_or_default(),
                }
            });
            reports.push(SourceReport {
                path: path.display().to_string(),
                kind: state.kind,
                error: state.problem.clone(),
                problems: state.parsed.problems.clone(),
                servers: servers.collect(),
            });
        }
        reports
    }
}

impl Files {
    /// What the files would say if one server were written as the API would.
    pub fn with_server(
        &self,
        loaded: &Loaded,
        name: &str,
        spec: &ServerSpec,
    ) -> Result<Loaded, SourceError> {
        let source = loaded
            .merged
            .get(name)
            .map_or_else(|| self.mcp(), |e| e.source.clone());
        let base = loaded
            .files
            .get(&source.path)
            .map(|state| state.good.to_vec());
        let text = String::from_utf8(base.unwrap_or_default()).unwrap_or_default();
        let unusable = |reason: String| SourceError::Unusable {
            path: source.path.clone(),
            reason,
        };
        let text = self
            .apply(&source, name, &[Edit::Set(spec)], text)
            .map_err(|error| unusable(error.to_string()))?
            .unwrap_or_default();
        self.with_file(loaded, &source, &text)
            .map_err(|problem| unusable(problem.to_string()))
    }
}
