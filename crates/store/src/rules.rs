//! The rules of records: a change of the current state gives steps, or an error.
//! Nothing here touches a disk; a database enforces the same by constraints.

mod migrate;
mod moved;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::postgres::RecordTable;
use super::records::*;
use super::state::{BoundEntry, CreateOutcome, Step, StoreState};
use super::{KeyDigest, ServerRecord, StoreErrorKind, Timestamp, UniqueField};
use config::ServerName;

pub(super) use migrate::{adopt, migrate};
pub(super) use moved::server_moved;

/// The result for the caller, and the steps to save.
pub(super) type Ruling<T> = Result<(T, Vec<Step>), StoreErrorKind>;

fn unchanged<T>(answer: T) -> Ruling<T> {
    Ok((answer, Vec::new()))
}

/// A create, which may repeat an earlier request.
fn create<R: RecordTable>(
    state: &StoreState,
    once: Option<Idempotency>,
    make: impl FnOnce() -> Result<(R, Step), StoreErrorKind>,
) -> Ruling<Creation<R>> {
    let now = Timestamp::now();
    let Some(once) = once else {
        let (made, step) = make()?;
        return Ok((Creation::New(made), vec![step]));
    };
    let key = KeyDigest::from_bytes(once.key);
    let body = KeyDigest::from_bytes(once.body);
    if let Some(made) = state.once.get(&key).filter(|made| made.is_fresh(now)) {
        if made.body != body {
            return Err(StoreErrorKind::OnceReused);
        }
        let earlier = R::all(state).find(|record| record.id() == made.id);
        return unchanged(Creation::Earlier(earlier.cloned()));
    }
    let (made, step) = make()?;
    let (id, mut steps) = (made.id(), vec![step]);
    let old = state.once.iter().filter(|(_, made)| !made.is_fresh(now));
    steps.extend(old.map(|(key, _)| Step::NoOnce(*key)));
    steps.push(Step::Once(key, CreateOutcome { body, id, at: now }));
    Ok((Creation::New(made), steps))
}

pub(super) fn put_servers(state: &StoreState, records: Vec<ServerRecord>) -> Ruling<()> {
    let before = state.servers.values();
    let mut owners: HashMap<ServerName, Uuid> = before
        .map(|record| (record.name.clone(), record.id))
        .collect();
    for record in &records {
        let owner = owners.entry(record.name.clone()).or_insert(record.id);
        if *owner != record.id {
            return Err(StoreErrorKind::Conflict(UniqueField::ServerName));
        }
    }
    Ok(((), records.into_iter().map(Step::Server).collect()))
}

pub(super) fn delete_server(state: &StoreState, name: &ServerName) -> Ruling<bool> {
    match state.servers.values().find(|record| record.name == *name) {
        Some(record) => Ok((true, vec![Step::NoServer(record.id)])),
        None => unchanged(false),
    }
}

pub(super) fn create_tool(
    state: &StoreState,
    new: NewTool,
    once: Option<Idempotency>,
) -> Ruling<Creation<ToolRecord>> {
    create(state, once, || {
        let now = Timestamp::now();
        let tool = ToolRecord {
            id: state.new_tool(0),
            owner: new.owner,
            name: new.name,
            description: new.description,
            server: new.server,
            tool: new.tool,
            created_at: now,
            updated_at: now,
        };
        Ok((tool.clone(), Step::Tool(Arc::new(tool))))
    })
}

pub(super) fn update_tool(
    state: &StoreState,
    scope: &OwnerScope,
    id: ToolId,
    change: ToolChange,
) -> Ruling<Option<ToolRecord>> {
    let Some(before) = state.tool(scope, id) else {
        return unchanged(None);
    };
    let mut tool = ToolRecord::clone(before);
    tool.name = change.name.unwrap_or(tool.name);
    tool.description = change.description.unwrap_or(tool.description);
    tool.server = change.server.unwrap_or(tool.server);
    tool.tool = change.tool.unwrap_or(tool.tool);
    if tool == **before {
        return unchanged(Some(tool));
    }
    tool.updated_at = Timestamp::now();
    for held in state.bound_to(id) {
        let others = held.bindings.iter().filter(|binding| binding.tool != id);
        names(
            state,
            others.map(|binding| binding.tool),
            [tool.name.as_str()],
        )?;
    }
    Ok((Some(tool.clone()), vec![Step::Tool(Arc::new(tool))]))
}

pub(super) fn delete_tool(state: &StoreState, scope: &OwnerScope, id: ToolId) -> Ruling<bool> {
    if state.tool(scope, id).is_none() {
        return unchanged(false);
    }
    let without = |held: &Arc<BoundEntry>| {
        let mut held = BoundEntry::clone(held);
        held.bindings.retain(|binding| binding.tool != id);
        Step::Entry(Arc::new(held))
    };
    let mut steps: Vec<Step> = state.bound_to(id).map(without).collect();
    steps.push(Step::NoTool(id));
    Ok((true, steps))
}

/// Fails if two of these tools have the same name.
fn names<'a>(
    state: &'a StoreState,
    tools: impl Iterator<Item = ToolId>,
    further: impl IntoIterator<Item = &'a str>,
) -> Result<(), StoreErrorKind> {
    let mut seen = HashSet::new();
    let named = tools.filter_map(|id| Some(state.tools.get(&id)?.name.as_str()));
    for name in named.chain(further) {
        if !seen.insert(name) {
            return Err(StoreErrorKind::SameName(name.to_owned()));
        }
    }
    Ok(())
}

/// The bindings after the change, in order: the existing ones, then the new.
fn bound(
    state: &StoreState,
    owner: &str,
    before: &[Binding],
    new: &[NewBinding],
) -> Result<Vec<Binding>, StoreErrorKind> {
    let now = Timestamp::now();
    let mut all = before.to_vec();
    for one in new {
        let tool = state.tools.get(&one.tool);
        if tool.is_none_or(|tool| *tool.owner != *owner) {
            return Err(StoreErrorKind::NoSuchTool(one.tool));
        }
        match all.iter_mut().find(|binding| binding.tool == one.tool) {
            Some(binding) => binding.enabled = one.enabled,
            None => all.push(Binding {
                tool: one.tool,
                enabled: one.enabled,
                created_at: now,
            }),
        }
    }
    names(state, all.iter().map(|binding| binding.tool), [])?;
    Ok(all)
}

fn free(state: &StoreState, key: &KeyDigest) -> Result<(), StoreErrorKind> {
    let mut all = state.entries.values();
    if all.any(|held| held.entry.key.digest == *key) {
        return Err(StoreErrorKind::Conflict(UniqueField::Key));
    }
    Ok(())
}

pub(super) fn create_entry(
    state: &StoreState,
    new: NewEntry,
    once: Option<Idempotency>,
) -> Ruling<Creation<Entry>> {
    create(state, once, || {
        free(state, &new.key.digest)?;
        let now = Timestamp::now();
        let bindings = bound(state, &new.owner, &[], &new.bindings)?;
        let entry = Entry {
            id: EntryId(state.last.entry + 1),
            owner: new.owner,
            name: new.name,
            enabled: new.enabled,
            key: new.key.made(now),
            exposes: new.exposes,
            filter: new.filter,
            created_at: now,
            updated_at: now,
        };
        let held = BoundEntry {
            entry: entry.clone(),
            bindings,
        };
        Ok((entry, Step::Entry(Arc::new(held))))
    })
}

/// An entry after a change.
fn edit_entry(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    edit: impl FnOnce(Entry) -> Result<Entry, StoreErrorKind>,
) -> Ruling<Option<Entry>> {
    let Some(before) = state.held(scope, id) else {
        return unchanged(None);
    };
    let mut entry = edit(before.entry.clone())?;
    let mut same = before.entry.clone();
    same.key.last_used_at = entry.key.last_used_at;
    if entry == same {
        return unchanged(Some(same));
    }
    entry.updated_at = Timestamp::now();
    let held = BoundEntry {
        entry: entry.clone(),
        bindings: before.bindings.clone(),
    };
    Ok((Some(entry), vec![Step::Entry(Arc::new(held))]))
}

pub(super) fn update_entry(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    change: EntryChange,
    used: Option<Timestamp>,
) -> Ruling<Option<Entry>> {
    edit_entry(state, scope, id, |mut entry| {
        // Memory has the last use first, and forgets it when an entry is
        // disabled.
        entry.key.last_used_at = used.max(entry.key.last_used_at);
        entry.name = change.name.unwrap_or(entry.name);
        entry.enabled = change.enabled.unwrap_or(entry.enabled);
        entry.exposes = change.exposes.unwrap_or(entry.exposes);
        entry.filter = change.filter.unwrap_or(entry.filter);
        entry.key.expires_at = change.expires_at.unwrap_or(entry.key.expires_at);
        Ok(entry)
    })
}

pub(super) fn replace_key(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    key: NewKey,
) -> Ruling<Option<Entry>> {
    edit_entry(state, scope, id, |entry| {
        free(state, &key.digest)?;
        let key = key.made(Timestamp::now());
        Ok(Entry { key, ..entry })
    })
}

pub(super) fn delete_entry(state: &StoreState, scope: &OwnerScope, id: EntryId) -> Ruling<bool> {
    match state.held(scope, id) {
        Some(_) => Ok((true, vec![Step::NoEntry(id)])),
        None => unchanged(false),
    }
}

pub(super) fn bind(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    new: &[NewBinding],
) -> Ruling<Option<Vec<BoundTool>>> {
    let Some(before) = state.held(scope, id) else {
        return unchanged(None);
    };
    let bindings = bound(state, &before.entry.owner, &before.bindings, new)?;
    let mut steps = Vec::new();
    let held = BoundEntry {
        entry: before.entry.clone(),
        bindings,
    };
    let mut answer = state.bound(&held);
    answer.retain(|bound| new.iter().any(|one| one.tool == bound.binding.tool));
    if held.bindings != before.bindings {
        steps.push(Step::Entry(Arc::new(held)));
    }
    Ok((Some(answer), steps))
}

pub(super) fn update_binding(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    binding: NewBinding,
) -> Ruling<Option<BoundTool>> {
    let held = state.held(scope, id);
    let there = held.is_some_and(|held| held.bindings.iter().any(|one| one.tool == binding.tool));
    if !there {
        return unchanged(None);
    }
    let (bound, steps) = bind(state, scope, id, &[binding])?;
    Ok((bound.and_then(|mut bound| bound.pop()), steps))
}

pub(super) fn unbind(
    state: &StoreState,
    scope: &OwnerScope,
    id: EntryId,
    tool: ToolId,
) -> Ruling<bool> {
    let Some(before) = state.held(scope, id) else {
        return unchanged(false);
    };
    let mut held = BoundEntry::clone(before);
    held.bindings.retain(|binding| binding.tool != tool);
    if held.bindings.len() == before.bindings.len() {
        return unchanged(false);
    }
    Ok((true, vec![Step::Entry(Arc::new(held))]))
}

pub(super) fn create_instance(
    state: &StoreState,
    new: NewInstance,
    once: Option<Idempotency>,
) -> Ruling<Creation<Instance>> {
    create(state, once, || {
        free_for_instance(state, &new.key.digest)?;
        let now = Timestamp::now();
        let made = Instance {
            id: EntryId(state.last.instance + 1),
            owner: new.owner,
            name: new.name,
            enabled: new.enabled,
            key: new.key.made(now),
            extra: new.extra,
            created_at: now,
            updated_at: now,
        };
        Ok((made.clone(), Step::Instance(Arc::new(made))))
    })
}

/// The key of an entry is taken too: the record may become an entry.
fn free_for_instance(state: &StoreState, key: &KeyDigest) -> Result<(), StoreErrorKind> {
    let named = InstanceName::from(*key);
    if state.instance(&OwnerScope::Everyone, &named).is_some() {
        return Err(StoreErrorKind::Conflict(UniqueField::Key));
    }
    free(state, key)
}

pub(super) fn update_instance(
    state: &StoreState,
    scope: &OwnerScope,
    named: &InstanceName,
    change: InstanceChange,
) -> Ruling<Option<Instance>> {
    let Some(before) = state.instance(scope, named) else {
        return unchanged(None);
    };
    let now = Timestamp::now();
    let mut instance = Instance::clone(before);
    instance.owner = change.owner.unwrap_or(instance.owner);
    let other = |key: &NewKey| key.digest != before.key.digest;
    if let Some(key) = change.key.filter(other) {
        free_for_instance(state, &key.digest)?;
        instance.key = key.made(now);
    }
    instance.name = change.name.unwrap_or(instance.name);
    instance.enabled = change.enabled.unwrap_or(instance.enabled);
    instance.extra.extend(change.extra);
    if instance == **before {
        return unchanged(Some(instance));
    }
    instance.updated_at = now;
    let steps = vec![Step::Instance(Arc::new(instance.clone()))];
    Ok((Some(instance), steps))
}

pub(super) fn delete_instance(
    state: &StoreState,
    scope: &OwnerScope,
    named: &InstanceName,
) -> Ruling<bool> {
    match state.instance(scope, named) {
        Some(instance) => Ok((true, vec![Step::NoInstance(instance.id)])),
        None => unchanged(false),
    }
}
