//! The methods of both eras: which side sends them, and their properties.

#[cfg(test)]
mod tests;

use super::era::Era;

/// The Tasks extension, off unless both sides name it.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    Request,
    Notification,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
    Either,
}

/// The properties of a known method. Extensions may use unknown ones.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub name: &'static str,
    pub kind: MethodKind,
    /// The sender in legacy revisions, and the first revision that has it.
    pub legacy: Option<(Sender, &'static str)>,
    pub modern: Option<Sender>,
    /// The server capability it needs.
    pub capability: Option<&'static str>,
    /// The extension that brings it to the modern era.
    pub extension: Option<&'static str>,
    /// The params member that `Mcp-Name` mirrors.
    pub name_param: Option<&'static str>,
    /// Whether its complete results carry `ttlMs` and `cacheScope`.
    pub cacheable: bool,
    /// Whether its result may be `input_required`.
    pub interactive: bool,
}

impl Method {
    /// The sender in an era; None if the era does not have the method.
    pub fn sender(&self, era: Era) -> Option<Sender> {
        match era {
            Era::Legacy => self.legacy.map(|(sender, _)| sender),
            Era::Modern => self.modern,
        }
    }
}

pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// The params member that `Mcp-Name` mirrors, for the methods that have one.
pub fn name_param(method: &str) -> Option<&'static str> {
    find(method)?.name_param
}

pub(crate) fn is_cacheable(method: &str) -> bool {
    find(method).is_some_and(|method| method.cacheable)
}

const FIRST: &str = "2024-11-05";
const NOV_2025: &str = "2025-11-25";

const fn row(
    name: &'static str,
    kind: MethodKind,
    legacy: Option<(Sender, &'static str)>,
    modern: Option<Sender>,
) -> Method {
    Method {
        name,
        kind,
        legacy,
        modern,
        capability: None,
        extension: None,
        name_param: None,
        cacheable: false,
        interactive: false,
    }
}

/// A request of clients in both eras, to servers with a capability.
const fn client_request(name: &'static str, capability: &'static str) -> Method {
    let client = Sender::Client;
    Method {
        capability: Some(capability),
        ..row(
            name,
            MethodKind::Request,
            Some((client, FIRST)),
            Some(client),
        )
    }
}

const fn list_request(name: &'static str, capability: &'static str) -> Method {
    Method {
        cacheable: true,
        ..client_request(name, capability)
    }
}

/// A notification of servers in both eras.
const fn server_notification(name: &'static str, capability: &'static str) -> Method {
    let server = Sender::Server;
    Method {
        capability: Some(capability),
        ..row(
            name,
            MethodKind::Notification,
            Some((server, FIRST)),
            Some(server),
        )
    }
}

/// A request that only one era has, or that the modern era turned into data.
const fn legacy_request(name: &'static str, sender: Sender, since: &'static str) -> Method {
    row(name, MethodKind::Request, Some((sender, since)), None)
}

const fn legacy_notification(name: &'static str, sender: Sender, since: &'static str) -> Method {
    row(name, MethodKind::Notification, Some((sender, since)), None)
}

const fn task_request(name: &'static str, legacy: Option<(Sender, &'static str)>) -> Method {
    Method {
        extension: Some(TASKS),
        name_param: Some("taskId"),
        ..row(name, MethodKind::Request, legacy, Some(Sender::Client))
    }
}

const METHODS: &[Method] = &[
    // Hot ones first.
    Method {
        name_param: Some("name"),
        interactive: true,
        ..client_request("tools/call", "tools")
    },
    list_request("tools/list", "tools"),
    row(
        "notifications/progress",
        MethodKind::Notification,
        Some((Sender::Either, FIRST)),
        Some(Sender::Server),
    ),
    Method {
        name_param: Some("uri"),
        interactive: true,
        cacheable: true,
        ..client_request("resources/read", "resources")
    },
    Method {
        name_param: Some("name"),
        interactive: true,
        ..client_request("prompts/get", "prompts")
    },
    list_request("resources/list", "resources"),
    list_request("resources/templates/list", "resources"),
    list_request("prompts/list", "prompts"),
    client_request("completion/complete", "completions"),
    Method {
        cacheable: true,
        ..row(
            "server/discover",
            MethodKind::Request,
            None,
            Some(Sender::Client),
        )
    },
    row(
        "subscriptions/listen",
        MethodKind::Request,
        None,
        Some(Sender::Client),
    ),
    legacy_request("initialize", Sender::Client, FIRST),
    legacy_request("ping", Sender::Either, FIRST),
    Method {
        capability: Some("logging"),
        ..legacy_request("logging/setLevel", Sender::Client, FIRST)
    },
    Method {
        capability: Some("resources"),
        ..legacy_request("resources/subscribe", Sender::Client, FIRST)
    },
    Method {
        capability: Some("resources"),
        ..legacy_request("resources/unsubscribe", Sender::Client, FIRST)
    },
    legacy_request("sampling/createMessage", Sender::Server, FIRST),
    legacy_request("roots/list", Sender::Server, FIRST),
    legacy_request("elicitation/create", Sender::Server, "2025-06-18"),
    task_request("tasks/get", Some((Sender::Either, NOV_2025))),
    task_request("tasks/cancel", Some((Sender::Either, NOV_2025))),
    task_request("tasks/update", None),
    legacy_request("tasks/result", Sender::Either, NOV_2025),
    legacy_request("tasks/list", Sender::Either, NOV_2025),
    // A modern server sends it too, on stdio, to end a listen.
    row(
        "notifications/cancelled",
        MethodKind::Notification,
        Some((Sender::Either, FIRST)),
        Some(Sender::Either),
    ),
    server_notification("notifications/message", "logging"),
    server_notification("notifications/tools/list_changed", "tools"),
    server_notification("notifications/prompts/list_changed", "prompts"),
    server_notification("notifications/resources/list_changed", "resources"),
    server_notification("notifications/resources/updated", "resources"),
    row(
        "notifications/subscriptions/acknowledged",
        MethodKind::Notification,
        None,
        Some(Sender::Server),
    ),
    Method {
        extension: Some(TASKS),
        ..row(
            "notifications/tasks",
            MethodKind::Notification,
            None,
            Some(Sender::Server),
        )
    },
    legacy_notification("notifications/tasks/status", Sender::Either, NOV_2025),
    legacy_notification("notifications/initialized", Sender::Client, FIRST),
    legacy_notification("notifications/roots/list_changed", Sender::Client, FIRST),
    legacy_notification(
        "notifications/elicitation/complete",
        Sender::Server,
        NOV_2025,
    ),
];
