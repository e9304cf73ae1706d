//! The tools as they are listed.

use std::sync::Arc;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::search::MOST_SHOWN;
use crate::record::shape::{self, object};
use config::schema::request;
use fleet::catalog::{Catalog, Facts, Item, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    ListServers,
    GetServer,
    AddServer,
    UpdateServer,
    RemoveServer,
    StartServer,
    StopServer,
    RestartServer,
    ServerLogs,
    ListTools,
}

/// What a client may think of a call before it makes one.
struct Manner {
    reads: bool,
    destroys: bool,
    /// Twice is as good as once.
    repeats: bool,
    /// It reaches beyond Portway: what a server does when it is started is
    /// its own.
    open: bool,
}

const READING: Manner = Manner {
    reads: true,
    destroys: false,
    repeats: true,
    open: false,
};

impl Tool {
    const ALL: [Tool; 10] = [
        Tool::ListServers,
        Tool::GetServer,
        Tool::AddServer,
        Tool::UpdateServer,
        Tool::RemoveServer,
        Tool::StartServer,
        Tool::StopServer,
        Tool::RestartServer,
        Tool::ServerLogs,
        Tool::ListTools,
    ];

    pub(super) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Tool::ListServers => "list_servers",
            Tool::GetServer => "get_server",
            Tool::AddServer => "add_server",
            Tool::UpdateServer => "update_server",
            Tool::RemoveServer => "remove_server",
            Tool::StartServer => "start_server",
            Tool::StopServer => "stop_server",
            Tool::RestartServer => "restart_server",
            Tool::ServerLogs => "server_logs",
            Tool::ListTools => "list_tools",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Tool::ListServers => "List MCP servers",
            Tool::GetServer => "Show an MCP server",
            Tool::AddServer => "Add an MCP server",
            Tool::UpdateServer => "Change an MCP server",
            Tool::RemoveServer => "Remove an MCP server",
            Tool::StartServer => "Start an MCP server",
            Tool::StopServer => "Stop an MCP server",
            Tool::RestartServer => "Restart an MCP server",
            Tool::ServerLogs => "Read an MCP server's log",
            Tool::ListTools => "Search the tools of all servers",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Tool::ListServers => {
                "All MCP servers that Portway knows: state, error, number of tools, definition. \
                 Values of environment variables and headers are covered with ***."
            }
            Tool::GetServer => "One MCP server: state, error, number of tools, definition.",
            Tool::AddServer => {
                "Registers an MCP server and, unless autoStart is false, starts it: the given \
                 command is run on Portway's machine with Portway's rights, or the given url is \
                 connected to. Give command (with args, env, cwd) or url (with headers). The \
                 definition is kept. The answer comes before the server has settled: get_server \
                 tells what became of it."
            }
            Tool::UpdateServer => {
                "Changes the definition of an MCP server; what is not mentioned stays. A server \
                 that runs is restarted with it, so a new command is run at once."
            }
            Tool::RemoveServer => {
                "Stops an MCP server, with every process it started, and deletes its definition \
                 from where it is kept. This cannot be undone."
            }
            Tool::StartServer => {
                "Starts an MCP server, or tries one again that failed, and waits until it is \
                 connected or has failed. Nothing happens to one that runs."
            }
            Tool::StopServer => {
                "Stops an MCP server and every process it started; its tools are gone until it is \
                 started again. Calls in flight get a little time to finish."
            }
            Tool::RestartServer => {
                "Stops an MCP server and starts it anew, and waits until it is connected or has \
                 failed."
            }
            Tool::ServerLogs => {
                "The last lines of an MCP server's log: what it wrote to stderr, and what Portway \
                 noticed about it."
            }
            Tool::ListTools => {
                "The tools of all connected servers by server, name and description; search finds \
                 those that have all its words."
            }
        }
    }

    fn manner(self) -> Manner {
        let (destroys, repeats, open) = match self {
            Tool::ListServers | Tool::GetServer | Tool::ServerLogs | Tool::ListTools => {
                return READING;
            }
            // A command that is run may do anything.
            Tool::AddServer => (true, false, true),
            Tool::UpdateServer => (true, true, true),
            Tool::RemoveServer => (true, true, false),
            Tool::StartServer => (false, true, true),
            Tool::StopServer => (true, true, false),
            Tool::RestartServer => (true, false, true),
        };
        Manner {
            reads: false,
            destroys,
            repeats,
            open,
        }
    }

    fn input(self) -> Value {
        let server = json!({"type": "string", "description": "The server's name or id."});
        let name = json!({"type": "string",
            "description": "The same as server; one of the two is enough."});
        // No alternatives at the root, which models' APIs refuse: that one of
        // them is needed is told to who gives neither.
        let which = [("server", &server), ("name", &name)];
        match self {
            Tool::ListServers => object(&[], &[]),
            Tool::AddServer => request::argument(),
            Tool::UpdateServer => {
                let mut changes = request::argument_change();
                changes["description"] = "The fields to change. A null takes a field away.".into();
                object(&[("changes", &changes)], &which)
            }
            Tool::GetServer
            | Tool::RemoveServer
            | Tool::StartServer
            | Tool::StopServer
            | Tool::RestartServer => object(&[], &which),
            Tool::ServerLogs => {
                let from = json!({"type": "integer", "minimum": 0,
                    "description": "The number (seq) of the first line wanted."});
                let limit = json!({"type": "integer", "minimum": 0, "default": 200,
                    "description": "The most lines wanted; the newest are kept."});
                object(
                    &[],
                    &[&which[..], &[("from", &from), ("limit", &limit)]].concat(),
                )
            }
            Tool::ListTools => {
                let search = json!({"type": "string",
                    "description": "Words to look for, in any order; upper and lower case are the same."});
                let limit = json!({"type": "integer", "minimum": 0, "maximum": MOST_SHOWN,
                    "default": 100, "description": "The most tools wanted; total says how many there are."});
                let all = [&which[..], &[("search", &search), ("limit", &limit)]].concat();
                object(&[], &all)
            }
        }
    }

    fn output(self) -> Value {
        let record = || shape::server(&shape::config(), &shape::problem());
        let list = |of: Value| json!({"type": "array", "items": of});
        let text = json!({"type": "string"});
        match self {
            Tool::ListServers => object(&[("servers", &list(record()))], &[]),
            Tool::RemoveServer => {
                let uncovered = json!({"type": "boolean",
                    "description": "Whether another definition of the same name is in force now."});
                object(&[("removed", &text), ("uncovered", &uncovered)], &[])
            }
            Tool::ServerLogs => object(&[("lines", &list(shape::log_line()))], &[]),
            Tool::ListTools => {
                let name = json!({"type": "string",
                    "description": "What to call it by on the shared endpoint."});
                let tool = object(
                    &[
                        ("name", &name),
                        ("key", &text),
                        ("server", &text),
                        ("tool", &text),
                    ],
                    &[("title", &text), ("description", &text)],
                );
                let total = json!({"type": "integer", "minimum": 0});
                object(&[("tools", &list(tool)), ("total", &total)], &[])
            }
            _ => record(),
        }
    }

    fn item(self) -> Item {
        let manner = self.manner();
        let listed = json!({
            "name": self.name(),
            "title": self.title(),
            "description": self.description(),
            "inputSchema": self.input(),
            "outputSchema": self.output(),
            "annotations": {
                "title": self.title(),
                "readOnlyHint": manner.reads,
                "destructiveHint": manner.destroys,
                "idempotentHint": manner.repeats,
                "openWorldHint": manner.open,
            },
        });
        let raw = to_raw_value(&listed).expect("plain data serialises into memory");
        Item::new(Kind::Tools, Arc::from(raw)).expect("it has a name")
    }
}

/// All there is.
pub(super) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let tools = Tool::ALL.map(Tool::item);
    catalog.put(Kind::Tools, tools.into(), Facts::default());
    catalog
}
