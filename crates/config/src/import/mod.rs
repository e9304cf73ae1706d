//! Imports other clients' files as definitions of Portway (SPEC B8). Each
//! client spells servers in its own way; fields without a counterpart are
//! reported and left out. Pure: the caller finds the files.

use std::rc::Rc;

use indexmap::IndexMap;
use jsonc_parser::ast::{Object, Value as Node};
use serde_json::Value;

use super::problem::Problem;
use super::spec::ServerSpec;
use super::tree::{self, LineIndex, repeated};
use draft::ImportDraft;

mod claude;
mod codex;
mod cursor;
mod detect;
mod draft;
mod gemini;
mod itself;
mod opencode;
mod rewrite;
#[cfg(test)]
mod tests;
pub(super) mod toml;
mod vscode;

pub use detect::detect;
pub use itself::{is_endpoint, is_portway};

/// The clients whose files can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientApp {
    ClaudeDesktop,
    ClaudeCode,
    VsCode,
    Cursor,
    OpenCode,
    Codex,
    Gemini,
}

impl ClientApp {
    pub const ALL: [ClientApp; 7] = [
        ClientApp::ClaudeDesktop,
        ClientApp::ClaudeCode,
        ClientApp::VsCode,
        ClientApp::Cursor,
        ClientApp::OpenCode,
        ClientApp::Codex,
        ClientApp::Gemini,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The product name.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            ClientApp::ClaudeDesktop => ("claude-desktop", "Claude Desktop"),
            ClientApp::ClaudeCode => ("claude-code", "Claude Code"),
            ClientApp::VsCode => ("vscode", "VS Code"),
            ClientApp::Cursor => ("cursor", "Cursor"),
            ClientApp::OpenCode => ("opencode", "opencode"),
            ClientApp::Codex => ("codex", "Codex"),
            ClientApp::Gemini => ("gemini", "Gemini CLI"),
        }
    }
}

/// The directories that some files refer to.
#[derive(Clone, Copy, Debug)]
pub struct ImportDirs<'t> {
    pub home: Option<&'t str>,
    pub project: &'t str,
}

/// The servers of one file, in the client's own format.
pub struct ImportFile {
    servers: IndexMap<String, RawServer>,
    context: Rc<FileContext>,
}

#[derive(Clone)]
struct RawServer {
    value: Value,
    /// It is unknown which of the two is meant.
    twice: bool,
}

/// Parts of a file beside its servers that affect them.
#[derive(Default)]
struct FileContext {
    /// VS Code: values that it asks the user for.
    inputs: Vec<Value>,
    /// Gemini CLI: excluded servers, and the only allowed ones.
    excluded: Vec<String>,
    allowed: Option<Vec<String>>,
}

/// One server of a client.
#[derive(Debug)]
pub struct ImportedServer {
    pub name: String,
    pub spec: Result<ServerSpec, Vec<Problem>>,
    /// Fields that were changed or left out; no secrets.
    pub notes: Vec<String>,
    /// The index of the file that contains it.
    pub file: usize,
}

/// Reads one file of a client.
pub fn parse(
    client: ClientApp,
    text: &str,
    around: &ImportDirs<'_>,
) -> Result<ImportFile, Problem> {
    let text = tree::without_bom(text);
    if client == ClientApp::Codex {
        return codex::parse(text);
    }
    let mut parsed = ImportFile::new(FileContext::default());
    if text.trim().is_empty() {
        return Ok(parsed);
    }
    let root = &tree::object(text)?;
    let places = LineIndex::new(text);
    match client {
        ClientApp::VsCode => vscode::context(root, &mut parsed),
        ClientApp::Gemini => gemini::context(root, &mut parsed),
        _ => {}
    }
    for path in sections(client, root, around) {
        if let Some(section) = section(root, &path, &places)? {
            parsed.gather(section);
        }
    }
    Ok(parsed)
}

/// The servers of one client's files, translated; later files win.
pub fn merge(
    client: ClientApp,
    files: Vec<ImportFile>,
    around: &ImportDirs<'_>,
) -> Vec<ImportedServer> {
    let mut merged: IndexMap<String, (RawServer, Rc<FileContext>, usize)> = IndexMap::new();
    for (file, parsed) in files.into_iter().enumerate() {
        for (name, mut raw) in parsed.servers {
            let before = merged.get(&name);
            // Only opencode merges the definitions of one server.
            if let (ClientApp::OpenCode, Some((before, ..))) = (client, before) {
                let mut value = before.value.clone();
                deep_merge(&mut value, raw.value);
                raw.value = value;
            }
            merged.insert(name, (raw, parsed.context.clone(), file));
        }
    }
    merged
        .into_iter()
        .map(|(name, (raw, context, file))| ImportedServer {
            file,
            ..translate(client, name, raw, &context, around)
        })
        .collect()
}

fn translate(
    client: ClientApp,
    name: String,
    raw: RawServer,
    context: &FileContext,
    around: &ImportDirs<'_>,
) -> ImportedServer {
    let Value::Object(fields) = raw.value else {
        let problem = Problem::new("", "is not an object");
        return ImportedServer::failed(name, problem);
    };
    if raw.twice {
        let problem = Problem::new("name", "a server of this name is given twice; keep one");
        return ImportedServer::failed(name, problem);
    }
    let mut draft = ImportDraft::new(name, fields);
    match client {
        ClientApp::ClaudeDesktop => claude::desktop(&mut draft),
        ClientApp::ClaudeCode => claude::code(&mut draft),
        ClientApp::VsCode => vscode::server(&mut draft, context, around),
        ClientApp::Cursor => cursor::server(&mut draft, around),
        ClientApp::OpenCode => opencode::server(&mut draft),
        ClientApp::Codex => codex::server(&mut draft),
        ClientApp::Gemini => gemini::server(&mut draft, context),
    }
    draft.finish(client)
}

impl ImportedServer {
    fn failed(name: String, problem: Problem) -> ImportedServer {
        ImportedServer {
            name,
            spec: Err(vec![problem]),
            notes: Vec::new(),
            file: 0,
        }
    }
}

impl ImportFile {
    fn new(context: FileContext) -> ImportFile {
        ImportFile {
            servers: IndexMap::new(),
            context: Rc::new(context),
        }
    }

    fn gather(&mut self, section: &Object<'_>) {
        let twice = repeated(section);
        for member in &section.properties {
            let name = member.name.as_str();
            let raw = RawServer {
                value: Value::from(member.value.clone()),
                twice: twice.iter().any(|(known, _)| *known == name),
            };
            self.servers.insert(name.to_owned(), raw);
        }
    }
}

/// The paths in a client's file that contain servers; later ones win.
fn sections<'p>(
    client: ClientApp,
    root: &Object<'_>,
    around: &ImportDirs<'p>,
) -> Vec<Vec<&'p str>> {
    match client {
        ClientApp::ClaudeDesktop | ClientApp::Cursor | ClientApp::Gemini => {
            vec![vec!["mcpServers"]]
        }
        ClientApp::ClaudeCode => vec![
            vec!["mcpServers"],
            vec!["projects", around.project, "mcpServers"],
        ],
        ClientApp::VsCode => match root.get("servers") {
            Some(_) => vec![vec!["servers"]],
            // The older location, in the editor's settings.
            None => vec![vec!["mcp", "servers"]],
        },
        ClientApp::OpenCode => vec![opencode::section(root)],
        ClientApp::Codex => Vec::new(),
    }
}

fn section<'o, 't>(
    root: &'o Object<'t>,
    path: &[&str],
    places: &LineIndex<'_>,
) -> Result<Option<&'o Object<'t>>, Problem> {
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let field = || path[..=depth].join(".");
        if let Some((_, offset)) = repeated(object).iter().find(|(name, _)| name == key) {
            return Err(places.twice(&field(), *offset));
        }
        object = match object.get(key).map(|member| &member.value) {
            None | Some(Node::NullKeyword(_)) => return Ok(None),
            Some(Node::Object(inner)) => inner,
            Some(other) => return Err(places.wrong_kind(&field(), "an object", other)),
        };
    }
    Ok(Some(object))
}

fn deep_merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(known) => deep_merge(known, value),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}
