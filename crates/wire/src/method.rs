//! The methods of both eras: who sends them, and what is special about them.

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

/// What is known of a method. Unknown ones are nothing to be ashamed of:
/// extensions have them.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub name: &'static str,
    pub kind: MethodKind,
    /// Who sends it in legacy revisions, and the first that has it.
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
    /// Who sends it in an era; None if the era does not have it.
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

/// Asked by clients in both eras, of servers with a capability.
const fn ask(name: &'static str, capability: &'static str) -> Method {
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

const fn list(name: &'static str, capability: &'static str) -> Method {
    Method {
        cacheable: true,
        ..ask(name, capability)
    }
}

/// Told by servers in both eras.
const fn news(name: &'static str, capability: &'static str) -> Method {
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
const fn old(name: &'static str, sender: Sender, since: &'static str) -> Method {
    row(name, MethodKind::Request, Some((sender, since)), None)
}

const fn old_news(name: &'static str, sender: Sender, since: &'static str) -> Method {
    row(name, MethodKind::Notification, Some((sender, since)), None)
}

const fn task(name: &'static str, legacy: Option<(Sender, &'static str)>) -> Method {
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
        ..ask("tools/call", "tools")
    },
    list("tools/list", "tools"),
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
        ..ask("resources/read", "resources")
    },
    Method {
        name_param: Some("name"),
        interactive: true,
        ..ask("prompts/get", "prompts")
    },
    list("resources/list", "resources"),
    list("resources/templates/list", "resources"),
    list("prompts/list", "prompts"),
    ask("completion/complete", "completions"),
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
    old("initialize", Sender::Client, FIRST),
    old("ping", Sender::Either, FIRST),
    Method {
        capability: Some("logging"),
        ..old("logging/setLevel", Sender::Client, FIRST)
    },
    Method {
        capability: Some("resources"),
        ..old("resources/subscribe", Sender::Client, FIRST)
    },
    Method {
        capability: Some("resources"),
        ..old("resources/unsubscribe", Sender::Client, FIRST)
    },
    old("sampling/createMessage", Sender::Server, FIRST),
    old("roots/list", Sender::Server, FIRST),
    old("elicitation/create", Sender::Server, "2025-06-18"),
    task("tasks/get", Some((Sender::Either, NOV_2025))),
    task("tasks/cancel", Some((Sender::Either, NOV_2025))),
    task("tasks/update", None),
    old("tasks/result", Sender::Either, NOV_2025),
    old("tasks/list", Sender::Either, NOV_2025),
    // A modern server sends it too, on stdio, to end a listen.
    row(
        "notifications/cancelled",
        MethodKind::Notification,
        Some((Sender::Either, FIRST)),
        Some(Sender::Either),
    ),
    news("notifications/message", "logging"),
    news("notifications/tools/list_changed", "tools"),
    news("notifications/prompts/list_changed", "prompts"),
    news("notifications/resources/list_changed", "resources"),
    news("notifications/resources/updated", "resources"),
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
    old_news("notifications/tasks/status", Sender::Either, NOV_2025),
    old_news("notifications/initialized", Sender::Client, FIRST),
    old_news("notifications/roots/list_changed", Sender::Client, FIRST),
    old_news(
        "notifications/elicitation/complete",
        Sender::Server,
        NOV_2025,
    ),
];
