//! What a server offers: all pages of all its lists, kept raw.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::upstream::{Call, Connection, UpstreamError};
use crate::wire::code;

const PAGES: usize = 1000;
const ITEMS: usize = 10_000;
const BYTES: usize = 32 << 20;

/// The lists of one server.
#[derive(Debug, Default)]
pub struct Catalog {
    pub tools: Vec<Item>,
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
    pub prompts: Vec<Item>,
    /// What was odd about them, for the server's log.
    pub remarks: Vec<String>,
}

/// One tool, resource, template or prompt, as the server sent it.
#[derive(Debug)]
pub struct Item {
    /// The tool's or prompt's name, the resource's URI or URI template.
    pub key: String,
    pub raw: Box<RawValue>,
}

/// One of the four lists.
struct Kind {
    method: &'static str,
    capability: &'static str,
    member: &'static str,
    key: &'static str,
}

const TOOLS: Kind = Kind {
    method: "tools/list",
    capability: "tools",
    member: "tools",
    key: "name",
};
const RESOURCES: Kind = Kind {
    method: "resources/list",
    capability: "resources",
    member: "resources",
    key: "uri",
};
const TEMPLATES: Kind = Kind {
    method: "resources/templates/list",
    capability: "resources",
    member: "resourceTemplates",
    key: "uriTemplate",
};
const PROMPTS: Kind = Kind {
    method: "prompts/list",
    capability: "prompts",
    member: "prompts",
    key: "name",
};

/// Asks for everything the server says it has. A failing tool list is an
/// error of the server; the other lists may fail alone.
pub async fn list(connection: &Connection, limit: Duration) -> Result<Catalog, UpstreamError> {
    let mut remarks = Vec::new();
    let tools = pages(connection, &TOOLS, limit, &mut remarks)
        .await
        .map_err(|error| match error {
            UpstreamError::Rpc(error) => UpstreamError::Protocol(format!(
                "tools/list failed: {} (code {})",
                error.message, error.code
            )),
            UpstreamError::Timeout { limit } => {
                UpstreamError::Protocol(format!("tools/list: {}", UpstreamError::Timeout { limit }))
            }
            other => other,
        })?;
    let mut catalog = Catalog {
        tools: offerable(connection, tools, &mut remarks),
        ..Catalog::default()
    };
    for (kind, slot) in [
        (&RESOURCES, &mut catalog.resources),
        (&TEMPLATES, &mut catalog.templates),
        (&PROMPTS, &mut catalog.prompts),
    ] {
        match pages(connection, kind, limit, &mut remarks).await {
            Ok(items) => *slot = items,
            Err(UpstreamError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {}
            Err(error @ (UpstreamError::Rpc(_) | UpstreamError::Timeout { .. })) => {
                remarks.push(format!("{} failed: {error}", kind.method));
            }
            Err(error) => return Err(error),
        }
    }
    catalog.remarks = remarks;
    Ok(catalog)
}

/// Leaves out what the protocol forbids a client to call.
fn offerable(connection: &Connection, tools: Vec<Item>, remarks: &mut Vec<String>) -> Vec<Item> {
    let fits = |tool: &Item| match connection.tool_fault(&tool.key) {
        Some(fault) => {
            remarks.push(format!("tool {:?} was left out: {fault}", tool.key));
            false
        }
        None => true,
    };
    tools.into_iter().filter(fits).collect()
}

async fn pages(
    connection: &Connection,
    kind: &Kind,
    limit: Duration,
    remarks: &mut Vec<String>,
) -> Result<Vec<Item>, UpstreamError> {
    if !connection.peer().offers(kind.capability) {
        return Ok(Vec::new());
    }
    let mut list = List::new(kind);
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let params = cursor.as_ref().map(cursor_params).transpose()?;
        let call = Call::new(kind.method, limit).params(params.as_deref());
        let page = connection.background(call).await?;
        cursor = list.add(&page)?;
        if cursor.is_none() || list.full {
            break;
        }
    }
    if cursor.is_some() {
        list.remark("cut short: too many pages or entries".into());
    }
    remarks.append(&mut list.remarks);
    Ok(list.items)
}

fn cursor_params(cursor: &String) -> Result<Box<RawValue>, UpstreamError> {
    serde_json::value::to_raw_value(&serde_json::json!({ "cursor": cursor }))
        .map_err(|error| UpstreamError::Protocol(error.to_string()))
}

/// One list being gathered.
struct List<'a> {
    kind: &'a Kind,
    items: Vec<Item>,
    keys: HashSet<String>,
    cursors: HashSet<String>,
    bytes: usize,
    full: bool,
    remarks: Vec<String>,
}

impl<'a> List<'a> {
    fn new(kind: &'a Kind) -> List<'a> {
        List {
            kind,
            items: Vec::new(),
            keys: HashSet::new(),
            cursors: HashSet::new(),
            bytes: 0,
            full: false,
            remarks: Vec::new(),
        }
    }

    fn remark(&mut self, text: String) {
        // A server with ten thousand bad entries needs one example of each.
        if self.remarks.len() < 20 {
            self.remarks.push(format!("{}: {text}", self.kind.method));
        }
    }

    /// Takes one page; returns the cursor of the next.
    fn add(&mut self, page: &RawValue) -> Result<Option<String>, UpstreamError> {
        let malformed = |what: String| {
            UpstreamError::Protocol(format!(
                "the answer to {} is not one: {what}",
                self.kind.method
            ))
        };
        let members: std::collections::HashMap<&str, &RawValue> =
            serde_json::from_str(page.get()).map_err(|error| malformed(error.to_string()))?;
        let Some(entries) = members.get(self.kind.member) else {
            return Err(malformed(format!("no member {:?}", self.kind.member)));
        };
        let entries: Vec<&RawValue> =
            serde_json::from_str(entries.get()).map_err(|error| malformed(error.to_string()))?;
        let next: Option<String> = match members.get("nextCursor") {
            Some(cursor) => {
                serde_json::from_str(cursor.get()).map_err(|error| malformed(error.to_string()))?
            }
            None => None,
        };
        for entry in entries {
            self.entry(entry);
        }
        Ok(match next {
            Some(cursor) if !self.cursors.insert(cursor.clone()) => {
                self.remark("the server repeats a cursor; stopped there".into());
                None
            }
            next => next,
        })
    }

    fn entry(&mut self, entry: &RawValue) {
        let key = crate::wire::object::member(entry, self.kind.key)
            .and_then(|key| serde_json::from_str::<String>(key.get()).ok())
            .filter(|key| !key.is_empty());
        let Some(key) = key else {
            self.remark(format!("an entry without {:?} was left out", self.kind.key));
            return;
        };
        self.bytes += entry.get().len();
        if self.items.len() >= ITEMS || self.bytes > BYTES {
            self.full = true;
        } else if self.keys.insert(key.clone()) {
            self.items.push(Item {
                key,
                raw: crate::wire::compact(entry).into_owned(),
            });
        } else {
            self.remark(format!("{key:?} is listed twice; the first one counts"));
        }
    }
}

#[derive(Deserialize)]
struct Described {
    description: Option<String>,
}

impl Item {
    pub fn description(&self) -> Option<String> {
        serde_json::from_str::<Described>(self.raw.get())
            .ok()?
            .description
    }
}
