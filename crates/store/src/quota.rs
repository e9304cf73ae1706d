//! The usage of one user's records, and its limits.

use std::sync::Arc;

use super::records::{Instance, ToolRecord};
use super::state::{BoundEntry, Step, StoreState};
use super::{StoreErrorKind, UserLimits};

/// The user that a write is counted for, and their limits; `None` for the admin.
pub(super) type Quota = Option<(Arc<str>, UserLimits)>;

/// The usage of one owner, or the usage that a change adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub records: i64,
    pub entries: i64,
    pub bindings: i64,
    pub bytes: i64,
}

/// Whether a few writes could exceed a limit.
pub(super) fn is_near(limits: &UserLimits, usage: Usage) -> bool {
    let near = |used: i64, limit: usize| used > number(limit - limit / 4);
    near(usage.records, limits.records)
        || near(usage.entries, limits.entries)
        || near(usage.bindings, limits.bindings)
        || near(usage.bytes, limits.bytes)
}

/// Refuses a change that adds usage beyond a limit. Usage that is already over
/// a limit may still shrink.
pub(super) fn admit(limits: &UserLimits, after: Usage, added: Usage) -> Result<(), StoreErrorKind> {
    let checks = [
        ("records", after.records, added.records, limits.records),
        ("entries", after.entries, added.entries, limits.entries),
        ("bindings", after.bindings, added.bindings, limits.bindings),
        ("bytes", after.bytes, added.bytes, limits.bytes),
    ];
    for (what, after, added, limit) in checks {
        if added > 0 && after > i64::try_from(limit).unwrap_or(i64::MAX) {
            return Err(StoreErrorKind::Quota { what, limit });
        }
    }
    Ok(())
}

/// Like [`admit`], for the steps of a change. `usage`: the usage before it.
pub(super) fn admit_steps(
    limits: &UserLimits,
    state: &StoreState,
    steps: &[Step],
    usage: impl Fn(&str) -> Usage,
) -> Result<(), StoreErrorKind> {
    for step in steps {
        let (owner, before, after) = match step {
            Step::Tool(tool) => {
                let before = state.tools.get(&tool.id).map(|tool| Usage::tool(tool));
                (&tool.owner, before, Usage::tool(tool))
            }
            Step::Entry(held) => {
                let before = state.entries.get(&held.entry.id);
                let before = before.map(|held| Usage::held(held));
                (&held.entry.owner, before, Usage::held(held))
            }
            Step::Instance(old) => {
                let before = state.instances.get(&old.id).map(|old| Usage::instance(old));
                (&old.owner, before, Usage::instance(old))
            }
            _ => continue,
        };
        let added = after.less(before.unwrap_or_default());
        if added.grows() {
            admit(limits, usage(owner).and(added), added)?;
        }
    }
    Ok(())
}

impl Usage {
    pub(super) fn of(state: &StoreState, owner: &str) -> Usage {
        let tools = state.tools.values().filter(|one| *one.owner == *owner);
        let old = state.instances.values().filter(|one| *one.owner == *owner);
        let held = state.entries.values();
        let held = held.filter(|held| *held.entry.owner == *owner);
        let each = tools
            .map(|tool| Usage::tool(tool))
            .chain(old.map(|old| Usage::instance(old)))
            .chain(held.map(|held| Usage::held(held)));
        each.fold(Usage::default(), Usage::and)
    }

    fn tool(tool: &ToolRecord) -> Usage {
        let description = tool.description.as_ref().map_or(0, String::len);
        let text = tool.name.len() + description + tool.server.len() + tool.tool.len();
        Usage {
            records: 1,
            bytes: number(text),
            ..Usage::default()
        }
    }

    fn instance(old: &Instance) -> Usage {
        let extra = serde_json::to_string(&old.extra).map_or(0, |text| text.len());
        Usage {
            records: 1,
            bytes: number(old.name.len() + extra),
            ..Usage::default()
        }
    }

    fn held(held: &BoundEntry) -> Usage {
        let exposes = &held.entry.exposes;
        let exposed = exposes.resources.iter().chain(&exposes.prompts);
        let filter = held.entry.filter.iter();
        let patterns = filter.flat_map(|filter| filter.allow.iter().chain(&filter.deny));
        let texts = exposed.chain(patterns).map(String::len).sum::<usize>();
        let text = held.entry.name.len() + texts;
        Usage {
            entries: 1,
            bindings: number(held.bindings.len()),
            bytes: number(text),
            ..Usage::default()
        }
    }

    fn and(self, other: Usage) -> Usage {
        Usage {
            records: self.records + other.records,
            entries: self.entries + other.entries,
            bindings: self.bindings + other.bindings,
            bytes: self.bytes + other.bytes,
        }
    }

    fn less(self, other: Usage) -> Usage {
        Usage {
            records: self.records - other.records,
            entries: self.entries - other.entries,
            bindings: self.bindings - other.bindings,
            bytes: self.bytes - other.bytes,
        }
    }

    fn grows(self) -> bool {
        [self.records, self.entries, self.bindings, self.bytes]
            .iter()
            .any(|added| *added > 0)
    }
}

fn number(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
