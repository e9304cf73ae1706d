//! SPEC D9: Portway's own management as MCP tools, for the admin only.

mod given;
mod shown;

use std::time::Duration;

use serde_json::{Value, json};

use crate::app::{App, PATIENCE, alive, eventually, fixture, fixtures, pid, setup};
use crate::mcp_front::{LegacyClient, call, has_begun, legacy, modern, said, until};
use crate::tools::{installed, judge};

pub(crate) const OWN: &str = "/servers/portway/mcp";
const CANARY: &str = "canary-of-a-secret";

/// The admin as a client of one endpoint, in one era.
pub(crate) enum AdminClient<'a> {
    Modern(&'a App, &'a str),
    Legacy(LegacyClient<'a>),
}

impl<'a> AdminClient<'a> {
    pub(crate) async fn both(app: &'a App, path: &'a str) -> [AdminClient<'a>; 2] {
        let session = legacy(app, path, "2025-11-25", json!({})).await;
        [AdminClient::Modern(app, path), AdminClient::Legacy(session)]
    }

    pub(crate) async fn ask(&self, method: &'static str, params: Value) -> Value {
        let ask = match self {
            AdminClient::Modern(app, path) => modern(app, path, method, params),
            AdminClient::Legacy(session) => session.request(1, method, params),
        };
        ask.send().await.answer().await
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let list = self.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("{list:#}"));
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.iter().map(name).collect()
    }

    /// What a tool of Portway's did, as structure. The text says the same.
    pub(crate) async fn did(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", call(tool, arguments)).await;
        let result = &answer["result"];
        let structured = result["structuredContent"].clone();
        assert!(structured.is_object(), "{tool}: {answer:#}");
        assert_ne!(result["isError"], true, "{tool}: {answer:#}");
        let text: Value = serde_json::from_str(said(&answer)).unwrap();
        assert_eq!(text, structured, "{tool}");
        let modern = matches!(self, AdminClient::Modern(..));
        assert_eq!(result.get("resultType").is_some(), modern, "{answer:#}");
        structured
    }

    /// Why it did not.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", call(tool, arguments)).await;
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer:#}");
        said(&answer).to_owned()
    }
}

pub(crate) async fn portway(servers: &[(&str, &[&str])]) -> App {
    let app = setup().mcp(fixtures(servers)).start().await;
    for (name, _) in servers {
        app.until_status(name, "connected").await;
    }
    app
}

fn own(tool: &str) -> String {
    format!("mcp_portway_{tool}")
}

#[tokio::test]
async fn d9_a_server_is_added_used_restarted_stopped_and_removed_in_both_eras() {
    let app = portway(&[("one", &[])]).await;
    for admin in AdminClient::both(&app, "/mcp").await {
        let listed = admin.did(&own("list_servers"), json!({})).await;
        assert_eq!(listed["servers"], json!(app.list().await));
        assert_eq!(listed["servers"][0]["name"], "one");
        let new = json!({"name": "two", "command": fixture(), "env": {"TOKEN": CANARY}});
        let made = admin.did(&own("add_server"), new.clone()).await;
        assert_eq!(made["name"], "two");
        assert_eq!(made["config"]["env"]["TOKEN"], "***");
        let again = admin.refused(&own("add_server"), new).await;
        assert!(again.contains("\"two\" exists already"), "{again}");

        let started = admin
            .did(&own("start_server"), json!({"server": "two"}))
            .await;
        assert_eq!(started["status"], "connected", "{started:#}");
        let first = pid(&started);
        let echo = call("mcp_two_echo", json!({"text": "hi"}));
        assert_eq!(said(&admin.ask("tools/call", echo).await), "hi");
        // The same as over REST, by its id as well.
        let by_id = json!({"server": made["id"]});
        let shown = admin.did(&own("get_server"), by_id).await;
        assert_eq!(shown, app.server("two").await);

        let restarted = admin
            .did(&own("restart_server"), json!({"server": "two"}))
            .await;
        assert_eq!(restarted["status"], "connected", "{restarted:#}");
        assert_ne!(pid(&restarted), first);
        eventually("the first is gone", || !alive(first)).await;

        let change = json!({"server": "two", "changes": {"timeout": 5000, "env": {"MORE": "x"}}});
        let changed = admin.did(&own("update_server"), change).await;
        assert_eq!(changed["config"]["timeout"], 5000);
        let env = &changed["config"]["env"];
        assert_eq!(
            (&env["TOKEN"], &env["MORE"]),
            (&json!("***"), &json!("***"))
        );
        let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
        assert!(file.contains(CANARY), "the value itself is kept: {file}");

        let running = pid(&app.until_status("two", "connected").await);
        let stopped = admin
            .did(&own("stop_server"), json!({"server": "two"}))
            .await;
        assert_eq!(stopped["state"], "stopped", "{stopped:#}");
        assert!(!alive(running));
        let gone = admin
            .did(&own("remove_server"), json!({"server": "two"}))
            .await;
        assert_eq!(gone, json!({"removed": "two", "uncovered": false}));
        app.get("/api/mcp/servers/two").await.expect(404);
        let file = std::fs::read_to_string(app.path(".mcp.json")).unwrap();
        assert!(!file.contains("two"), "{file}");
        let missing = admin
            .refused(&own("get_server"), json!({"server": "two"}))
            .await;
        assert!(missing.contains("no server is called \"two\""), "{missing}");
    }
    assert!(!app.log().contains(CANARY));
}

#[tokio::test]
async fn d9_tools_are_found_by_words_and_logs_are_read() {
    let app = portway(&[("one", &[]), ("o_2", &[])]).await;
    let admin = AdminClient::Modern(&app, "/mcp");
    let all = admin.did(&own("list_tools"), json!({"limit": 1000})).await;
    let names: Vec<&str> = all["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(name_of)
        .collect();
    assert_eq!(names, admin.names().await);
    assert_eq!(all["total"], names.len());
    let found = json!({"search": "TEXT repeats", "server": "o_2"});
    let found = admin.did(&own("list_tools"), found).await;
    assert_eq!(found["total"], 1, "{found:#}");
    let tool = &found["tools"][0];
    assert_eq!(tool["key"], "o_2:echo");
    let echo = call(name_of(tool), json!({"text": "by its name"}));
    assert_eq!(said(&admin.ask("tools/call", echo).await), "by its name");
    let few = admin.did(&own("list_tools"), json!({"limit": 2})).await;
    assert_eq!(few["tools"].as_array().unwrap().len(), 2);
    assert_eq!(few["total"], all["total"]);
    let ours = json!({"server": "portway", "search": "remove"});
    let ours = admin.did(&own("list_tools"), ours).await;
    assert_eq!(ours["tools"][0]["name"], own("remove_server"));

    // `name` says it as well.
    let named = json!({"name": "one", "server": "one"});
    let logs = admin.did(&own("server_logs"), named).await;
    let shown = admin.did(&own("get_server"), json!({"name": "one"})).await;
    assert_eq!(shown["name"], "one");
    let path = "/api/mcp/servers/one/logs";
    assert_eq!(logs["lines"], app.get(path).await.expect(200));
}

fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().unwrap()
}

#[tokio::test]
async fn d9_what_cannot_be_done_is_said_so_that_a_model_can_mend_it() {
    let app = portway(&[]).await;
    for path in ["/mcp", OWN] {
        let tool = |name: &str| match path {
            OWN => name.to_owned(),
            _ => own(name),
        };
        for admin in AdminClient::both(&app, path).await {
            let wrong = json!({"name": "a/b", "command": "x", "env": {"A": 1}, "colour": "red"});
            let text = admin.refused(&tool("add_server"), wrong).await;
            for part in ["name:", "env.A:", "colour:"] {
                assert!(text.contains(part), "{text}");
            }
            for (name, arguments, part) in [
                ("get_server", json!({}), "server: is missing"),
                (
                    "get_server",
                    json!({"server": 1}),
                    "server: must be a string",
                ),
                ("get_server", json!({"name": "no"}), "no server is called"),
                (
                    "stop_server",
                    json!({"server": "a", "name": "b"}),
                    "name: is another server than `server`",
                ),
                (
                    "list_servers",
                    json!({"all": true}),
                    "all: unknown field; remove it",
                ),
                (
                    "restart_server",
                    json!({"sever": "one"}),
                    "sever: unknown field; did you mean \"server\"?",
                ),
                (
                    "update_server",
                    json!({"name": "no"}),
                    "changes: is missing",
                ),
                (
                    "server_logs",
                    json!({"name": "no", "limit": -1}),
                    "limit: must be a whole number",
                ),
                (
                    "stop_server",
                    json!({"server": "no"}),
                    "no server is called",
                ),
                ("list_tools", json!({"server": "no"}), "no server is called"),
                (
                    "server_logs",
                    json!({"server": "no"}),
                    "no server is called",
                ),
            ] {
                let text = admin.refused(&tool(name), arguments).await;
                assert!(text.contains(part), "{name}: {text}");
            }
            let unknown = admin.ask("tools/call", call(&tool("fly"), json!({}))).await;
            assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
            // Arguments may be left out where none are needed.
            let bare = json!({"name": tool("list_servers")});
            let bare = admin.ask("tools/call", bare).await;
            assert_eq!(bare["result"]["structuredContent"], json!({"servers": []}));
        }
    }
}

/// With the validator of others: every schema is one, every answer fits its
/// own, and what was asked fits, too.
#[tokio::test]
async fn d9_answers_fit_the_schemas_they_are_listed_with() {
    let servers = json!({"mcpServers": {
        "one": {"command": fixture(), "env": {"TOKEN": "hidden"}},
        "far": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-A": "b"}, "enabled": false},
        "broken": {"command": 1},
    }});
    let app = setup().mcp(servers).start().await;
    app.until_status("one", "connected").await;
    let admin = AdminClient::Modern(&app, OWN);
    let one = || json!({"server": "one"});
    let add = json!({"name": "two", "command": fixture(), "args": ["--era", "legacy"],
        "autoStart": false, "env": {"A": "b"}, "timeout": 1000, "isolation": "shared"});
    let change = json!({"server": "two", "changes": {"env": {"A": null}, "cwd": "/"}});
    let mut cases = Vec::new();
    for (tool, arguments) in [
        ("list_servers", json!({})),
        ("get_server", json!({"server": "broken"})),
        ("add_server", add),
        ("update_server", change),
        ("start_server", json!({"server": "two"})),
        ("restart_server", one()),
        (
            "server_logs",
            json!({"server": "one", "limit": 5, "from": 0}),
        ),
        ("list_tools", json!({"search": "echo", "limit": 3})),
        ("stop_server", one()),
        ("remove_server", one()),
    ] {
        let structured = admin.did(tool, arguments.clone()).await;
        cases.push(json!({"tool": tool, "arguments": arguments, "said": structured}));
    }
    let list = admin.ask("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), cases.len(), "each was called");
    let file = app.path("seen.json");
    std::fs::write(&file, json!({"tools": tools, "cases": cases}).to_string()).unwrap();
    let judged = "import json, sys\n\
        from jsonschema import Draft202012Validator as V\n\
        seen = json.load(open(sys.argv[1]))\n\
        tools = {tool['name']: tool for tool in seen['tools']}\n\
        for tool in tools.values():\n\
        \x20   V.check_schema(tool['inputSchema'])\n\
        \x20   V.check_schema(tool['outputSchema'])\n\
        \x20   assert tool['inputSchema']['additionalProperties'] is False\n\
        \x20   assert not {'anyOf', 'oneOf', 'allOf'} & set(tool['inputSchema'])\n\
        \x20   assert not V(tool['inputSchema']).is_valid({'surely': 'unknown'})\n\
        for case in seen['cases']:\n\
        \x20   V(tools[case['tool']]['inputSchema']).validate(case['arguments'])\n\
        \x20   V(tools[case['tool']]['outputSchema']).validate(case['said'])\n";
    let mut python = tokio::process::Command::new(installed("python-1/bin/python"));
    python.args(["-c", judged]).arg(file);
    let ran = judge(python, PATIENCE).await;
    assert!(ran.ok, "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test]
async fn d9_stopping_and_removing_wait_for_nobody_for_ever() {
    let app = setup()
        .mcp(fixtures(&[("one", &[]), ("two", &[])]))
        .env("PORTWAY_STOP_GRACE", "500ms")
        .start()
        .await;
    let admin = AdminClient::Modern(&app, "/mcp");
    for (server, tool) in [("one", "stop_server"), ("two", "remove_server")] {
        app.until_status(server, "connected").await;
        let path = format!("/servers/{server}/mcp");
        let observer = legacy(&app, &path, "2025-06-18", json!({})).await;
        let before = crate::mcp_front::calls(&observer).await;
        // A call that will not come back, on the very server.
        let sleep = call("sleep", json!({"ms": 600_000}));
        let slow = modern(&app, &path, "tools/call", sleep).send();
        let ended = async {
            has_begun(&observer, before).await;
            admin.did(&own(tool), json!({"server": server})).await;
        };
        tokio::join!(ended, async { drop(slow.await.answer().await) });
    }
    eventually("no process is left", || app.children().is_empty()).await;
}

#[tokio::test]
async fn d9_who_hangs_up_leaves_no_half_done_edit() {
    let app = portway(&[("one", &[])]).await;
    let id = app.server("one").await["id"].take();
    for n in 0..10 {
        // A new name: its file and the store change together.
        let change = json!({"server": id, "changes": {"name": format!("name {n}")}});
        let ask = modern(&app, OWN, "tools/call", call("update_server", change));
        // Gone at once, or a moment later.
        let moment = Duration::from_millis(n * 2);
        let _ = tokio::time::timeout(moment, ask.send()).await;
    }
    let whole = || async {
        let listed = app.list().await;
        listed.len() == 1 && listed[0]["id"] == id && listed[0]["status"] == "connected"
    };
    until("it is one server, and the same", whole).await;
}
