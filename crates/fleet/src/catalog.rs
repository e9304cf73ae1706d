//! What a server offers: all pages of all its lists, kept raw.

mod gather;

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use wire::result::Freshness;
use wire::{invisible, object};

pub use gather::list;

/// The lists of one server.
#[derive(Debug, Default, PartialEq)]
pub struct Catalog {
    pub tools: Vec<Item>,
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
    pub prompts: Vec<Item>,
    /// What was odd about them, for the server's log.
    pub remarks: Vec<String>,
    facts: [Facts; 4],
}

/// One tool, resource, template or prompt, as the server sent it.
#[derive(Debug)]
pub struct Item {
    /// The tool's or prompt's name, the resource's URI or URI template.
    pub key: String,
    pub raw: Arc<RawValue>,
    /// Where in `raw` the key stands, as a JSON string.
    pub key_at: Range<usize>,
    /// It has characters that a person cannot see.
    pub hides: bool,
}

/// The key and its place follow from the text.
impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.raw.get() == other.raw.get()
    }
}

/// What a list says besides its entries.
#[derive(Debug)]
pub struct Facts {
    /// Of all its pages together.
    pub freshness: Freshness,
    /// The server has the capability, but not this list.
    pub missing: bool,
    /// Members of its first page that are neither entries nor protocol.
    pub rest: Option<Box<RawValue>>,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            freshness: Freshness::NONE,
            missing: false,
            rest: None,
        }
    }
}

impl PartialEq for Facts {
    fn eq(&self, other: &Facts) -> bool {
        let rest = |facts: &Facts| facts.rest.as_ref().map(|rest| rest.get().to_owned());
        self.freshness == other.freshness
            && self.missing == other.missing
            && rest(self) == rest(other)
    }
}

/// One of the four lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Tools, Kind::Resources, Kind::Templates, Kind::Prompts];

    pub fn of_method(method: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.method() == method)
    }

    pub fn method(self) -> &'static str {
        match self {
            Kind::Tools => "tools/list",
            Kind::Resources => "resources/list",
            Kind::Templates => "resources/templates/list",
            Kind::Prompts => "prompts/list",
        }
    }

    pub fn capability(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Resources | Kind::Templates => "resources",
            Kind::Prompts => "prompts",
        }
    }

    /// The member of a result that holds the entries.
    pub fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
            Kind::Prompts => "prompts",
        }
    }

    /// The member of an entry that names it.
    fn key(self) -> &'static str {
        match self {
            Kind::Tools | Kind::Prompts => "name",
            Kind::Resources => "uri",
            Kind::Templates => "uriTemplate",
        }
    }
}

impl Catalog {
    pub fn items(&self, kind: Kind) -> &[Item] {
        match kind {
            Kind::Tools => &self.tools,
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
            Kind::Prompts => &self.prompts,
        }
    }

    pub fn facts(&self, kind: Kind) -> &Facts {
        &self.facts[kind as usize]
    }

    pub fn put(&mut self, kind: Kind, items: Vec<Item>, facts: Facts) {
        self.facts[kind as usize] = facts;
        match kind {
            Kind::Tools => self.tools = items,
            Kind::Resources => self.resources = items,
            Kind::Templates => self.templates = items,
            Kind::Prompts => self.prompts = items,
        }
    }
}

#[derive(Deserialize)]
struct Described {
    description: Option<String>,
}

impl Item {
    /// None for an entry without a name, or with a name that is empty or
    /// given twice.
    pub fn new(kind: Kind, raw: Arc<RawValue>) -> Option<Item> {
        let written = object::member(&raw, kind.key())?;
        let key = object::text(written).filter(|key| !key.is_empty())?;
        Some(Item {
            key: key.into_owned(),
            key_at: object::range_in(&raw, written),
            hides: invisible::has_hidden_chars(raw.get()),
            raw,
        })
    }

    pub fn description(&self) -> Option<String> {
        serde_json::from_str::<Described>(self.raw.get())
            .ok()?
            .description
    }
}
