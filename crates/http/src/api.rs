//! Every operation of the API: its path, its handler, its access rule and its
//! OpenAPI description. The router, the document and the guard's access rules
//! are all made from this one table.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::{Router, middleware};
use serde_json::Value;

use super::admin::{self, AdminApi};
use super::health::{self, HealthApi};
use super::live::{self, LiveApi};
use super::mcp::{self, McpApi};
use super::openapi::parameters;
use super::records::{self, RecordsApi};
use super::servers::{self, ServersApi};
use super::tools::{self, ToolsApi};
use super::{catalog, files, openapi, relay};
use fleet::registry::Registry;
use store::{Entry, Instance, ToolRecord};

/// One operation. `request` and `response` name schemas of
/// [`openapi`](super::openapi); they are empty where there is no body.
pub(super) struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub id: &'static str,
    pub access: AccessRule,
    /// Parameters in the query and in headers.
    pub parameters: &'static [fn() -> Value],
    pub request: &'static str,
    pub status: &'static str,
    pub response: &'static str,
    pub summary: &'static str,
}

/// The `response` of operations whose responses MCP defines.
pub(super) const MCP: &str = "MCP";

/// The principals that may use an operation. The admin may use all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessRule {
    /// Any client may read it, without a credential.
    Public,
    /// The entry's key in the path is the credential.
    KeyInPath,
    Admin,
    Users,
    /// Clients with the key of an entry.
    EntryKeys,
}

/// The rule of a path, as the router spells it.
pub(super) fn access_rule(path: &str) -> AccessRule {
    static RULES: LazyLock<HashMap<&str, AccessRule>> =
        LazyLock::new(|| OPERATIONS.iter().map(|it| (it.path, it.access)).collect());
    RULES.get(path).copied().unwrap_or(AccessRule::Admin)
}

/// The state of the handlers.
pub struct Api {
    pub servers: ServersApi,
    pub records: RecordsApi,
    pub tools: ToolsApi,
    pub live: LiveApi,
    pub admin: AdminApi,
    pub registry: Arc<Registry>,
}

impl Api {
    /// All routes but those of health and the console's files.
    pub fn router(self) -> Router {
        let mcp = self.tools.mcp.clone();
        servers(self.servers)
            .merge(server_catalog(self.tools.clone()))
            .merge(live(self.live))
            .merge(catalog(self.tools))
            .merge(files(self.registry))
            .merge(admin(self.admin))
            .merge(records(self.records))
            .merge(mcp_shared(mcp.clone()))
            .merge(mcp_servers(mcp.clone()))
            .merge(mcp_entries(mcp))
    }
}

/// The routes of records, also for their own tests.
pub(super) fn records(records: RecordsApi) -> Router {
    owned_records(records.clone())
        .merge(records_by_key(records))
        .layer(middleware::from_fn(records::finish))
}

/// `group(state), access { method path id handler, [parameters] request => status response: summary; }`
///
/// A second handler after `|` is used where entries are relayed to another
/// Portway.
macro_rules! operations {
    ($($group:ident($state:ty), $access:ident {$(
        $method:ident $path:literal $id:ident $handler:path $(| $relayed:path)?,
        [$($parameter:ident)*] $request:literal => $status:literal $response:literal: $summary:literal;
    )*})*) => {
        pub(super) const OPERATIONS: &[Operation] = &[$($(Operation {
            method: stringify!($method),
            path: $path,
            id: stringify!($id),
            access: AccessRule::$access,
            parameters: &[$(parameters::$parameter),*],
            request: $request,
            status: $status,
            response: $response,
            summary: $summary,
        },)*)*];

        $(pub(super) fn $group(state: $state) -> Router {
            let router = Router::new();
            $(
                let route = axum::routing::$method($handler).with_state(state.clone());
                $(let route = match &state.relay {
                    Some(relay) => axum::routing::$method($relayed).with_state(relay.clone()),
                    None => route,
                };)?
                let router = router.route($path, route);
            )*
            router
        })*
    };
}

operations! {
    health(HealthApi), Public {
        get "/healthz" health health::alive, [] "" => "200" "Health": "Whether the program is there; no credential";
        get "/readyz" ready health::ready, [] "" => "200" "Ready": "Whether the enabled servers have settled once; no credential";
    }

    servers(ServersApi), Admin {
        get "/api/mcp/servers" listServers servers::list, [include] "" => "200" "ListedServer[]": "All servers, with their tools where asked for";
        post "/api/mcp/servers" createServer servers::create, [] "NewServer" => "201" "Server": "Register a server";
        get "/api/mcp/servers/{server}" showServer servers::show, [] "" => "200" "Server": "One server, its definition tagged with an ETag";
        put "/api/mcp/servers/{server}" replaceServer servers::replace, [if_match] "Definition" => "200" "Server": "Replace a definition; honours If-Match";
        patch "/api/mcp/servers/{server}" changeServer servers::change, [if_match] "DefinitionChange" => "200" "Server": "Change a part of a definition; honours If-Match";
        delete "/api/mcp/servers/{server}" deleteServer servers::remove, [] "" => "204" "": "Stop a server and remove its definition";
        post "/api/mcp/servers/{server}/start" startServer servers::start, [] "" => "200" "Server": "Start";
        post "/api/mcp/servers/{server}/stop" stopServer servers::stop, [] "" => "200" "Server": "Stop";
        post "/api/mcp/servers/{server}/restart" restartServer servers::restart, [] "" => "200" "Server": "Restart";
        get "/api/mcp/servers/{server}/tools" serverTools servers::tools, [] "" => "200" "ServerTool[]": "Its tools, as it lists them, each with its key";
        get "/api/mcp/servers/{server}/resources" serverResources servers::resources, [] "" => "200" "ServerResource[]": "Its resources and resource templates";
        get "/api/mcp/servers/{server}/prompts" serverPrompts servers::prompts, [] "" => "200" "ServerPrompt[]": "Its prompts";
        get "/api/mcp/servers/{server}/logs" serverLogs servers::logs, [from limit] "" => "200" "LogLine[]": "Its recent lines";
    }

    server_catalog(ToolsApi), Admin {
        get "/api/mcp/servers/{server}/resources/templates" serverTemplates catalog::templates, [] "" => "200" "ServerResource[]": "Its resource templates";
        get "/api/mcp/servers/{server}/resources/read" readServerResource catalog::read, [uri] "" => "200" "ResourceContents": "Read one of its resources";
        post "/api/mcp/servers/{server}/resources/read" readServerResourcePosted catalog::read_posted, [] "WantedResource" => "200" "ResourceContents": "Read one of its resources";
        post "/api/mcp/servers/{server}/prompts/get" getServerPrompt catalog::prompt, [] "WantedPrompt" => "200" "PromptMessages": "Get one of its prompts";
    }

    live(LiveApi), Admin {
        get "/api/mcp/servers/{server}/process" serverProcesses live::process, [] "" => "200" "Processes": "What runs for it";
        get "/api/mcp/servers/{server}/history" serverHistory live::history, [] "" => "200" "Moment[]": "What became of it, and why";
        get "/api/mcp/events" events live::events, [] "" => "200" "": "Server-sent events of every change";
        get "/api/mcp/activity" activity live::activity, [limit] "" => "200" "Activity": "Calls, now and lately";
    }

    catalog(ToolsApi), EntryKeys {
        get "/api/mcp/tools" formattedTools tools::list, [format filter entry if_none_match] "" => "200" "ToolList": "All tools, or those of a filter or an entry, ready for a model's API; tagged with an ETag, honours If-None-Match";
        post "/api/mcp/tools/{name}/call" callTool tools::call, [format filter entry] "ToolCall" => "200" "ToolAnswer": "Call a tool; a call that fails is answered too, in the format's words for it, and so is one of a tool that is not there, but with the format mcp: 404";
        get "/api/mcp/resources" listResources catalog::resources, [filter entry] "" => "200" "ServerResource[]": "The resources of all servers, or of a filter or an entry";
        get "/api/mcp/resources/templates" listTemplates catalog::templates, [filter entry] "" => "200" "ServerResource[]": "Their resource templates";
        get "/api/mcp/resources/read" readResource catalog::read, [uri filter entry] "" => "200" "ResourceContents": "Read a resource by its URI in the list";
        post "/api/mcp/resources/read" readResourcePosted catalog::read_posted, [filter entry] "WantedResource" => "200" "ResourceContents": "Read a resource by its URI in the list";
        get "/api/mcp/prompts" listPrompts catalog::prompts, [filter entry] "" => "200" "ServerPrompt[]": "The prompts of all servers, or of a filter or an entry";
        post "/api/mcp/prompts/get" getPrompt catalog::prompt, [filter entry] "WantedPrompt" => "200" "PromptMessages": "Get a prompt by its name in the list";
    }

    files(Arc<Registry>), Admin {
        get "/api/openapi.json" openApi openapi::document, [] "" => "200" "Document": "This document";
        get "/api/mcp/sources" sources files::sources, [] "" => "200" "Source[]": "The files behind the servers";
        post "/api/mcp/plan" plan files::plan, [] "Candidate" => "200" "Plan": "What a change of a file would do";
        get "/api/mcp/schema" configSchema files::schema, [] "" => "200" "JsonSchema": "The JSON schema of .mcp.json";
    }

    admin(AdminApi), Admin {
        get "/api/console/sessions" listSessions admin::list_sessions, [] "" => "200" "ConsoleSession[]": "The browsers that are signed in to the console";
        delete "/api/console/sessions" endSessions admin::end_other_sessions, [] "" => "204" "": "Sign out all browsers but the one that asks";
        delete "/api/console/sessions/{session}" endSession admin::end_session, [] "" => "204" "": "Sign out one browser";
        post "/api/token/rotate" rotateToken admin::rotate_token, [] "" => "200" "NewToken": "Replace the admin token: the old one is refused at once, and the console's sessions end but for the one that asks; 409 where PORTWAY_ADMIN_TOKEN sets it";
    }

    owned_records(RecordsApi), Users {
        get "/api/v1/catalog" catalog records::catalog::list, [skip page_limit server search] "" => "200" "Catalog": "The servers and tools that the asking user, or the admin, may bind";
        get "/api/v1/tools" listTools records::list::<ToolRecord>, [user_id skip page_limit] "" => "200" "Tools": "Tool records";
        post "/api/v1/tools" createTool records::create::<ToolRecord>, [idempotency_key] "NewTool" => "201" "Tool": "Make a tool record";
        get "/api/v1/tools/{id}" showTool records::show::<ToolRecord>, [] "" => "200" "Tool": "One tool record";
        patch "/api/v1/tools/{id}" changeTool records::change::<ToolRecord>, [] "ToolChange" => "200" "Tool": "Change a tool record";
        delete "/api/v1/tools/{id}" deleteTool records::remove::<ToolRecord>, [] "" => "204" "": "Delete a tool record and its bindings";
        get "/api/v1/mcp_v2" listEntries records::list::<Entry>, [user_id skip page_limit] "" => "200" "Entries": "Entries";
        post "/api/v1/mcp_v2" createEntry records::create::<Entry>, [idempotency_key] "NewEntry" => "201" "OpenedEntry": "Make an entry";
        post "/api/v1/mcp_v2/with_bindings" createBoundEntry records::entries::create_bound, [idempotency_key] "NewBoundEntry" => "201" "OpenedEntry": "Make an entry and its bindings, or neither";
        get "/api/v1/mcp_v2/{id}" showEntry records::show::<Entry>, [] "" => "200" "Entry": "One entry";
        patch "/api/v1/mcp_v2/{id}" changeEntry records::change::<Entry>, [] "EntryChange" => "200" "Entry": "Change an entry";
        delete "/api/v1/mcp_v2/{id}" deleteEntry records::remove::<Entry>, [] "" => "204" "": "Delete an entry";
        post "/api/v1/mcp_v2/{id}/rotate_key" rotateKey records::entries::rotate, [] "NewKey" => "200" "OpenedEntry": "A new key; the old one opens nothing";
        get "/api/v1/mcp_v2/{id}/tools" entryTools records::bindings::tools, [include_disabled] "" => "200" "EntryTools": "The tools of an entry, by bindings and by its filter";
        get "/api/v1/mcp_v2/{id}/bindings" listBindings records::bindings::list, [] "" => "200" "Bindings": "The bindings of an entry";
        post "/api/v1/mcp_v2/{id}/bindings" createBinding records::bindings::create, [] "NewBindings" => "201" "Bound": "Bind a tool";
        patch "/api/v1/mcp_v2/{id}/bindings/{tool_id}" changeBinding records::bindings::change, [] "BindingChange" => "200" "Binding": "Switch a binding";
        delete "/api/v1/mcp_v2/{id}/bindings/{tool_id}" deleteBinding records::bindings::remove, [] "" => "204" "": "Remove a binding";
        get "/api/v1/mcp" listOld records::list::<Instance>, [user_id skip page_limit] "" => "200" "OldRecords": "Old records";
        post "/api/v1/mcp" createOld records::create::<Instance>, [idempotency_key] "NewOld" => "201" "OldRecord": "Make an old record";
        get "/api/v1/mcp/" listOldSlash records::list::<Instance>, [user_id skip page_limit] "" => "200" "OldRecords": "Old records";
        post "/api/v1/mcp/" createOldSlash records::create::<Instance>, [idempotency_key] "NewOld" => "201" "OldRecord": "Make an old record";
        get "/api/v1/mcp/{api_key}" showOld records::show::<Instance>, [] "" => "200" "OldRecord": "One old record, by its key or its id";
        put "/api/v1/mcp/{api_key}" changeOld records::change::<Instance>, [] "OldChange" => "200" "OldRecord": "Change an old record, by its key or its id";
        delete "/api/v1/mcp/{api_key}" deleteOld records::remove::<Instance>, [] "" => "204" "": "Delete an old record, by its key or its id";
    }

    records_by_key(RecordsApi), Public {
        get "/api/v1/mcp/{api_key}/tools" toolsByKey records::bindings::tools_by_key, [include_disabled] "" => "200" "EntryTools": "The tools of an entry, by its key";
    }

    mcp_shared(McpApi), EntryKeys {
        get "/mcp" sharedStream mcp::stream, [] "" => "200" "MCP": "The stream of a legacy session";
        post "/mcp" sharedMessage mcp::message, [] "Message" => "200" "MCP": "MCP: everything, or the entry of the key";
        delete "/mcp" sharedEnd mcp::end_session, [] "" => "204" "MCP": "End a legacy session";
        get "/sse" oldStream mcp::open_sse, [] "" => "200" "MCP": "HTTP+SSE of 2024-11-05";
        post "/messages" oldMessage mcp::sse_message, [] "Message" => "202" "MCP": "HTTP+SSE of 2024-11-05";
    }

    mcp_servers(McpApi), Admin {
        get "/api/mcp/servers/{server}/mcp" consoleStream mcp::stream, [] "" => "200" "MCP": "As /servers/{server}/mcp";
        post "/api/mcp/servers/{server}/mcp" consoleMessage mcp::message, [] "Message" => "200" "MCP": "As /servers/{server}/mcp";
        delete "/api/mcp/servers/{server}/mcp" consoleEnd mcp::end_session, [] "" => "204" "MCP": "As /servers/{server}/mcp";
        get "/servers/{server}/mcp" serverStream mcp::stream, [] "" => "200" "MCP": "The stream of a legacy session";
        post "/servers/{server}/mcp" serverMessage mcp::message, [] "Message" => "200" "MCP": "MCP: one server as it is";
        delete "/servers/{server}/mcp" serverEnd mcp::end_session, [] "" => "204" "MCP": "End a legacy session";
        get "/servers/{server}/sse" oldServerStream mcp::open_sse, [] "" => "200" "MCP": "HTTP+SSE of 2024-11-05";
        post "/servers/{server}/messages" oldServerMessage mcp::sse_message, [] "Message" => "202" "MCP": "HTTP+SSE of 2024-11-05";
    }

    mcp_entries(McpApi), KeyInPath {
        get "/api/v1/mcp_v2/server/{api_key}" entryStream mcp::stream | relay::message, [] "" => "200" "MCP": "The stream of a legacy session";
        post "/api/v1/mcp_v2/server/{api_key}" entryMessage mcp::message | relay::message, [] "Message" => "200" "MCP": "MCP: one entry";
        delete "/api/v1/mcp_v2/server/{api_key}" entryEnd mcp::end_session | relay::message, [] "" => "204" "MCP": "End a legacy session";
        get "/api/v1/mcp_v2/server/{api_key}/sse" oldEntryStream mcp::open_sse | relay::open_sse, [] "" => "200" "MCP": "HTTP+SSE of 2024-11-05";
        post "/api/v1/mcp_v2/server/{api_key}/messages" oldEntryMessage mcp::sse_message | relay::sse_message, [] "Message" => "202" "MCP": "HTTP+SSE of 2024-11-05";
    }
}
