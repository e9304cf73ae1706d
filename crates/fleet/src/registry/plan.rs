//! A dry run: the effects of a configuration change.

use std::path::Path;

use serde::Serialize;

use super::DesiredServer;
use super::sources::LoadedSources;
use config::{Problem, ServerSpec};

/// The servers, grouped by the effect of the change on them.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfigPlan {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Servers whose change requires a restart.
    pub restarted: Vec<String>,
    /// Unchanged, or changed in a way that needs no restart.
    pub kept: Vec<String>,
    pub problems: Vec<FileProblem>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    pub file: String,
    #[serde(flatten)]
    pub problem: Problem,
}

impl ConfigPlan {
    /// The plan for the change from one state of the files to another.
    pub fn between(old: &LoadedSources, new: &LoadedSources) -> ConfigPlan {
        let mut plan = ConfigPlan::default();
        for (path, state) in &new.files {
            plan.blame(path, state.problem.iter().chain(&state.parsed.problems));
        }
        for (name, effective) in &new.merged {
            if let Err(problems) = &effective.definition {
                plan.blame(&effective.source.path, problems);
            }
            let before = old
                .merged
                .get(name)
                .map(|before| before.definition.as_ref());
            let after = effective.definition.as_ref();
            let list = match (before, after) {
                (None, _) => &mut plan.added,
                (Some(Ok((_, old))), Ok((_, new))) if undisturbed(old, new) => &mut plan.kept,
                (Some(Err(old)), Err(new)) if old == new => &mut plan.kept,
                _ => &mut plan.restarted,
            };
            list.push(name.clone());
        }
        let gone = old
            .merged
            .keys()
            .filter(|name| !new.merged.contains_key(*name));
        plan.removed = gone.cloned().collect();
        plan
    }

    fn blame<'p>(&mut self, path: &Path, problems: impl IntoIterator<Item = &'p Problem>) {
        let file = path.display().to_string();
        self.problems
            .extend(problems.into_iter().map(|problem| FileProblem {
                file: file.clone(),
                problem: problem.clone(),
            }));
    }
}

fn undisturbed(old: &ServerSpec, new: &ServerSpec) -> bool {
    old.enabled == new.enabled && new.same_connection(old)
}

impl DesiredServer {
    /// Whether a connection made for `old` also serves this desired state.
    pub fn keeps(&self, old: &DesiredServer) -> bool {
        self.run == old.run
            && self.restarts == old.restarts
            && match (&self.spec, &old.spec) {
                (Ok(new), Ok(old)) => new.same_connection(old),
                (Err(new), Err(old)) => new == old,
                _ => false,
            }
    }
}
