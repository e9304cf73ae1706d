//! The qualified names of tools and prompts (SPEC D2). A client that listed a
//! tool while another server's had its plain name may still call it by the
//! qualified one.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{RouteTarget, View};
use crate::naming;

/// From qualified names to those of the view; made when the first is called.
#[derive(Default)]
pub(super) struct Aliases {
    tools: OnceLock<HashMap<String, String>>,
    prompts: OnceLock<HashMap<String, String>>,
}

impl View {
    pub(super) fn qualified_tool(&self, name: &str) -> Option<(&String, &RouteTarget)> {
        find(name, &self.tools, &self.aliases.tools)
    }

    pub(super) fn qualified_prompt(&self, name: &str) -> Option<(&String, &RouteTarget)> {
        find(name, &self.prompts, &self.aliases.prompts)
    }
}

fn find<'a>(
    name: &str,
    targets: &'a HashMap<String, RouteTarget>,
    aliases: &OnceLock<HashMap<String, String>>,
) -> Option<(&'a String, &'a RouteTarget)> {
    if !naming::is_qualified(name) {
        return None;
    }
    let aliases = aliases.get_or_init(|| {
        let named = targets.iter().filter(|(_, target)| target.named_by_key);
        let qualified = |target: &RouteTarget| naming::qualified(&target.server, &target.name);
        named
            .map(|(visible, target)| (qualified(target), visible.clone()))
            .collect()
    });
    targets.get_key_value(aliases.get(name)?)
}
