//! Log messages about the files: each problem once, when it is new.

use std::sync::Arc;

use super::Desired;
use super::sources::LoadedSources;
use config::layers::MergedServer;

/// Above this number, names are counted instead of listed.
const NAMES: usize = 10;

/// Logs new problems and newly shadowed definitions; repeats none.
pub(super) fn files(loaded: &LoadedSources, before: &LoadedSources) {
    for (path, state) in &loaded.files {
        let old = before.files.get(path);
        let file = path.display();
        let old_problem = old.and_then(|old| old.problem.as_ref());
        match &state.problem {
            Some(problem) if old_problem != Some(problem) => {
                tracing::error!(%file, "{file} cannot be used, its last good state stays: {problem}");
            }
            None if old_problem.is_some() => tracing::info!(%file, "{file} can be used again"),
            _ => {}
        }
        if old.is_some_and(|old| Arc::ptr_eq(&old.parsed, &state.parsed)) {
            continue;
        }
        for problem in &state.parsed.problems {
            tracing::warn!(%file, "{file}: {problem}");
        }
    }
    for (name, effective) in &loaded.merged {
        if before.merged.get(name) != Some(effective) {
            tell_one(name, effective);
        }
    }
}

fn tell_one(name: &str, effective: &MergedServer) {
    let file = effective.source.path.display();
    if let Err(problems) = &effective.definition {
        for problem in problems {
            tracing::error!(server = ?name, "{file}: {problem}");
        }
    }
    for hidden in &effective.shadows {
        let (hidden, by) = (hidden.describe(), effective.source.describe());
        tracing::info!(server = ?name, "server {name:?} of {hidden} is shadowed by {by}");
    }
}

/// Logs the changed servers, for the person who saved a file.
pub(super) fn servers(before: &Desired, after: &Desired) {
    let mut said = Vec::new();
    let all = |what: &str, names: Vec<&Arc<str>>| {
        let more = names.len().saturating_sub(NAMES);
        let shown: Vec<String> = names.iter().take(NAMES).map(|n| format!("{n:?}")).collect();
        match (shown.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(format!("{what} {}", shown.join(", "))),
            (false, more) => Some(format!("{what} {} and {more} more", shown.join(", "))),
        }
    };
    let new = after.keys().filter(|name| !before.contains_key(*name));
    said.extend(all("added", new.collect()));
    let other = |name: &&Arc<str>| match (before.get(*name), after.get(*name)) {
        (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
        _ => false,
    };
    said.extend(all("changed", after.keys().filter(other).collect()));
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    said.extend(all("removed", gone.collect()));
    if said.is_empty() {
        tracing::debug!("the files were read: no server changed");
    } else {
        tracing::info!("the files were read: {}", said.join("; "));
    }
}
