//! The targets of records (SPEC E2): the servers and tools that exist, those
//! that an owner may bind, and those of a record that are missing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use super::RecordsApi;
use crate::error::FieldProblem;
use config::filters::Filter;
use config::{ServerName, distance, typo_distance};
use fleet::registry::Desired;
use gateway::Gateway;
use gateway::control;
use store::{ADMIN, ExposedServers};

/// The most names that an error suggests.
const NEAREST: usize = 3;

/// The most names that are compared if none is similar, and a penalty above the
/// distance of any two names.
const COMPARED: usize = 1_000;
const FAR: usize = 64;

/// The advice to create a record nevertheless.
const ANYWAY: &str = "set allow_missing: true to take it anyway";

/// Why a record's tool is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Missing {
    /// No server has the name.
    Server,
    /// The server does not list the tool.
    Tool,
    /// The record's owner is a user, and the server is not open to users.
    Closed,
}

/// The servers and tools as they are during one request.
pub(crate) struct Targets {
    gateway: Arc<Gateway>,
    desired: Arc<Desired>,
    /// The tools of each server that was looked up; `None` while it is not
    /// connected.
    tools: HashMap<String, Option<HashSet<String>>>,
}

impl RecordsApi {
    pub(super) fn targets(&self) -> Targets {
        Targets {
            gateway: self.gateway.clone(),
            desired: self.desired.borrow().clone(),
            tools: HashMap::new(),
        }
    }
}

impl Targets {
    /// Only the admin may bind Portway's own tools. A server that merely has
    /// their name is like any other.
    fn is_own(&self, server: &str) -> bool {
        server == control::NAME && !self.desired.contains_key(server)
    }

    fn exists(&self, server: &str) -> bool {
        self.desired.contains_key(server) || self.gateway.is_own(server)
    }

    pub(super) fn may_use(&self, owner: &str, server: &str) -> bool {
        if self.is_own(server) {
            return owner == ADMIN;
        }
        self.gateway.users.may_use(owner, server)
    }

    /// The servers that an owner may bind, by name.
    pub(super) fn servers(&self, owner: &str) -> Vec<Arc<str>> {
        let own: Arc<str> = control::NAME.into();
        let own = (self.is_own(&own) && self.gateway.is_own(&own)).then_some(own);
        let mut servers: Vec<Arc<str>> = self.desired.keys().cloned().chain(own).collect();
        servers.retain(|server| self.may_use(owner, server));
        servers.sort_unstable();
        servers
    }

    fn tools(&mut self, server: &str) -> Option<&HashSet<String>> {
        let gateway = &self.gateway;
        let known = self.tools.entry(server.to_owned()).or_insert_with(|| {
            let catalog = gateway.catalog_of(server)?;
            Some(catalog.tools.iter().map(|item| item.key.clone()).collect())
        });
        known.as_ref()
    }

    /// Whether a record's target is gone. A server that is not connected may
    /// still have the tool.
    pub(super) fn missing(&mut self, owner: &str, server: &str, tool: &str) -> Option<Missing> {
        if !self.may_use(owner, server) {
            return Some(Missing::Closed);
        }
        if !self.exists(server) {
            return Some(Missing::Server);
        }
        let tools = self.tools(server)?;
        (!tools.contains(tool)).then_some(Missing::Tool)
    }

    /// The problems of a new target of a record.
    pub(super) fn check(
        &mut self,
        owner: &str,
        (server, tool): (&str, &str),
        allow_missing: bool,
    ) -> Option<FieldProblem> {
        let problem = |message| Some(FieldProblem::new("server", message));
        if let Some(message) = self.closed(owner, server) {
            return problem(message);
        }
        if allow_missing {
            return None;
        }
        if let Some(message) = self.unknown(owner, server) {
            return problem(message);
        }
        let Some(tools) = self.tools(server) else {
            return problem(format!(
                "server {server:?} is not connected, so its tools are not known ({ANYWAY})"
            ));
        };
        if tools.contains(tool) {
            return None;
        }
        let near = nearest(tool, tools.iter().map(String::as_str));
        let message = format!("server {server:?} has no tool {tool:?}{near} ({ANYWAY})");
        Some(FieldProblem::new("tool", message))
    }

    /// The problems of the servers that an entry will expose, and of its
    /// filter: a user's filter must not name a server that is closed to users.
    /// Other patterns match only open servers.
    pub(super) fn check_entry(
        &self,
        owner: &str,
        exposes: Option<&ExposedServers>,
        filter: Option<&Filter>,
        allow_missing: bool,
    ) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let lists = exposes.map(|all| [("resources", &all.resources), ("prompts", &all.prompts)]);
        for (name, servers) in lists.into_iter().flatten() {
            for (at, server) in servers.iter().enumerate() {
                let unknown = || (!allow_missing).then(|| self.unknown(owner, server))?;
                if let Some(message) = self.closed(owner, server).or_else(unknown) {
                    let field = format!("exposes.{name}[{at}]");
                    problems.push(FieldProblem::new(field, message));
                }
            }
        }
        for (at, pattern) in filter.iter().flat_map(|it| it.allow.iter().enumerate()) {
            if let Some((server, _)) = pattern.split_once(':')
                && !server.contains(['*', '?'])
                && let Some(message) = self.closed(owner, server)
            {
                problems.push(FieldProblem::new(format!("filter.allow[{at}]"), message));
            }
        }
        problems
    }

    /// The message is the same for a server that does not exist: a user must
    /// not learn which other servers exist.
    pub(super) fn closed(&self, owner: &str, server: &str) -> Option<String> {
        if self.may_use(owner, server) {
            return None;
        }
        if self.is_own(server) {
            let text = "is Portway itself: only the admin can make tools of its own management";
            return Some(text.to_owned());
        }
        let near = self.near(owner, server);
        Some(format!(
            "{server:?} is not among the servers that users may bind{near} \
             (GET /api/v1/catalog lists those)"
        ))
    }

    fn unknown(&self, owner: &str, server: &str) -> Option<String> {
        if self.exists(server) {
            return None;
        }
        let near = self.near(owner, server);
        Some(format!("there is no server {server:?}{near} ({ANYWAY})"))
    }

    fn near(&self, owner: &str, server: &str) -> String {
        // Servers with invalid names are left out until they are repaired.
        let mut servers = self.servers(owner);
        servers.retain(|server| ServerName::parse(server).is_ok());
        nearest(server, servers.iter().map(|server| &**server))
    }
}

/// `; did you mean "a" or "b"?`. If no name is similar, the closest are listed
/// nevertheless: `; the nearest are "a" or "b"`.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let first = |mut near: Vec<(usize, &str)>| {
        near.sort_unstable();
        let names = near.iter().take(NEAREST);
        let names: Vec<String> = names.map(|(_, name)| format!("{name:?}")).collect();
        names.join(" or ")
    };
    let lower = word.to_lowercase();
    let words = words_of(word);
    let alike = |known: &'a str| {
        let within = || {
            let other = known.to_lowercase();
            let related = other.contains(&lower) || lower.contains(&other);
            related.then(|| other.len().abs_diff(lower.len()))
        };
        // `file_read` for `read_file`.
        let reordered = || (words.len() > 1 && words_of(known) == words).then_some(1);
        let distance = typo_distance(word, known)
            .or_else(reordered)
            .or_else(within)?;
        Some((distance, known))
    };
    let near = first(known.iter().filter_map(|known| alike(known)).collect());
    if !near.is_empty() {
        return format!("; did you mean {near}?");
    }
    known.truncate(COMPARED);
    // A name that shares a word is nearer than one that shares letters.
    let apart = |known: &&'a str| {
        let shared = words_of(known).iter().any(|one| words.contains(one));
        let apart = distance(word, known);
        (if shared { apart } else { apart + FAR }, *known)
    };
    let near = first(known.iter().map(apart).collect());
    if near.is_empty() {
        return near;
    }
    format!("; the nearest are {near}")
}

/// The words of a name, in alphabetical order.
fn words_of(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut small = false;
    for c in name.chars() {
        if small && c.is_uppercase() {
            spaced.push(' ');
        }
        small = c.is_lowercase();
        spaced.extend(c.to_lowercase());
    }
    let words = spaced.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn e2_the_nearest_names_are_proposed_first() {
        let known = ["files", "file", "filesystem", "git", "数据库"];
        let near = |word: &str| nearest(word, known.into_iter());
        assert_eq!(near("fils"), r#"; did you mean "file" or "files"?"#);
        assert_eq!(
            near("FILES"),
            r#"; did you mean "files" or "file" or "filesystem"?"#
        );
        assert_eq!(near("system"), r#"; did you mean "filesystem"?"#);
        assert_eq!(
            near("zzzz"),
            r#"; the nearest are "file" or "git" or "数据库""#
        );
        assert_eq!(nearest("x", [].into_iter()), "");
    }
    #[test]
    fn e2_words_in_another_order_are_found() {
        let known = ["read_file", "write_file", "listFiles", "echo"];
        let near = |word: &str| nearest(word, known.into_iter());
        assert_eq!(near("file_read"), r#"; did you mean "read_file"?"#);
        assert_eq!(near("FileRead"), r#"; did you mean "read_file"?"#);
        assert_eq!(near("files-list"), r#"; did you mean "listFiles"?"#);
        assert_eq!(
            near("delete_file"),
            r#"; the nearest are "write_file" or "read_file" or "listFiles""#
        );
    }
}
