//! The tools as they are listed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::search::MOST_SHOWN;
use crate::record::shape::{self, object};
use config::schema::request;
use fleet::catalog::{Catalog, CatalogItem, ListFacts, ListKind};

/// Its name is its variant's, in snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ControlTool {
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

impl ControlTool {
    const ALL: [ControlTool; 10] = [
        ControlTool::ListServers,
        ControlTool::GetServer,
        ControlTool::AddServer,
        ControlTool::UpdateServer,
        ControlTool::RemoveServer,
        ControlTool::StartServer,
        ControlTool::StopServer,
        ControlTool::RestartServer,
        ControlTool::ServerLogs,
        ControlTool::ListTools,
    ];

    pub(super) fn named(name: &str) -> Option<ControlTool> {
        serde_json::from_value(name.into()).ok()
    }

    fn title(self) -> &'static str {
        match self {
            ControlTool::ListServers => "List MCP servers",
            ControlTool::GetServer => "Show an MCP server",
            ControlTool::AddServer => "Add an MCP server",
            ControlTool::UpdateServer => "Change an MCP server",
            ControlTool::RemoveServer => "Remove an MCP server",
            ControlTool::StartServer => "Start an MCP server",
            ControlTool::StopServer => "Stop an MCP server",
            ControlTool::RestartServer => "Restart an MCP server",
            ControlTool::ServerLogs => "Read an MCP server's log",
            ControlTool::ListTools => "Search the tools of all servers",
        }
    }

    fn description(self) -> &'static str {
        match self {
            ControlTool::ListServers => {
                "All MCP servers that Portway knows: state, error, number of tools, definition. \
                 Values of environment variables and headers are covered with ***."
            }
            ControlTool::GetServer => "One MCP server: state, error, number of tools, definition.",
            ControlTool::AddServer => {
                "Registers an MCP server and, unless autoStart is false, starts it: the given \
                 command is run on Portway's machine with Portway's rights, or the given url is \
                 connected to. Give command (with args, env, cwd) or url (with headers). The \
                 definition is kept. The answer comes before the server has settled: get_server \
                 tells what became of it."
            }
            ControlTool::UpdateServer => {
                "Changes the definition of an MCP server; what is not mentioned stays. A server \
                 that runs is restarted with it, so a new command is run at once."
            }
            ControlTool::RemoveServer => {
                "Stops an MCP server, with every process it started, and deletes its definition \
                 from where it is kept. This cannot be undone."
            }
            ControlTool::StartServer => {
                "Starts an MCP server, or tries one again that failed, and waits until it is \
                 connected or has failed. Nothing happens to one that runs."
            }
            ControlTool::StopServer => {
                "Stops an MCP server and every process it started; its tools are gone until it is \
                 started again. Calls in flight get a little time to finish."
            }
            ControlTool::RestartServer => {
                "Stops an MCP server and starts it anew, and waits until it is connected or has \
                 failed."
            }
            ControlTool::ServerLogs => {
                "The last lines of an MCP server's log: what it wrote to stderr, and what Portway \
                 noticed about it."
            }
            ControlTool::ListTools => {
                "The tools of all connected servers by server, name and description; search finds \
                 those that have all its words."
            }
        }
    }

    /// Whether it only reads, may destroy, changes nothing when it is repeated,
    /// and reaches beyond Portway: a command that is run may do anything.
    fn hints(self) -> [bool; 4] {
        match self {
            ControlTool::AddServer | ControlTool::RestartServer => [false, true, false, true],
            ControlTool::UpdateServer => [false, true, true, true],
            ControlTool::RemoveServer | ControlTool::StopServer => [false, true, true, false],
            ControlTool::StartServer => [false, false, true, true],
            ControlTool::ListServers
            | ControlTool::GetServer
            | ControlTool::ServerLogs
            | ControlTool::ListTools => [true, false, true, false],
        }
    }

    fn input(self) -> Value {
        let server = json!({"type": "string", "description": "The server's name or id."});
        let name = json!({"type": "string",
            "description": "The same as server; one of the two is enough."});
        // No alternatives at the root, which models' APIs refuse: a call with
        // neither of them gets an error instead.
        let which = [("server", &server), ("name", &name)];
        match self {
            ControlTool::ListServers => object(&[], &[]),
            ControlTool::AddServer => request::argument(),
            ControlTool::UpdateServer => {
                let mut changes = request::argument_change();
                changes["description"] = "The fields to change. A null takes a field away.".into();
                object(&[("changes", &changes)], &which)
            }
            ControlTool::GetServer
            | ControlTool::RemoveServer
            | ControlTool::StartServer
            | ControlTool::StopServer
            | ControlTool::RestartServer => object(&[], &which),
            ControlTool::ServerLogs => {
                let from = json!({"type": "integer", "minimum": 0,
                    "description": "The number (seq) of the first line wanted."});
                let limit = json!({"type": "integer", "minimum": 0, "default": 200,
                    "description": "The most lines wanted; the newest are kept."});
                let all = [&which[..], &[("from", &from), ("limit", &limit)]].concat();
                object(&[], &all)
            }
            ControlTool::ListTools => {
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
        let text = shape::text();
        match self {
            ControlTool::ListServers => object(&[("servers", &list(record()))], &[]),
            ControlTool::RemoveServer => {
                let uncovered = json!({"type": "boolean",
                    "description": "Whether another definition of the same name is in force now."});
                object(&[("removed", &text), ("uncovered", &uncovered)], &[])
            }
            ControlTool::ServerLogs => object(&[("lines", &list(shape::log_line()))], &[]),
            ControlTool::ListTools => {
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
                object(&[("tools", &list(tool)), ("total", &shape::count())], &[])
            }
            _ => record(),
        }
    }

    fn item(self) -> CatalogItem {
        let [reads, destroys, repeats, open] = self.hints();
        let listed = json!({
            "name": self,
            "title": self.title(),
            "description": self.description(),
            "inputSchema": self.input(),
            "outputSchema": self.output(),
            "annotations": {
                "title": self.title(),
                "readOnlyHint": reads,
                "destructiveHint": destroys,
                "idempotentHint": repeats,
                "openWorldHint": open,
            },
        });
        let raw = to_raw_value(&listed).expect("plain data serialises into memory");
        CatalogItem::new(ListKind::Tools, Arc::from(raw)).expect("it has a name")
    }
}

/// All tools.
pub(super) fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let tools = ControlTool::ALL.map(ControlTool::item);
    catalog.put(ListKind::Tools, tools.into(), ListFacts::default());
    catalog
}
