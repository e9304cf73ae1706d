//! The catalog of a server: all pages of all its lists, kept raw.

mod gather;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::value::RawValue;

use wire::result::Freshness;
use wire::{invisible, object};

pub use gather::list;

/// The lists of one server.
#[derive(Debug, Default, PartialEq)]
pub struct Catalog {
    pub tools: Vec<CatalogItem>,
    pub resources: Vec<CatalogItem>,
    pub templates: Vec<CatalogItem>,
    pub prompts: Vec<CatalogItem>,
    /// Irregularities in the lists, for the server's log.
    pub remarks: Vec<String>,
    facts: [ListFacts; 4],
}

/// One tool, resource, template or prompt, as the server sent it.
#[derive(Debug)]
pub struct CatalogItem {
    /// The tool's or prompt's name, the resource's URI or URI template.
    pub key: String,
    pub raw: Arc<RawValue>,
    /// The position of the key in `raw`, as a JSON string.
    pub key_at: Range<usize>,
    /// The item contains invisible characters.
    pub hides: bool,
}

/// The key and its position follow from the raw text.
impl PartialEq for CatalogItem {
    fn eq(&self, other: &CatalogItem) -> bool {
        self.raw.get() == other.raw.get()
    }
}

/// Facts about a list besides its entries.
#[derive(Debug)]
pub struct ListFacts {
    /// The freshness of all pages together.
    pub freshness: Freshness,
    /// The server declares the capability but does not have this list.
    pub missing: bool,
    /// Members of the first page that are neither entries nor protocol fields.
    pub rest: Option<Box<RawValue>>,
}

impl Default for ListFacts {
    fn default() -> ListFacts {
        ListFacts {
            freshness: Freshness::NONE,
            missing: false,
            rest: None,
        }
    }
}

impl PartialEq for ListFacts {
    fn eq(&self, other: &ListFacts) -> bool {
        let rest = |facts: &ListFacts| facts.rest.as_ref().map(|rest| rest.get().to_owned());
        self.freshness == other.freshness
            && self.missing == other.missing
            && rest(self) == rest(other)
    }
}

/// One of the four lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    pub const ALL: [ListKind; 4] = [
        ListKind::Tools,
        ListKind::Resources,
        ListKind::Templates,
        ListKind::Prompts,
    ];

    pub fn of_method(method: &str) -> Option<ListKind> {
        ListKind::ALL
            .into_iter()
            .find(|kind| kind.method() == method)
    }

    pub fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Resources => "resources/list",
            ListKind::Templates => "resources/templates/list",
            ListKind::Prompts => "prompts/list",
        }
    }

    pub fn capability(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources | ListKind::Templates => "resources",
            ListKind::Prompts => "prompts",
        }
    }

    /// The member of a result that contains the entries.
    pub fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Resources => "resources",
            ListKind::Templates => "resourceTemplates",
            ListKind::Prompts => "prompts",
        }
    }

    /// The member of an entry that identifies it.
    fn key(self) -> &'static str {
        match self {
            ListKind::Tools | ListKind::Prompts => "name",
            ListKind::Resources => "uri",
            ListKind::Templates => "uriTemplate",
        }
    }
}

impl Catalog {
    pub fn items(&self, kind: ListKind) -> &[CatalogItem] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
        }
    }

    pub fn facts(&self, kind: ListKind) -> &ListFacts {
        &self.facts[kind as usize]
    }

    pub fn put(&mut self, kind: ListKind, items: Vec<CatalogItem>, facts: ListFacts) {
        self.facts[kind as usize] = facts;
        match kind {
            ListKind::Tools => self.tools = items,
            ListKind::Resources => self.resources = items,
            ListKind::Templates => self.templates = items,
            ListKind::Prompts => self.prompts = items,
        }
    }
}

impl CatalogItem {
    /// `None` for an entry without a name, or with a name that is empty or
    /// occurs twice.
    pub fn new(kind: ListKind, raw: Arc<RawValue>) -> Option<CatalogItem> {
        let written = object::member(&raw, kind.key())?;
        let key = object::text(written).filter(|key| !key.is_empty())?;
        Some(CatalogItem {
            key: key.into_owned(),
            key_at: object::range_in(&raw, written),
            hides: invisible::has_hidden_chars(raw.get()),
            raw,
        })
    }

    pub fn description(&self) -> Option<String> {
        let written = object::member(&self.raw, "description")?;
        object::text(written).map(Cow::into_owned)
    }
}
