//! Updates the records of a server's tools after the server was renamed or
//! removed.

use std::sync::Arc;

use super::super::records::*;
use super::super::state::{BoundEntry, Step, StoreState};
use super::super::{ServerRecord, Timestamp};
use super::Ruling;
use config::ServerName;

impl ExposedServers {
    /// Replaces the server by its new name, or removes it.
    fn moved(&self, from: &str, to: Option<&str>) -> ExposedServers {
        let one = |servers: &Vec<String>| {
            let mut after: Vec<String> = Vec::with_capacity(servers.len());
            for server in servers {
                let name = if server == from { to } else { Some(&**server) };
                after.extend(
                    name.filter(|name| !after.iter().any(|a| a == name))
                        .map(Into::into),
                );
            }
            after
        };
        ExposedServers {
            resources: one(&self.resources),
            prompts: one(&self.prompts),
        }
    }
}

pub(in super::super) fn server_moved(
    state: &StoreState,
    from: &ServerName,
    to: Option<&ServerName>,
) -> Ruling<()> {
    let from = from.as_str();
    let new_name = to.map(ServerName::as_str);
    let now = Timestamp::now();
    let stands = |tool: ToolId| {
        state
            .tools
            .get(&tool)
            .is_some_and(|tool| tool.server == from)
    };
    let mut steps = Vec::new();
    for before in state.entries.values() {
        let mut held = BoundEntry::clone(before);
        held.entry.exposes = held.entry.exposes.moved(from, new_name);
        if to.is_none() {
            held.bindings.retain(|binding| !stands(binding.tool));
        }
        let same = held.entry.exposes == before.entry.exposes;
        if same && held.bindings.len() == before.bindings.len() {
            continue;
        }
        if !same {
            held.entry.updated_at = now;
        }
        steps.push(Step::Entry(Arc::new(held)));
    }
    if let Some(to) = new_name {
        let its = state.tools.values().filter(|tool| tool.server == from);
        steps.extend(its.map(|tool| {
            let mut tool = ToolRecord::clone(tool);
            to.clone_into(&mut tool.server);
            tool.updated_at = now;
            Step::Tool(Arc::new(tool))
        }));
    }
    steps.extend(record_moved(state, from, to));
    Ok(((), steps))
}

fn record_moved(state: &StoreState, from: &str, to: Option<&ServerName>) -> Vec<Step> {
    let record = |name: &str| {
        let mut records = state.servers.values();
        records.find(|record| record.name.as_str() == name)
    };
    let Some(moved) = record(from) else {
        return Vec::new();
    };
    let Some(to) = to else {
        return vec![Step::NoServer(moved.id)];
    };
    let past = record(to.as_str()).filter(|past| past.id != moved.id);
    let past = past.map(|past| Step::NoServer(past.id));
    let renamed = Step::Server(ServerRecord {
        name: to.clone(),
        ..moved.clone()
    });
    past.into_iter().chain([renamed]).collect()
}
