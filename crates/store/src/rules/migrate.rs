//! Turns old records into entries with the same key.

use std::sync::Arc;

use serde_json::Value;

use super::super::records::*;
use super::super::state::{BoundEntry, Step, StoreState};
use super::super::{StoreErrorKind, Timestamp};
use super::{Ruling, free};

impl Instance {
    /// The registered tools that a server can provide: those written as
    /// `server:tool` under `register_tools`.
    pub fn registered(&self) -> Vec<(&str, &str)> {
        let listed = self.extra.get("register_tools").and_then(|v| v.as_array());
        let mut pairs: Vec<_> = listed.into_iter().flatten().filter_map(pair).collect();
        pairs.dedup();
        pairs
    }

    /// The number of registered tools that no server can provide.
    pub(in super::super) fn unregistered(&self) -> usize {
        match self.extra.get("register_tools") {
            None | Some(Value::Null) => 0,
            Some(Value::Array(all)) => all.iter().filter(|one| pair(one).is_none()).count(),
            Some(Value::String(text)) => usize::from(!text.trim().is_empty()),
            Some(_) => 1,
        }
    }
}

fn pair(tool: &Value) -> Option<(&str, &str)> {
    let (server, tool) = tool.as_str()?.split_once(':')?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

pub(in super::super) fn migrate(state: &StoreState) -> Ruling<Vec<MigratedInstance>> {
    each(state, state.instances.values(), |state, instance, steps| {
        free(state, &instance.key.digest)?;
        let migrated = one(state, instance, steps);
        steps.push(Step::NoInstance(instance.id));
        Ok(migrated)
    })
}

/// Adopts records of another application.
pub(in super::super) fn adopt(state: &StoreState, records: &[Instance]) -> Ruling<Vec<Adoption>> {
    each(state, records, |state, record, steps| {
        Ok(match state.holder(&record.key.digest) {
            Some(holder) => holder.outcome(record),
            None => Adoption::Made(one(state, record, steps)),
        })
    })
}

/// Converts records one after another, each in the state after the last.
fn each<'r, R: 'r, T>(
    state: &StoreState,
    records: impl IntoIterator<Item = &'r R>,
    convert: impl Fn(&StoreState, &'r R, &mut Vec<Step>) -> Result<T, StoreErrorKind>,
) -> Ruling<Vec<T>> {
    let mut state = state.clone();
    let (mut steps, mut all) = (Vec::new(), Vec::new());
    for record in records {
        let mut made = Vec::new();
        all.push(convert(&state, record, &mut made)?);
        for step in &made {
            state.apply(step);
        }
        steps.append(&mut made);
    }
    Ok((all, steps))
}

fn one(state: &StoreState, instance: &Instance, steps: &mut Vec<Step>) -> MigratedInstance {
    let now = Timestamp::now();
    let id = EntryId(state.last.entry + 1);
    let (mut bindings, mut names) = (Vec::new(), Vec::new());
    let mut created = 0;
    for (server, tool) in instance.registered() {
        let known = state.tools.values().find(|record| {
            record.owner == instance.owner && record.server == server && record.tool == tool
        });
        let name = known.map_or(tool, |record| &record.name);
        // Two tools of one name cannot be in one entry; the first one wins.
        if names.contains(&name.to_owned()) {
            continue;
        }
        names.push(name.to_owned());
        let id = known.map(|record| record.id).unwrap_or_else(|| {
            let id = state.new_tool(created);
            created += 1;
            let record = ToolRecord {
                id,
                owner: instance.owner.clone(),
                name: tool.to_owned(),
                description: None,
                server: server.to_owned(),
                tool: tool.to_owned(),
                created_at: now,
                updated_at: now,
            };
            steps.push(Step::Tool(Arc::new(record)));
            id
        });
        bindings.push(Binding {
            tool: id,
            enabled: true,
            created_at: now,
        });
    }
    let tools = bindings.len();
    let entry = Entry {
        id,
        owner: instance.owner.clone(),
        name: instance.name.clone(),
        enabled: instance.enabled,
        key: instance.key.clone(),
        exposes: ExposedServers::default(),
        filter: None,
        created_at: instance.created_at,
        updated_at: now,
    };
    steps.push(Step::Entry(Arc::new(BoundEntry { entry, bindings })));
    MigratedInstance {
        instance: instance.id,
        entry: id,
        name: instance.name.clone(),
        tools,
    }
}
