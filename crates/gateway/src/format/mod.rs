//! Tools and their results in the formats of vendors' APIs (SPEC D10): whatever
//! an API would refuse is rewritten. Pure: made of a tool or a result as MCP has
//! them, and nothing else.

pub mod arguments;
mod content;
pub mod keys;
mod result;
mod schema;
#[cfg(test)]
mod tests;
mod top;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use wire::meta::set_meta_member;
use wire::object::{member, pick, text};

pub use result::{ToolOutcome, answer};
pub use schema::{Parameters, parameters};

/// The format of a list or an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    #[default]
    Mcp,
    OpenAi,
    Anthropic,
    Copilot,
}

impl Format {
    pub const ALL: [Format; 4] = [
        Format::Mcp,
        Format::OpenAi,
        Format::Anthropic,
        Format::Copilot,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Mcp => "mcp",
            Format::OpenAi => "openai",
            Format::Anthropic => "anthropic",
            Format::Copilot => "copilot",
        }
    }

    pub fn find(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Characters of a function's description. Azure and the older models of
/// OpenAI refuse the whole request for a longer one.
const DESCRIPTION: usize = 1024;

/// A tool of a list.
#[derive(Clone, Copy)]
pub struct ListedTool<'a> {
    /// Its name in the format.
    pub name: &'a str,
    /// As MCP lists it.
    pub tool: &'a RawValue,
    /// Its server and its name there, where the reader may know them.
    pub origin: Option<(&'a str, &'a str)>,
}

/// One tool in the form that a vendor's API accepts.
pub fn tool(format: Format, shown: ListedTool<'_>) -> Box<RawValue> {
    if format == Format::Mcp {
        return placed(shown);
    }
    let schema = member(shown.tool, "inputSchema");
    let mut parameters = parameters(schema);
    if format == Format::Anthropic {
        keys::fit(&mut parameters.schema);
    }
    let Parameters { schema, note } = parameters;
    let limit = match format {
        Format::OpenAi => DESCRIPTION,
        _ => usize::MAX,
    };
    let (name, description) = (shown.name, described(shown, note, limit));
    let value = match format {
        Format::Anthropic => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        Format::Copilot => copilot(shown, &description, schema),
        Format::Mcp | Format::OpenAi => json!({
            "type": "function",
            "function": {"name": name, "description": description, "parameters": schema},
        }),
    };
    to_raw_value(&value).expect("values serialise into memory")
}

/// The MCP tool with its origin.
fn placed(shown: ListedTool<'_>) -> Box<RawValue> {
    let Some((server, own)) = shown.origin else {
        return shown.tool.to_owned();
    };
    let quoted = |text: &str| to_raw_value(text).expect("text serialises into memory");
    let tool = set_meta_member(shown.tool, "portway/server", &quoted(server));
    set_meta_member(&tool, "portway/tool", &quoted(own))
}

fn copilot(shown: ListedTool<'_>, description: &str, schema: Map<String, Value>) -> Value {
    let [title, annotations] = pick(shown.tool, ["title", "annotations"]);
    let mut metadata = Map::new();
    if let Some((server, own)) = shown.origin {
        metadata.insert("server".into(), server.into());
        metadata.insert("tool".into(), own.into());
    }
    if let Some(title) = title.and_then(text) {
        metadata.insert("title".into(), title.into());
    }
    let annotations: Option<Map<String, Value>> =
        annotations.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let harmless = annotations
        .as_ref()
        .is_some_and(|hints| hints.get("readOnlyHint") == Some(&Value::Bool(true)));
    if let Some(annotations) = annotations {
        metadata.insert("annotations".into(), annotations.into());
    }
    let mut value = json!({
        "name": shown.name,
        "description": description,
        "parameters": schema,
    });
    if harmless {
        value["skipPermission"] = true.into();
    }
    value["metadata"] = metadata.into();
    value
}

/// The description for a model. Never empty: some APIs refuse an empty text, and
/// a model chooses by it.
fn described(shown: ListedTool<'_>, note: Option<String>, limit: usize) -> String {
    let [description, title] = pick(shown.tool, ["description", "title"]);
    let said = [description, title].into_iter().flatten();
    let said = said.filter_map(text).find(|text| !text.trim().is_empty());
    let own = shown.origin.map_or(shown.name, |(_, own)| own);
    let said = said.unwrap_or(own.into());
    match note {
        Some(note) => {
            let room = limit.saturating_sub(note.chars().count() + 1);
            format!("{}\n{note}", cut(&said, room))
        }
        None => cut(&said, limit),
    }
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => {
            let kept = text.chars().take(limit.saturating_sub(1));
            kept.chain(['…']).collect()
        }
    }
}
