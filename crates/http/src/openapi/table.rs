//! Every operation of the API. `tests/it/g_openapi.rs` holds this against the
//! routes: one that is missing on either side fails.

/// What is sent, and what comes back: names of schemas; empty for none, or
/// for what MCP defines.
pub(super) struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub id: &'static str,
    pub does: &'static str,
    pub takes: &'static str,
    pub status: &'static str,
    pub gives: &'static str,
}

macro_rules! operations {
    ($($method:ident $path:literal $id:ident $takes:literal => $status:literal $gives:literal : $does:literal;)*) => {
        &[$(Operation {
            method: stringify!($method),
            path: $path,
            id: stringify!($id),
            does: $does,
            takes: $takes,
            status: $status,
            gives: $gives,
        }),*]
    };
}

pub(super) const OPERATIONS: &[Operation] = operations! {
    get "/healthz" health "" => "200" "Health": "Whether the program is there; no credential";
    get "/readyz" ready "" => "200" "Ready": "Whether the enabled servers have settled once; no credential";
    get "/api/openapi.json" openApi "" => "200" "Document": "This document";

    get "/api/mcp/servers" listServers "" => "200" "ListedServer[]": "All servers, with their tools where asked for";
    post "/api/mcp/servers" createServer "NewServer" => "201" "Server": "Register a server";
    get "/api/mcp/servers/{server}" showServer "" => "200" "Server": "One server, its definition tagged with an ETag";
    put "/api/mcp/servers/{server}" replaceServer "Definition" => "200" "Server": "Replace a definition; honours If-Match";
    patch "/api/mcp/servers/{server}" changeServer "DefinitionChange" => "200" "Server": "Change a part of a definition; honours If-Match";
    delete "/api/mcp/servers/{server}" deleteServer "" => "204" "": "Stop a server and remove its definition";
    post "/api/mcp/servers/{server}/start" startServer "" => "200" "Server": "Start";
    post "/api/mcp/servers/{server}/stop" stopServer "" => "200" "Server": "Stop";
    post "/api/mcp/servers/{server}/restart" restartServer "" => "200" "Server": "Restart";
    get "/api/mcp/servers/{server}/tools" serverTools "" => "200" "ServerTool[]": "Its tools, as it lists them, each with its key";
    get "/api/mcp/servers/{server}/resources" serverResources "" => "200" "ServerResource[]": "Its resources and resource templates";
    get "/api/mcp/servers/{server}/resources/templates" serverTemplates "" => "200" "ServerResource[]": "Its resource templates";
    get "/api/mcp/servers/{server}/resources/read" readServerResource "" => "200" "ResourceContents": "Read one of its resources";
    post "/api/mcp/servers/{server}/resources/read" readServerResourcePosted "WantedResource" => "200" "ResourceContents": "Read one of its resources";
    get "/api/mcp/servers/{server}/prompts" serverPrompts "" => "200" "ServerPrompt[]": "Its prompts";
    post "/api/mcp/servers/{server}/prompts/get" getServerPrompt "WantedPrompt" => "200" "PromptMessages": "Get one of its prompts";
    get "/api/mcp/servers/{server}/logs" serverLogs "" => "200" "LogLine[]": "Its recent lines";
    get "/api/mcp/servers/{server}/process" serverProcesses "" => "200" "Processes": "What runs for it";
    get "/api/mcp/servers/{server}/history" serverHistory "" => "200" "Moment[]": "What became of it, and why";
    get "/api/mcp/servers/{server}/mcp" consoleStream "" => "200" "": "As /servers/{server}/mcp";
    post "/api/mcp/servers/{server}/mcp" consoleMessage "Message" => "200" "": "As /servers/{server}/mcp";
    delete "/api/mcp/servers/{server}/mcp" consoleEnd "" => "204" "": "As /servers/{server}/mcp";
    get "/api/mcp/tools" formattedTools "" => "200" "ToolList": "All tools, or those of a filter or an entry, ready for a model's API; tagged with an ETag, honours If-None-Match";
    post "/api/mcp/tools/{name}/call" callTool "ToolCall" => "200" "ToolAnswer": "Call a tool; a call that fails is answered too, in the format's words for it, and so is one of a tool that is not there, but with the format mcp: 404";
    get "/api/mcp/resources" listResources "" => "200" "ServerResource[]": "The resources of all servers, or of a filter or an entry";
    get "/api/mcp/resources/templates" listTemplates "" => "200" "ServerResource[]": "Their resource templates";
    get "/api/mcp/resources/read" readResource "" => "200" "ResourceContents": "Read a resource by its URI in the list";
    post "/api/mcp/resources/read" readResourcePosted "WantedResource" => "200" "ResourceContents": "Read a resource by its URI in the list";
    get "/api/mcp/prompts" listPrompts "" => "200" "ServerPrompt[]": "The prompts of all servers, or of a filter or an entry";
    post "/api/mcp/prompts/get" getPrompt "WantedPrompt" => "200" "PromptMessages": "Get a prompt by its name in the list";
    get "/api/mcp/events" events "" => "200" "": "Server-sent events of every change";
    get "/api/mcp/activity" activity "" => "200" "Activity": "Calls, now and lately";
    get "/api/mcp/sources" sources "" => "200" "Source[]": "The files behind the servers";
    post "/api/mcp/plan" plan "Candidate" => "200" "Plan": "What a change of a file would do";
    get "/api/mcp/schema" configSchema "" => "200" "JsonSchema": "The JSON schema of .mcp.json";

    get "/api/console/sessions" listSessions "" => "200" "ConsoleSession[]": "The browsers that are signed in to the console";
    delete "/api/console/sessions" endSessions "" => "204" "": "Sign out all browsers but the one that asks";
    delete "/api/console/sessions/{session}" endSession "" => "204" "": "Sign out one browser";
    post "/api/token/rotate" rotateToken "" => "200" "NewToken": "Replace the admin token: the old one is refused at once, and the console's sessions end but for the one that asks; 409 where PORTWAY_ADMIN_TOKEN sets it";

    get "/api/v1/catalog" catalog "" => "200" "Catalog": "The servers and tools that the asking user, or the admin, may bind";
    get "/api/v1/tools" listTools "" => "200" "Tools": "Tool records";
    post "/api/v1/tools" createTool "NewTool" => "201" "Tool": "Make a tool record";
    get "/api/v1/tools/{id}" showTool "" => "200" "Tool": "One tool record";
    patch "/api/v1/tools/{id}" changeTool "ToolChange" => "200" "Tool": "Change a tool record";
    delete "/api/v1/tools/{id}" deleteTool "" => "204" "": "Delete a tool record and its bindings";
    get "/api/v1/mcp_v2" listEntries "" => "200" "Entries": "Entries";
    post "/api/v1/mcp_v2" createEntry "NewEntry" => "201" "OpenedEntry": "Make an entry";
    post "/api/v1/mcp_v2/with_bindings" createBoundEntry "NewBoundEntry" => "201" "OpenedEntry": "Make an entry and its bindings, or neither";
    get "/api/v1/mcp_v2/{id}" showEntry "" => "200" "Entry": "One entry";
    patch "/api/v1/mcp_v2/{id}" changeEntry "EntryChange" => "200" "Entry": "Change an entry";
    delete "/api/v1/mcp_v2/{id}" deleteEntry "" => "204" "": "Delete an entry";
    post "/api/v1/mcp_v2/{id}/rotate_key" rotateKey "NewKey" => "200" "OpenedEntry": "A new key; the old one opens nothing";
    get "/api/v1/mcp_v2/{id}/tools" entryTools "" => "200" "EntryTools": "The tools of an entry, by bindings and by its filter";
    get "/api/v1/mcp_v2/{id}/bindings" listBindings "" => "200" "Bindings": "The bindings of an entry";
    post "/api/v1/mcp_v2/{id}/bindings" createBinding "NewBindings" => "201" "Bound": "Bind a tool";
    patch "/api/v1/mcp_v2/{id}/bindings/{tool_id}" changeBinding "BindingChange" => "200" "Binding": "Switch a binding";
    delete "/api/v1/mcp_v2/{id}/bindings/{tool_id}" deleteBinding "" => "204" "": "Remove a binding";
    get "/api/v1/mcp" listOld "" => "200" "OldRecords": "Old records";
    post "/api/v1/mcp" createOld "NewOld" => "201" "OldRecord": "Make an old record";
    get "/api/v1/mcp/" listOldSlash "" => "200" "OldRecords": "Old records";
    post "/api/v1/mcp/" createOldSlash "NewOld" => "201" "OldRecord": "Make an old record";
    get "/api/v1/mcp/{api_key}" showOld "" => "200" "OldRecord": "One old record, by its key or its id";
    put "/api/v1/mcp/{api_key}" changeOld "OldChange" => "200" "OldRecord": "Change an old record, by its key or its id";
    delete "/api/v1/mcp/{api_key}" deleteOld "" => "204" "": "Delete an old record, by its key or its id";
    get "/api/v1/mcp/{api_key}/tools" toolsByKey "" => "200" "EntryTools": "The tools of an entry, by its key";

    get "/mcp" sharedStream "" => "200" "": "The stream of a legacy session";
    post "/mcp" sharedMessage "Message" => "200" "": "MCP: everything, or the entry of the key";
    delete "/mcp" sharedEnd "" => "204" "": "End a legacy session";
    get "/servers/{server}/mcp" serverStream "" => "200" "": "The stream of a legacy session";
    post "/servers/{server}/mcp" serverMessage "Message" => "200" "": "MCP: one server as it is";
    delete "/servers/{server}/mcp" serverEnd "" => "204" "": "End a legacy session";
    get "/api/v1/mcp_v2/server/{api_key}" entryStream "" => "200" "": "The stream of a legacy session";
    post "/api/v1/mcp_v2/server/{api_key}" entryMessage "Message" => "200" "": "MCP: one entry";
    delete "/api/v1/mcp_v2/server/{api_key}" entryEnd "" => "204" "": "End a legacy session";
    get "/sse" oldStream "" => "200" "": "HTTP+SSE of 2024-11-05";
    post "/messages" oldMessage "Message" => "202" "": "HTTP+SSE of 2024-11-05";
    get "/servers/{server}/sse" oldServerStream "" => "200" "": "HTTP+SSE of 2024-11-05";
    post "/servers/{server}/messages" oldServerMessage "Message" => "202" "": "HTTP+SSE of 2024-11-05";
    get "/api/v1/mcp_v2/server/{api_key}/sse" oldEntryStream "" => "200" "": "HTTP+SSE of 2024-11-05";
    post "/api/v1/mcp_v2/server/{api_key}/messages" oldEntryMessage "Message" => "202" "": "HTTP+SSE of 2024-11-05";
};
