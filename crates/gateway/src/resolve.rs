//! Finds the server of a client's request.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::ability::Abilities;
use super::activity::CallWatch;
use super::call::Call;
use super::control::Control;
use super::permission::{GrantPermission, Requirement};
use super::request::static_method;
use super::view::View;
use super::{Caller, Client, ClientRequest, Scope, text_of, text_param};
use fleet::CallRequest;
use store::Store;
use wire::meta::RequestParams;
use wire::object::{member, raw, remove_members, set_member};
use wire::result::error_to_modern;
use wire::{Era, RpcError, capability, code};

/// The target of a call.
struct CallRoute {
    server: Arc<str>,
    /// The name or URI by which the client knows what it calls.
    client_name: String,
    /// The same at the server; `None` if the params already contain it.
    server_name: Option<Arc<str>>,
    /// The params, where they are not the client's own.
    params: Option<Box<RawValue>>,
    wrapped: bool,
    /// The grant that an entry needs; `None` for other callers.
    requirement: Option<Requirement>,
    /// Set where the server is Portway itself.
    control: Option<Arc<Control>>,
}

impl CallRoute {
    fn new(server: Arc<str>, client_name: String, requirement: Option<Requirement>) -> CallRoute {
        CallRoute {
            server,
            client_name,
            server_name: None,
            params: None,
            wrapped: false,
            requirement,
            control: None,
        }
    }
}

/// Makes a call of a request: finds its server and what the caller needs to
/// call it.
pub(super) fn resolve(
    store: &Arc<Store>,
    view: Arc<View>,
    caller: &Caller,
    client: &Client,
    incoming: ClientRequest<'_>,
) -> Result<Call, RpcError> {
    let found = &incoming.found;
    let route = match incoming.method {
        "tools/call" => tool(caller, &view, incoming),
        "prompts/get" => prompt(caller, &view, found),
        "resources/read" => resource(caller, &view, found),
        _ => completion(caller, &view, incoming.params),
    };
    let route = route.map_err(|error| match client.era {
        Era::Modern => error_to_modern(error, None),
        Era::Legacy => error,
    })?;
    let modern_capabilities = match client.era {
        Era::Modern => client.capabilities.clone(),
        Era::Legacy => match capability::to_modern(&client.capabilities) {
            Cow::Borrowed(_) => client.capabilities.clone(),
            Cow::Owned(modern) => Arc::from(modern),
        },
    };
    let session = client.session.as_deref();
    let log_level = match session {
        Some(session) => session.level(),
        None => client.log_level,
    };
    let abilities = Abilities::read(&client.capabilities);
    let linking_tool = match &route.requirement {
        Some(Requirement::Tool { tool, .. } | Requirement::Link { tool }) => Some(tool.clone()),
        _ => None,
    };
    let requirement = route.requirement;
    let permission = requirement.and_then(|requirement| {
        GrantPermission::of(&caller.scope, store, requirement, &route.server)
    });
    let params_as_sent = || incoming.params.map(ToOwned::to_owned);
    Ok(Call {
        id: incoming.id.to_owned(),
        watch: CallWatch::default(),
        client_name: route.client_name,
        wrapped: route.wrapped,
        linking_tool,
        request: Arc::new(CallRequest {
            server: route.server,
            slot: caller.slot(abilities, session),
            method: static_method(incoming.method),
            params: route.params.or_else(params_as_sent),
            name: route.server_name,
            capabilities: modern_capabilities,
            log_level,
            wants_log: session.is_some(),
            progress: found.progress_token.is_some(),
            limit: None,
            permission,
        }),
        control: route.control,
        progress_token: found.progress_token.map(|json| raw(json.into())),
        abilities,
        client: client.clone(),
        view,
    })
}

fn tool(caller: &Caller, view: &View, incoming: ClientRequest<'_>) -> Result<CallRoute, RpcError> {
    let name = text_of(incoming.found.name, "name")?;
    // Tasks are not offered, so a request for one is a request for the result:
    // revision 2025-11-25 requires servers without tasks to ignore `task`.
    let with_task = incoming.params.filter(|_| incoming.found.task.is_some());
    let without_task = with_task.map(|params| remove_members(params, &["task"]).into_owned());
    let route = match view.tool(&name) {
        Some(target) if target.traits.task_only => return Err(task_only(&name)),
        Some(target) => CallRoute {
            server_name: Some(target.name.clone()),
            wrapped: target.traits.wrapped,
            control: target.control.clone(),
            requirement: caller.scope.grant().map(|_| Requirement::Tool {
                name: name.clone(),
                tool: target.name.clone(),
            }),
            ..CallRoute::new(target.server.clone(), name, None)
        },
        None => {
            let Some(server) = caller.scope.whole_server() else {
                return Err(unknown_tool(caller, view, &name));
            };
            CallRoute {
                control: view.control().cloned(),
                ..CallRoute::new(server.clone(), name, None)
            }
        }
    };
    Ok(CallRoute {
        params: without_task,
        ..route
    })
}

fn prompt(caller: &Caller, view: &View, params: &RequestParams<'_>) -> Result<CallRoute, RpcError> {
    let name = text_of(params.name, "name")?;
    let (server, server_name) = prompt_of(&caller.scope, view, &name)?;
    let requirement = caller.scope.grant().map(|_| Requirement::Prompts);
    Ok(CallRoute {
        server_name,
        ..CallRoute::new(server, name, requirement)
    })
}

fn resource(
    caller: &Caller,
    view: &View,
    params: &RequestParams<'_>,
) -> Result<CallRoute, RpcError> {
    let uri = text_of(params.uri, "uri")?;
    let (server, server_uri, requirement) = match view.tool_link(&uri) {
        Some(link) => (
            link.server.into(),
            link.uri.to_owned(),
            Requirement::Link {
                tool: link.tool.into(),
            },
        ),
        None => {
            let (server, server_uri) = resource_of(&caller.scope, view, &uri)?;
            (server, server_uri, Requirement::Resources)
        }
    };
    let requirement = caller.scope.grant().map(|_| requirement);
    Ok(CallRoute {
        server_name: Some(server_uri.into()),
        ..CallRoute::new(server, uri, requirement)
    })
}

/// `completion/complete`: goes where the prompt or template it refers to is.
fn completion(
    caller: &Caller,
    view: &View,
    params: Option<&RawValue>,
) -> Result<CallRoute, RpcError> {
    let bad = || {
        let text = "ref: must name a prompt or a resource";
        RpcError::new(code::INVALID_PARAMS, text)
    };
    let params = params.ok_or_else(bad)?;
    let reference = member(params, "ref").ok_or_else(bad)?;
    let text = |name| text_param(Some(reference), name).map_err(|_| bad());
    let (server, member_name, client_name, server_name, requirement) = match text("type")?.as_str()
    {
        "ref/prompt" => {
            let name = text("name")?;
            let (server, own) = prompt_of(&caller.scope, view, &name)?;
            (server, "name", name, own, Requirement::Prompts)
        }
        "ref/resource" => {
            let uri = text("uri")?;
            let (server, own) = resource_of(&caller.scope, view, &uri)?;
            (server, "uri", uri, Some(own.into()), Requirement::Resources)
        }
        _ => return Err(bad()),
    };
    let renamed = server_name.filter(|own| **own != *client_name);
    let renamed = renamed.and_then(|own| serde_json::value::to_raw_value(&*own).ok());
    let params = renamed.map(|own| {
        let reference = set_member(reference, member_name, &own);
        set_member(params, "ref", &reference)
    });
    let requirement = caller.scope.grant().map(|_| requirement);
    Ok(CallRoute {
        params,
        ..CallRoute::new(server, client_name, requirement)
    })
}

/// The server of a prompt, and its name there where that is another.
fn prompt_of(
    scope: &Scope,
    view: &View,
    name: &str,
) -> Result<(Arc<str>, Option<Arc<str>>), RpcError> {
    match (view.prompt(name), scope.whole_server()) {
        (Some(target), _) => Ok((target.server.clone(), Some(target.name.clone()))),
        (None, Some(server)) => Ok((server.clone(), None)),
        (None, None) => Err(unknown_name(view, "prompt", name)),
    }
}

/// The server of a resource, and its URI there.
pub(super) fn resource_of(
    scope: &Scope,
    view: &View,
    uri: &str,
) -> Result<(Arc<str>, String), RpcError> {
    let listed = view.resource(uri);
    let found = listed.or_else(|| Some((scope.whole_server()?.clone(), uri.to_owned())));
    found.ok_or_else(|| no_resource(uri))
}

fn task_only(name: &str) -> RpcError {
    let text = format!(
        "{name} runs only as a task (its server says taskSupport \"required\"), and Portway does \
         not support tasks: it cannot be called through Portway"
    );
    RpcError::new(code::INVALID_PARAMS, text)
}

fn unknown_tool(caller: &Caller, view: &View, name: &str) -> RpcError {
    let mut error = unknown_name(view, "tool", name);
    let granted = caller.scope.grant().and_then(|grant| grant.tool(name));
    if granted.is_some() {
        error.message += "; it is not available now";
    }
    error
}

fn unknown_name(view: &View, kind: &str, name: &str) -> RpcError {
    let mut error = unknown(kind, name);
    if let Some(server) = view.absent(name) {
        error.message += &format!("; server {server:?} is not connected");
    }
    error
}

pub(super) fn unknown(kind: &str, name: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("Unknown {kind}: {name}"))
}

pub(super) fn no_resource(uri: &str) -> RpcError {
    let text = format!("Resource not found: {uri}");
    let error = RpcError::new(code::RESOURCE_NOT_FOUND, text);
    match serde_json::value::to_raw_value(&serde_json::json!({ "uri": uri })) {
        Ok(data) => error.with_data(data),
        Err(_) => error,
    }
}
