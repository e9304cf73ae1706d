//! The usage of one user's records, and its limits.

use std::sync::Arc;

use super::records::{Instance, ToolRecord};
use super::state::{BoundEntry, Step, StoreState};
use super::{StoreErrorKind, UserLimits};

/// The user that a write is counted for, and their limits; `None` for the admin.
pub(super) type Quota = Option<(Arc<str>, UserLimits)>;

/// The limits, in the order of [`Usage`].
pub(super) const NAMES: [&str; 4] = ["records", "entries", "bindings", "bytes"];

/// The usage of one owner, or the usage that a change adds: of each name in
/// [`NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage(pub [i64; 4]);

fn each(limits: &UserLimits) -> [usize; 4] {
    [
        limits.records, limits.entries, limits.bindings, limits.bytes,
    ]
}

/// Whether a few writes could exceed a limit.
pub(super) fn is_near(limits: &UserLimits, usage: Usage) -> bool {
    let mut limits = each(limits).into_iter().zip(usage.0);
    limits.any(|(limit, used)| used > number(limit - limit / 4))
}

/// Refuses a change that adds usage beyond a limit. Usage that is already over
/// a limit may still shrink.
fn admit(limits: &UserLimits, before: Usage, added: Usage) -> Result<(), StoreErrorKind> {
    for (at, limit) in each(limits).into_iter().enumerate() {
        if added.0[at] > 0 && before.0[at] + added.0[at] > number(limit) {
            let what = NAMES[at];
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
        let before = before.unwrap_or_default();
        let added = Usage(std::array::from_fn(|at| after.0[at] - before.0[at]));
        if added.0.iter().any(|added| *added > 0) {
            admit(limits, usage(owner), added)?;
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
        let and = |sum: Usage, one: Usage| Usage(std::array::from_fn(|at| sum.0[at] + one.0[at]));
        each.fold(Usage::default(), and)
    }

    fn tool(tool: &ToolRecord) -> Usage {
        let description = tool.description.as_ref().map_or(0, String::len);
        let text = tool.name.len() + description + tool.server.len() + tool.tool.len();
        Usage([1, 0, 0, number(text)])
    }

    fn instance(old: &Instance) -> Usage {
        let extra = serde_json::to_string(&old.extra).map_or(0, |text| text.len());
        Usage([1, 0, 0, number(old.name.len() + extra)])
    }

    fn held(held: &BoundEntry) -> Usage {
        let exposes = &held.entry.exposes;
        let exposed = exposes.resources.iter().chain(&exposes.prompts);
        let filter = held.entry.filter.iter();
        let patterns = filter.flat_map(|filter| filter.allow.iter().chain(&filter.deny));
        let texts = exposed.chain(patterns).map(String::len).sum::<usize>();
        let text = held.entry.name.len() + texts;
        Usage([0, 1, number(held.bindings.len()), number(text)])
    }
}

fn number(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
