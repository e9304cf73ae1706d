//! From what a client asks for to the server that has it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::ability::Abilities;
use super::activity::CallWatch;
use super::call::Call;
use super::control::Control;
use super::right::{GrantPermission, Requirement};
use super::session::Session;
use super::view::View;
use super::{Caller, Client, ClientRequest, Scope, text_of, text_param};
use fleet::{CallRequest, Slot};
use store::Store;
use wire::object::{find_members, member, parse_part, remove_members, set_member};
use wire::result::error_to_modern;
use wire::{Era, RpcError, capability, code, meta, method};

/// What the params of a request say that matters here, found in one pass.
#[derive(Clone, Copy, Default)]
pub(super) struct CallParams<'a> {
    name: Option<&'a RawValue>,
    uri: Option<&'a RawValue>,
    token: Option<&'a RawValue>,
    task: Option<&'a RawValue>,
    pub responses: Option<&'a RawValue>,
    pub state: Option<&'a RawValue>,
}

impl<'a> CallParams<'a> {
    pub(crate) fn read(params: Option<&'a RawValue>) -> CallParams<'a> {
        let names = [
            "name",
            "uri",
            "_meta",
            "inputResponses",
            "requestState",
            "task",
        ];
        let found = params.map_or([None; 6], |params| find_members(params.get(), names));
        let [name, uri, meta, responses, state, task] = found;
        let [token] = meta.map_or([None], |json| find_members(json, [meta::PROGRESS_TOKEN]));
        let [name, uri, responses, state, task] =
            [name, uri, responses, state, task].map(|json| json.and_then(parse_part));
        CallParams {
            name,
            uri,
            token: token.and_then(parse_part),
            task,
            responses,
            state,
        }
    }
}

/// Where a request goes, and in which words.
struct CallRoute {
    server: Arc<str>,
    params: Option<Box<RawValue>>,
    /// As the client knows it.
    what: String,
    /// As the server does.
    there: Option<String>,
    wrapped: bool,
    /// What an entry must have been granted for it.
    need: Requirement,
    /// Set where the server is Portway itself.
    control: Option<Arc<Control>>,
}

pub(super) fn resolve(
    store: &Arc<dyn Store>,
    caller: &Caller,
    client: &Client,
    incoming: ClientRequest<'_>,
    params: CallParams<'_>,
    view: Arc<View>,
) -> Result<Call, RpcError> {
    let place = match incoming.method {
        "tools/call" => named(caller, &view, params, Kind::Tool).map(|place| CallRoute {
            params: without_task(incoming.params, params),
            ..place
        }),
        "prompts/get" => named(caller, &view, params, Kind::Prompt),
        "resources/read" => resource(caller, &view, params),
        _ => reference(caller, &view, incoming),
    };
    let place = place.map_err(|error| match client.era {
        Era::Modern => error_to_modern(error, None),
        Era::Legacy => error,
    })?;
    let abilities = Abilities::read(&client.capabilities);
    let modern_words = match client.era {
        Era::Modern => client.capabilities.clone(),
        Era::Legacy => match capability::to_modern(&client.capabilities) {
            Cow::Borrowed(_) => client.capabilities.clone(),
            Cow::Owned(words) => Arc::from(words),
        },
    };
    let session = client.session.as_ref();
    let token = params.token.map(ToOwned::to_owned);
    let log_level = match session {
        Some(session) => session.level(),
        None => client.log_level,
    };
    let via = match (&place.need, &caller.scope) {
        (Requirement::Tool { tool, .. } | Requirement::Link { tool }, Scope::Entry(_)) => {
            Some(tool.clone())
        }
        _ => None,
    };
    let permission = GrantPermission::of(&caller.scope, store, place.need, &place.server);
    Ok(Call {
        principal: caller.principal.clone(),
        id: incoming.id.to_owned(),
        watch: CallWatch::default(),
        what: place.what,
        wrapped: place.wrapped,
        via,
        request: Arc::new(CallRequest {
            server: place.server,
            slot: Slot {
                principal: caller.principal.clone(),
                owner: caller.owner().clone(),
                session: session.map(|session| session.key()),
                ended: session.map(|session| session.ended().clone()),
                capabilities: abilities.legacy(),
            },
            method: match method::find(incoming.method) {
                Some(known) => Cow::Borrowed(known.name),
                None => Cow::Owned(incoming.method.to_owned()),
            },
            params: place
                .params
                .or_else(|| incoming.params.map(ToOwned::to_owned)),
            name: place.there,
            capabilities: modern_words,
            log_level,
            wants_log: session.is_some(),
            progress: token.is_some(),
            limit: None,
            permission,
        }),
        control: place.control,
        token,
        abilities,
        client: client.clone(),
        view,
    })
}

/// On whose behalf a request without a session is served.
pub(super) fn slot_of(caller: &Caller, client: &Client) -> Slot {
    Slot {
        principal: caller.principal.clone(),
        owner: caller.owner().clone(),
        session: None,
        ended: None,
        capabilities: Abilities::read(&client.capabilities).legacy(),
    }
}

/// On whose behalf a legacy session is served.
pub(super) fn slot(caller: &Caller, session: &Session) -> Slot {
    Slot {
        principal: caller.principal.clone(),
        owner: caller.owner().clone(),
        session: Some(session.key()),
        ended: Some(session.ended().clone()),
        capabilities: Abilities::read(&session.capabilities).legacy(),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Tool,
    Prompt,
}

fn named(
    caller: &Caller,
    view: &View,
    params: CallParams<'_>,
    kind: Kind,
) -> Result<CallRoute, RpcError> {
    let name = text_of(params.name, "name")?;
    let target = match kind {
        Kind::Tool => view.tool(&name),
        Kind::Prompt => view.prompt(&name),
    };
    match (target, &caller.scope) {
        (Some(target), _) if target.task_only => Err(task_only(&name)),
        (Some(target), _) => Ok(CallRoute {
            params: None,
            need: match kind {
                Kind::Tool => Requirement::Tool {
                    name: name.clone(),
                    tool: target.name.clone(),
                },
                Kind::Prompt => Requirement::Prompts,
            },
            there: Some(target.name.clone()),
            server: target.server.clone(),
            wrapped: target.wrapped,
            control: target.control.clone(),
            what: name,
        }),
        // Some servers have more than they list; this is theirs to judge.
        (
            None,
            Scope::Server {
                name: server,
                filter: None,
            },
        ) => Ok(CallRoute {
            server: server.clone(),
            params: None,
            there: None,
            what: name,
            wrapped: false,
            need: Requirement::Prompts,
            control: view.control().cloned(),
        }),
        (None, Scope::Server { .. } | Scope::Everything { .. } | Scope::Entry(_)) => {
            let word = match kind {
                Kind::Tool => "tool",
                Kind::Prompt => "prompt",
            };
            let mut error = unknown(word, &name);
            if let Some(server) = view.absent(&name) {
                error.message += &format!("; server {server:?} is not connected");
            }
            let granted = caller.scope.grant().and_then(|grant| grant.tool(&name));
            if matches!(kind, Kind::Tool) && granted.is_some() {
                error.message += "; it is not available now";
            }
            Err(error)
        }
    }
}

/// Tasks are not offered, so a request for one is a request for the result:
/// whoever offers none must ignore `task`, says revision 2025-11-25.
fn without_task(whole: Option<&RawValue>, params: CallParams<'_>) -> Option<Box<RawValue>> {
    params.task?;
    Some(remove_members(whole?, &["task"]).into_owned())
}

fn task_only(name: &str) -> RpcError {
    let text = format!(
        "{name} runs only as a task (its server says taskSupport \"required\"), and Portway does \
         not support tasks: it cannot be called through Portway"
    );
    RpcError::new(code::INVALID_PARAMS, text)
}

pub(super) fn unknown(word: &str, name: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("Unknown {word}: {name}"))
}

pub(super) fn no_resource(uri: &str) -> RpcError {
    let text = format!("Resource not found: {uri}");
    let error = RpcError::new(code::RESOURCE_NOT_FOUND, text);
    match serde_json::value::to_raw_value(&serde_json::json!({ "uri": uri })) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}

fn resource(caller: &Caller, view: &View, params: CallParams<'_>) -> Result<CallRoute, RpcError> {
    let uri = text_of(params.uri, "uri")?;
    let (server, there, need) = match view.handed(&uri) {
        Some(handed) => (
            handed.server.into(),
            handed.uri.to_owned(),
            Requirement::Link {
                tool: handed.tool.to_owned(),
            },
        ),
        None => {
            let (server, there) = place_of(&caller.scope, view, &uri)?;
            (server, there, Requirement::Resources)
        }
    };
    Ok(CallRoute {
        params: None,
        there: Some(there),
        server,
        what: uri,
        wrapped: false,
        need,
        control: None,
    })
}

/// The server of a resource, and its URI there. On one server's own endpoint
/// every URI is that server's to judge.
pub(super) fn place_of(
    scope: &Scope,
    view: &View,
    uri: &str,
) -> Result<(Arc<str>, String), RpcError> {
    if let Some(place) = view.resource(uri) {
        return Ok(place);
    }
    match scope {
        Scope::Server { name, filter: None } => Ok((name.clone(), uri.to_owned())),
        Scope::Server { .. } | Scope::Everything { .. } | Scope::Entry(_) => Err(no_resource(uri)),
    }
}

/// `completion/complete`: by the prompt or the template it is about.
fn reference(
    caller: &Caller,
    view: &View,
    incoming: ClientRequest<'_>,
) -> Result<CallRoute, RpcError> {
    let bad = || {
        RpcError::new(
            code::INVALID_PARAMS,
            "ref: must name a prompt or a resource",
        )
    };
    let params = incoming.params.ok_or_else(bad)?;
    let reference = member(params, "ref").ok_or_else(bad)?;
    let kind = text_param(Some(reference), "type").map_err(|_| bad())?;
    let (server, member_name, here, there) = match kind.as_str() {
        "ref/prompt" => {
            let name = text_param(Some(reference), "name").map_err(|_| bad())?;
            match (view.prompt(&name), &caller.scope) {
                (Some(target), _) => (
                    target.server.clone(),
                    "name",
                    name.clone(),
                    target.name.clone(),
                ),
                (
                    None,
                    Scope::Server {
                        name: server,
                        filter: None,
                    },
                ) => (server.clone(), "name", name.clone(), name),
                _ => return Err(unknown("prompt", &name)),
            }
        }
        "ref/resource" => {
            let uri = text_param(Some(reference), "uri").map_err(|_| bad())?;
            let (server, there) = place_of(&caller.scope, view, &uri)?;
            (server, "uri", uri, there)
        }
        _ => return Err(bad()),
    };
    let params = match renamed(Some(reference.to_owned()), member_name, &here, &there) {
        Some(reference) => set_member(params, "ref", &reference),
        None => params.to_owned(),
    };
    Ok(CallRoute {
        server,
        params: Some(params),
        what: here,
        there: None,
        wrapped: false,
        need: match member_name {
            "name" => Requirement::Prompts,
            _ => Requirement::Resources,
        },
        control: None,
    })
}

/// The params with one member as the server knows it.
fn renamed(
    params: Option<Box<RawValue>>,
    member: &str,
    here: &str,
    there: &str,
) -> Option<Box<RawValue>> {
    if here == there {
        return params;
    }
    let there = serde_json::value::to_raw_value(there).ok()?;
    params.map(|params| set_member(&params, member, &there))
}
