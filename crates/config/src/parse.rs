//! Parses a whole file: each server by itself, so that an invalid one does not
//! affect the others (SPEC B3).

use indexmap::IndexMap;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::definition::{self, DefinitionSource};
use super::problem::Problem;
use super::spec::{ServerName, ServerSpec};
use super::tree::{self, LineIndex, repeated};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `.mcp.json`.
    Mcp,
    /// `.kode.json`, which holds much else, and servers per project
    /// directory.
    Kode,
}

/// A definition, or all its problems.
pub type Definition = Result<(ServerName, ServerSpec), Vec<Problem>>;

/// Definitions by the key they stand under, in the order of the file.
pub type ServerDefinitions = IndexMap<String, Definition>;

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFile {
    pub servers: ServerDefinitions,
    /// Servers for one project directory, by that directory; Kode only.
    pub projects: IndexMap<String, ServerDefinitions>,
    /// Problems of no server in particular; they stop none.
    pub problems: Vec<Problem>,
}

const SERVERS: &str = "mcpServers";
const PROJECTS: &str = "projects";

/// Reads a file. Fails only if the file is unusable as a whole: not JSON, or
/// without a usable section for servers. The caller then keeps the last good
/// content.
pub fn parse_file(text: &str, dialect: Dialect) -> Result<ServerFile, Problem> {
    let text = tree::without_bom(text);
    let root = &tree::object(text)?;
    let reader = FileReader {
        places: LineIndex::new(text),
    };
    let mut parsed = ServerFile {
        servers: reader.section(root, "")?,
        ..ServerFile::default()
    };
    match dialect {
        Dialect::Mcp => parsed.problems.extend(reader.foreign_key(root)),
        Dialect::Kode => reader.projects(root, &mut parsed),
    }
    Ok(parsed)
}

struct FileReader<'t> {
    places: LineIndex<'t>,
}

impl FileReader<'_> {
    /// The `mcpServers` of an object; a missing section counts as empty.
    fn section(&self, parent: &Object<'_>, path: &str) -> Result<ServerDefinitions, Problem> {
        let field = format!("{path}{SERVERS}");
        if let Some((_, offset)) = repeated(parent).iter().find(|(name, _)| *name == SERVERS) {
            return Err(self.places.twice(&field, *offset));
        }
        match parent.get(SERVERS).map(|member| &member.value) {
            None | Some(Value::NullKeyword(_)) => Ok(ServerDefinitions::new()),
            Some(Value::Object(section)) => Ok(self.servers(section)),
            Some(other) => Err(self
                .places
                .wrong_kind(&field, "an object of servers", other)),
        }
    }

    fn servers(&self, section: &Object<'_>) -> ServerDefinitions {
        let twice = repeated(section);
        let mut servers = ServerDefinitions::with_capacity(section.properties.len());
        for member in &section.properties {
            let key = member.name.as_str();
            if servers.contains_key(key) {
                continue;
            }
            let definition = match twice.iter().find(|(name, _)| *name == key) {
                Some((_, offset)) => {
                    let message = "a server of this name is given twice; keep one";
                    Err(vec![self.places.problem("name", message, *offset)])
                }
                None => self.server(key, &member.value, member.start()),
            };
            let named = definition.map_err(|problems| {
                let of_server = |problem: Problem| problem.of_server(key);
                problems.into_iter().map(of_server).collect()
            });
            servers.insert(key.to_owned(), named);
        }
        servers
    }

    fn server(&self, key: &str, value: &Value<'_>, offset: usize) -> Definition {
        let name = ServerName::parse(key)
            .map_err(|message| vec![self.places.problem("name", message, offset)]);
        let spec = match value {
            Value::Object(object) => definition::read(object, &self.places, DefinitionSource::File),
            other => Err(vec![self.places.wrong_kind("", "an object", other)]),
        };
        match (name, spec) {
            (Ok(name), spec) => Ok((name, spec?)),
            (Err(problems), Ok(_)) => Err(problems),
            (Err(problems), Err(more)) => Err([problems, more].concat()),
        }
    }

    /// Servers under another client's key are not read; without this problem
    /// the user would see no reason why they are missing.
    fn foreign_key(&self, root: &Object<'_>) -> Option<Problem> {
        if root.get(SERVERS).is_some() {
            return None;
        }
        let other = ["servers", "mcp", "mcp_servers", "mcpservers"]
            .into_iter()
            .find_map(|key| root.get(key))?;
        let message = format!("is not read; put servers under {SERVERS:?}");
        let key = other.name.as_str();
        Some(self.places.problem(key, message, other.start()))
    }

    /// An invalid project section does not stop the rest of a file that
    /// another tool owns.
    fn projects(&self, root: &Object<'_>, parsed: &mut ServerFile) {
        let Some(projects) = root.get_object(PROJECTS) else {
            return;
        };
        for member in &projects.properties {
            let directory = member.name.as_str();
            let Value::Object(project) = &member.value else {
                continue;
            };
            match self.section(project, &format!("{PROJECTS}[{directory:?}].")) {
                Ok(servers) if servers.is_empty() => {}
                Ok(servers) => {
                    parsed.projects.insert(directory.to_owned(), servers);
                }
                Err(problem) => parsed.problems.push(problem),
            }
        }
    }
}

#[cfg(test)]
mod tests;
