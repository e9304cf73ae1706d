//! A view's tools in the formats of other programs: each list is made at its
//! first request, and then shared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{RouteTarget, View};
use crate::format::{self, Format, ListedTool};
use crate::naming;
use config::typo_distance;
use fleet::catalog::ListKind;
use wire::Era;
use wire::object::member;

/// A list as it is answered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolList {
    pub body: Bytes,
    /// The entity tag, quotes and all: another body has another one.
    pub tag: Bytes,
}

#[derive(Default)]
pub(super) struct FormattedLists {
    lists: [OnceLock<ToolList>; Format::ALL.len()],
    /// From the names for models' APIs to those of the view, where they differ.
    fitted: OnceLock<HashMap<String, String>>,
    weight: AtomicUsize,
}

impl FormattedLists {
    /// The size of the lists made so far.
    pub(super) fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }
}

impl View {
    pub fn tools_as(&self, format: Format) -> ToolList {
        let cell = &self.formatted.lists[format as usize];
        let list = cell.get_or_init(|| {
            let list = self.format_tools(format);
            let weight = &self.formatted.weight;
            weight.fetch_add(list.body.len(), Ordering::Relaxed);
            list
        });
        list.clone()
    }

    /// A tool and its name here, by any of its names: that of the view, that of
    /// a vendor's list, or `server:tool` where servers are shown.
    pub fn tool_called<'a>(&'a self, name: &str) -> Option<(&'a str, &'a RouteTarget)> {
        let listed = |name: &str| self.tools.get_key_value(name);
        let found = listed(name).or_else(|| listed(self.fitted().get(name)?));
        let found = found.or_else(|| self.qualified_tool(name));
        let found = found.or_else(|| {
            let (server, own) = name.split_once(':').filter(|_| self.shows_servers())?;
            let mut all = self.tools.iter();
            all.find(|(_, target)| *target.server == *server && *target.name == *own)
        });
        found.map(|(name, target)| (name.as_str(), target))
    }

    /// The tools that a name may have been meant for, as named in a vendor's
    /// list, the likeliest first: a misspelling, or only the end of the name.
    pub fn near(&self, name: &str, most: usize) -> Vec<String> {
        let likely = |known: &String| {
            let known = naming::fitted(known, naming::is_allowed).into_owned();
            let before = known.strip_suffix(name);
            let is_end = before.is_some_and(|before| before.ends_with('_'));
            let far = is_end.then_some(0);
            Some((far.or_else(|| typo_distance(name, &known))?, known))
        };
        let mut near: Vec<(usize, String)> = self.tools.keys().filter_map(likely).collect();
        near.sort_unstable();
        near.into_iter().take(most).map(|(_, name)| name).collect()
    }

    /// The schema that a tool's arguments must meet.
    pub fn input_schema(&self, target: &RouteTarget) -> Option<&RawValue> {
        let entry = self.lists[ListKind::Tools as usize]
            .entries
            .get(target.at)?;
        member(&entry.modern, "inputSchema")
    }

    /// The server of a `server:tool`, if it is defined and not connected.
    pub(crate) fn absent_server(&self, name: &str) -> Option<&str> {
        let (server, _) = name.split_once(':')?;
        let mut absent = self.absent.iter().map(|(_, one)| &**one);
        absent.find(|one| *one == server)
    }

    /// The holder of an entry's key does not see the servers behind it.
    fn shows_servers(&self) -> bool {
        self.links.is_none()
    }

    fn fitted(&self) -> &HashMap<String, String> {
        self.formatted.fitted.get_or_init(|| {
            let changed = self.tools.keys().filter_map(|name| {
                match naming::fitted(name, naming::is_allowed) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(fitted) => Some((fitted, name.clone())),
                }
            });
            changed.collect()
        })
    }

    fn format_tools(&self, format: Format) -> ToolList {
        let entries = &self.lists[ListKind::Tools as usize].entries;
        let mut tools: Vec<(&String, &RouteTarget)> = self.tools.iter().collect();
        tools.sort_unstable_by_key(|(_, target)| target.at);
        let mut spelled = Vec::with_capacity(tools.len());
        for (name, target) in tools {
            let Some(entry) = entries.get(target.at) else {
                continue;
            };
            let fitted = match format {
                Format::Mcp => Cow::Borrowed(name.as_str()),
                _ => naming::fitted(name, naming::is_allowed),
            };
            if matches!(fitted, Cow::Owned(_)) && self.tools.contains_key(&*fitted) {
                tracing::warn!(
                    "tool {name:?} is skipped in a list: another tool already has its name there"
                );
                continue;
            }
            let origin = (&*target.server, &*target.name);
            spelled.push(format::tool(
                format,
                ListedTool {
                    name: &fitted,
                    tool: &entry.shown(Era::Modern),
                    origin: self.shows_servers().then_some(origin),
                },
            ));
        }
        whole(format, &self.hash(), &spelled)
    }
}

fn whole(format: Format, hash: &str, tools: &[Box<RawValue>]) -> ToolList {
    let tools: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    let (format, tools) = (format.name(), tools.join(","));
    let body = format!(r#"{{"format":"{format}","hash":"{hash}","tools":[{tools}]}}"#);
    let digest = Sha256::digest(&body);
    let tag: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
    ToolList {
        body: body.into(),
        tag: format!("\"{tag}\"").into(),
    }
}
