//! Other clients' files, read into definitions of ours (SPEC B8). Each client
//! spells servers in its own way; what has no counterpart here is said and
//! left out. Pure: the caller finds the files.

use std::rc::Rc;

use indexmap::IndexMap;
use jsonc_parser::ast::{Object, Value as Node};
use serde_json::Value;

use super::problem::Problem;
use super::spec::ServerSpec;
use super::tree::{self, Places, kind_of, repeated};
use draft::Draft;

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

/// Whose files are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    VsCode,
    Cursor,
    OpenCode,
    Codex,
    Gemini,
}

impl Client {
    pub const ALL: [Client; 7] = [
        Client::ClaudeDesktop,
        Client::ClaudeCode,
        Client::VsCode,
        Client::Cursor,
        Client::OpenCode,
        Client::Codex,
        Client::Gemini,
    ];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "claude-desktop",
            Client::ClaudeCode => "claude-code",
            Client::VsCode => "vscode",
            Client::Cursor => "cursor",
            Client::OpenCode => "opencode",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
        }
    }

    /// As it calls itself.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::VsCode => "VS Code",
            Client::Cursor => "Cursor",
            Client::OpenCode => "opencode",
            Client::Codex => "Codex",
            Client::Gemini => "Gemini CLI",
        }
    }
}

/// What some files mean by "here" and "home".
#[derive(Clone, Copy, Debug)]
pub struct Around<'t> {
    pub home: Option<&'t str>,
    pub project: &'t str,
}

/// What one file says, not yet in our words.
pub struct Parsed {
    servers: IndexMap<String, Raw>,
    context: Rc<Context>,
}

#[derive(Clone)]
struct Raw {
    value: Value,
    /// Which of the two is meant nobody can know.
    twice: bool,
}

/// What stands beside the servers of a file and bears on them.
#[derive(Default)]
struct Context {
    /// VS Code: what it asks the person for.
    inputs: Vec<Value>,
    /// Gemini CLI: servers that are not to run, and those that alone may.
    excluded: Vec<String>,
    allowed: Option<Vec<String>>,
}

/// One server of a client.
#[derive(Debug)]
pub struct Found {
    pub name: String,
    pub spec: Result<ServerSpec, Vec<Problem>>,
    /// What was changed or left out on the way; no secrets.
    pub notes: Vec<String>,
    /// Which of the files has it, by its number.
    pub file: usize,
}

/// Reads one file of a client.
pub fn parse(client: Client, text: &str, around: &Around<'_>) -> Result<Parsed, Problem> {
    let text = tree::without_bom(text);
    if client == Client::Codex {
        return codex::parse(text);
    }
    let mut parsed = Parsed::new(Context::default());
    if text.trim().is_empty() {
        return Ok(parsed);
    }
    let root = tree::parse(text)?;
    let Node::Object(root) = &root else {
        let message = format!("must be an object, not {}", kind_of(&root));
        return Err(Problem::new("", message).at((1, 1)));
    };
    let places = Places::new(text);
    match client {
        Client::VsCode => vscode::context(root, &mut parsed),
        Client::Gemini => gemini::context(root, &mut parsed),
        _ => {}
    }
    for path in sections(client, root, around) {
        if let Some(section) = section(root, &path, &places)? {
            parsed.gather(section);
        }
    }
    Ok(parsed)
}

/// The files of one client, later ones winning, in our words.
pub fn merge(client: Client, files: Vec<Parsed>, around: &Around<'_>) -> Vec<Found> {
    let mut merged: IndexMap<String, (Raw, Rc<Context>, usize)> = IndexMap::new();
    for (file, parsed) in files.into_iter().enumerate() {
        for (name, mut raw) in parsed.servers {
            let before = merged.get(&name);
            // This one alone merges what its files say about one server.
            if let (Client::OpenCode, Some((before, ..))) = (client, before) {
                let mut value = before.value.clone();
                deep_merge(&mut value, raw.value);
                raw.value = value;
            }
            merged.insert(name, (raw, parsed.context.clone(), file));
        }
    }
    merged
        .into_iter()
        .map(|(name, (raw, context, file))| Found {
            file,
            ..translate(client, name, raw, &context, around)
        })
        .collect()
}

fn translate(
    client: Client,
    name: String,
    raw: Raw,
    context: &Context,
    around: &Around<'_>,
) -> Found {
    let mut draft = match raw.value {
        Value::Object(fields) => Draft::new(&name, fields),
        _ => {
            let problem = Problem::new("", "is not an object");
            return Found::failed(name, problem);
        }
    };
    if raw.twice {
        let problem = Problem::new("name", "a server of this name is given twice; keep one");
        return Found::failed(name, problem);
    }
    match client {
        Client::ClaudeDesktop => claude::desktop(&mut draft),
        Client::ClaudeCode => claude::code(&mut draft),
        Client::VsCode => vscode::server(&mut draft, context, around),
        Client::Cursor => cursor::server(&mut draft, around),
        Client::OpenCode => opencode::server(&mut draft),
        Client::Codex => codex::server(&mut draft),
        Client::Gemini => gemini::server(&mut draft, context),
    }
    draft.finish(client, name)
}

impl Found {
    fn failed(name: String, problem: Problem) -> Found {
        Found {
            name,
            spec: Err(vec![problem]),
            notes: Vec::new(),
            file: 0,
        }
    }
}

impl Parsed {
    fn new(context: Context) -> Parsed {
        Parsed {
            servers: IndexMap::new(),
            context: Rc::new(context),
        }
    }

    fn gather(&mut self, section: &Object<'_>) {
        let twice = repeated(section);
        for member in &section.properties {
            let name = member.name.as_str();
            let raw = Raw {
                value: Value::from(member.value.clone()),
                twice: twice.iter().any(|(known, _)| *known == name),
            };
            self.servers.insert(name.to_owned(), raw);
        }
    }
}

/// The places in a client's file where servers stand, later ones winning.
fn sections<'p>(client: Client, root: &Object<'_>, around: &Around<'p>) -> Vec<Vec<&'p str>> {
    match client {
        Client::ClaudeDesktop | Client::Cursor | Client::Gemini => vec![vec!["mcpServers"]],
        Client::ClaudeCode => vec![
            vec!["mcpServers"],
            vec!["projects", around.project, "mcpServers"],
        ],
        Client::VsCode => match root.get("servers") {
            Some(_) => vec![vec!["servers"]],
            // As it once stood in the editor's settings.
            None => vec![vec!["mcp", "servers"]],
        },
        Client::OpenCode => vec![opencode::section(root)],
        Client::Codex => Vec::new(),
    }
}

fn section<'o, 't>(
    root: &'o Object<'t>,
    path: &[&str],
    places: &Places<'_>,
) -> Result<Option<&'o Object<'t>>, Problem> {
    use jsonc_parser::common::Ranged;

    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let field = || path[..=depth].join(".");
        if let Some((_, offset)) = repeated(object).iter().find(|(name, _)| name == key) {
            let problem = Problem::new(field(), "is given twice; keep one");
            return Err(problem.at(places.of(*offset)));
        }
        object = match object.get(key).map(|member| &member.value) {
            None | Some(Node::NullKeyword(_)) => return Ok(None),
            Some(Node::Object(inner)) => inner,
            Some(other) => {
                let message = format!("must be an object, not {}", kind_of(other));
                return Err(Problem::new(field(), message).at(places.of(other.start())));
            }
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
