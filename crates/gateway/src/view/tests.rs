mod cache;
mod filtered;
mod formatted;
mod granted;

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{SnapshotBuilder, listed};
use super::*;

use crate::{Scope, UserServers};

const MODERN: Era = Era::Modern;
const LEGACY: Era = Era::Legacy;

/// Users may use all.
fn open_servers() -> UserServers {
    UserServers::new(None, tokio::sync::watch::channel(Arc::default()).1)
}

fn entry_views(room: usize) -> entry_cache::EntryViews {
    let secret = config::Secret::new("a secret of thirty-two characters");
    let seal = Arc::new(crate::Seal::new(&secret));
    let views = entry_cache::EntryViews::new(None, open_servers(), seal);
    views.set_room(room);
    views
}

fn everything() -> Scope {
    Scope::Everything { filter: None }
}

fn only(server: &str) -> Scope {
    Scope::server(server.into())
}

fn page(page: &PreparedResult) -> Value {
    serde_json::from_slice(page.value()).unwrap()
}

fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

fn list(view: &View, kind: ListKind, era: Era) -> Value {
    page(&view.list(kind.method(), era, None).unwrap())
}

fn names(list: &Value, member: &str, key: &str) -> Vec<String> {
    let entries = list[member].as_array().unwrap();
    let name = |entry: &Value| entry[key].as_str().unwrap().to_owned();
    entries.iter().map(name).collect()
}

#[test]
fn d1_all_tools_in_one_sorted_list_each_with_its_way_back() {
    let snapshot = SnapshotBuilder::default()
        .add("b", listed(Era::Legacy).tools(&["z", "a.x"]).offer())
        .add("a_b", listed(Era::Modern).tools(&["c"]).offer())
        .add("a", listed(Era::Modern).tools(&["b_c"]).offer())
        .add("off", None)
        .snapshot();
    let view = Views::default().get(&everything(), &snapshot);
    let tools = list(&view, ListKind::Tools, MODERN);
    let names = names(&tools, "tools", "name");
    assert_eq!(
        names,
        ["mcp_a_b_c", "mcp_a_b_c_3d4x8cz", "mcp_b_a_x", "mcp_b_z"]
    );
    for (name, server, own) in [
        (0, "a", "b_c"),
        (1, "a_b", "c"),
        (2, "b", "a.x"),
        (3, "b", "z"),
    ] {
        let target = view.tool(&names[name]).unwrap();
        assert_eq!((&*target.server, &*target.name), (server, own));
    }
    assert!(view.tool("z").is_none());
    assert_eq!(
        view.absent("mcp_off_x").map(|server| &**server),
        Some("off")
    );
    assert!(view.absent("mcp_offx").is_none() && view.absent("mcp_b_x").is_none());
    assert_eq!(tools["resultType"], "complete");
    assert_eq!(tools["cacheScope"], "private");
    assert_eq!(
        tools["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "portway"
    );
    let legacy = list(&view, ListKind::Tools, LEGACY);
    assert_eq!(legacy.as_object().unwrap().len(), 1, "{legacy}");
}

#[test]
fn k4_one_server_is_shown_as_it_is() {
    let odd = json!({"name": "z z", "x": [1.0], "outputSchema": {"type": "string"}});
    let snapshot = SnapshotBuilder::default()
        .add(
            "s",
            listed(Era::Modern)
                .with(ListKind::Tools, &[odd.clone(), json!({"name": "a"})])
                .with(
                    ListKind::Resources,
                    &[json!({"uri": "file:///a", "name": "a"})],
                )
                .offer(),
        )
        .snapshot();
    let view = Views::default().get(&only("s"), &snapshot);
    let tools = list(&view, ListKind::Tools, MODERN);
    assert_eq!(tools["tools"][0], odd);
    assert_eq!(names(&tools, "tools", "name"), ["z z", "a"]);
    assert_eq!(
        (&tools["ttlMs"], &tools["cacheScope"]),
        (&json!(5000), &json!("private"))
    );
    let target = view.tool("z z").unwrap();
    assert!(target.traits.wrapped);
    let legacy = list(&view, ListKind::Tools, LEGACY);
    assert_eq!(
        legacy["tools"][0]["outputSchema"]["required"],
        json!(["result"])
    );
    assert_eq!(
        view.resource("file:///never-listed"),
        Some(("s".into(), "file:///never-listed".into()))
    );
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}, "extensions": {"a/b": {}}});
    assert_eq!(parsed(&view.discover())["capabilities"], capabilities);
}

#[test]
fn methods_that_no_server_of_an_endpoint_has_are_unknown() {
    let offer = listed(Era::Modern).capable(r#"{"tools":{}}"#).offer();
    let snapshot = SnapshotBuilder::default()
        .add("s", offer)
        .add("off", None)
        .snapshot();
    let views = Views::default();
    let view = views.get(&only("s"), &snapshot);
    for (method, code) in [
        ("tools/list", None),
        ("prompts/list", Some(code::METHOD_NOT_FOUND)),
        ("resources/templates/list", Some(code::METHOD_NOT_FOUND)),
        ("nonsense/list", Some(code::METHOD_NOT_FOUND)),
    ] {
        let outcome = view.list(method, MODERN, None);
        assert_eq!(outcome.err().map(|error| error.code), code, "{method}");
    }
    assert!(view.offers("prompts/get").is_err());
    assert!(view.offers("completion/complete").is_err());
    let shared = views.get(&everything(), &snapshot);
    assert!(shared.offers("prompts/get").is_ok());
    assert_eq!(
        list(&shared, ListKind::Prompts, LEGACY),
        json!({"prompts": []})
    );
    for (server, words) in [("off", "is not connected"), ("none", "no server is called")] {
        let error = views
            .get(&only(server), &snapshot)
            .list("tools/list", MODERN, None);
        let error = error.unwrap_err();
        assert!(error.message.contains(words) && error.message.contains(server));
    }
}

#[test]
fn i1_resources_of_all_servers_keep_their_way_back() {
    let ui = json!({"uri": "ui://app/x", "name": "x"});
    let page = json!({"name": "t", "_meta": {"ui": {"resourceUri": "ui://app/hidden"}}});
    let snapshot = SnapshotBuilder::default()
        .add(
            "b",
            listed(Era::Modern)
                .with(ListKind::Tools, &[page])
                .with(
                    ListKind::Resources,
                    &[ui.clone(), json!({"uri": "file:///x/y?z#f", "name": "f"})],
                )
                .with(
                    ListKind::Templates,
                    &[json!({"uriTemplate": "db://{table}/{row}", "name": "r"})],
                )
                .offer(),
        )
        .add(
            "c c",
            listed(Era::Legacy)
                .with(
                    ListKind::Resources,
                    &[ui, json!({"uri": "a:b", "name": "n"})],
                )
                .offer(),
        )
        .snapshot();
    let view = Views::default().get(&everything(), &snapshot);
    let resources = list(&view, ListKind::Resources, LEGACY);
    assert_eq!(
        names(&resources, "resources", "uri"),
        [
            "ui://app/x",
            "portway://b/file:///x/y?z#f",
            "portway://c%20c/a:b"
        ]
    );
    let templates = list(&view, ListKind::Templates, LEGACY);
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "portway://b/db://{table}/{row}"
    );
    for (uri, found) in [
        (
            "portway://b/file:///x/y?z#f",
            Some(("b", "file:///x/y?z#f")),
        ),
        ("portway://c%20c/a:b", Some(("c c", "a:b"))),
        ("ui://app/x", Some(("b", "ui://app/x"))),
        ("ui://app/hidden", Some(("b", "ui://app/hidden"))),
        ("ui://app/z?q", Some(("b", "ui://app/z?q"))),
        ("ui://other", None),
        ("portway://d/a:b", None),
        ("file:///x/y?z#f", None),
    ] {
        let found = found.map(|(server, uri)| (server.into(), uri.to_owned()));
        assert_eq!(view.resource(uri), found, "{uri}");
    }
}

#[test]
fn lists_of_a_server_that_is_away_are_marked() {
    let tool = json!({"name": "t", "_meta": {"a": 1}});
    let offer = |stale| {
        let listed = listed(Era::Modern).with(ListKind::Tools, std::slice::from_ref(&tool));
        if stale {
            listed.stale().offer()
        } else {
            listed.offer()
        }
    };
    let away = SnapshotBuilder::default().add("s", offer(true)).snapshot();
    let here = SnapshotBuilder::default().add("s", offer(false)).snapshot();
    let (away, here) = (
        View::of_all(&away, None, None),
        View::of_all(&here, None, None),
    );
    let tools = list(&away, ListKind::Tools, MODERN);
    assert_eq!(
        tools["tools"][0]["_meta"],
        json!({"a": 1, "portway/stale": true})
    );
    assert_eq!(tools["ttlMs"], 0);
    assert_eq!(
        list(&here, ListKind::Tools, MODERN)["tools"][0]["_meta"],
        json!({"a": 1})
    );
    assert_eq!(away.hash(), here.hash());
}

#[test]
fn trap20_cursors_fit_the_list_they_are_of() {
    let names: Vec<String> = (0..4500).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let view = |names: &[&str]| {
        let offer = listed(Era::Modern).tools(names).offer();
        View::of_server(
            &"s".into(),
            &SnapshotBuilder::default().add("s", offer).snapshot(),
            None,
            None,
        )
    };
    let long = view(&names);
    let turned = |view: &View, cursor: &Value| {
        let params = serde_json::value::to_raw_value(&json!({ "cursor": cursor })).unwrap();
        view.list("tools/list", LEGACY, Some(&params))
    };
    let (mut cursor, mut seen, mut cursors) = (Value::Null, Vec::new(), Vec::new());
    loop {
        let result = page(&turned(&long, &cursor).unwrap());
        seen.extend(self::names(&result, "tools", "name"));
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        cursors.push(cursor.clone());
    }
    assert_eq!(seen, names);
    assert_eq!(cursors.len(), 2);
    let changed = view(&names[1..]);
    for cursor in &cursors {
        assert_eq!(
            turned(&changed, cursor).unwrap_err().code,
            code::INVALID_PARAMS
        );
        assert!(turned(&view(&names), cursor).is_ok());
    }
    for bad in [
        json!(""),
        json!("AAAAAAAAAAAAAAAA"),
        json!(1),
        json!("é"),
        json!({}),
    ] {
        assert_eq!(
            turned(&long, &bad).unwrap_err().code,
            code::INVALID_PARAMS,
            "{bad}"
        );
    }
}

#[test]
fn the_cost_of_a_view_grows_with_its_tools_and_no_faster() {
    let tool = |number: usize| {
        json!({"name": format!("do_something_{number}"), "description": "Does one thing and says so.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}, "required": ["path"]}})
    };
    let servers = |count: usize| {
        (0..10).fold(SnapshotBuilder::default(), |servers, server| {
            let tools: Vec<Value> = (0..count / 10).map(tool).collect();
            let offer = listed(Era::Modern).with(ListKind::Tools, &tools).offer();
            servers.add(&format!("server-{server}"), offer)
        })
    };
    let (few, snapshot) = (servers(1_000).snapshot(), servers(10_000).snapshot());
    // The best of several, on the processor: others use this machine too.
    let cost = |snapshot: &_| {
        let once = || {
            let start = processor_time();
            let view = View::of_all(snapshot, None, None);
            view.list("tools/list", MODERN, None).unwrap();
            processor_time() - start
        };
        (0..10).map(|_| once()).min().unwrap()
    };
    let (thousand, ten_thousand) = (cost(&few), cost(&snapshot));
    println!("1,000 tools: {thousand:?}; 10,000 tools: {ten_thousand:?}");
    // Ten times the tools; what grows with the square would be a hundred.
    assert!(
        ten_thousand < thousand * 30,
        "{thousand:?}, {ten_thousand:?}"
    );
    let views = Views::default();
    let view = views.get(&everything(), &snapshot);
    let page = view.list("tools/list", MODERN, None).unwrap();
    for _ in 0..1000 {
        let again = views.get(&everything(), &snapshot);
        assert!(Arc::ptr_eq(&view, &again));
        let again = again.list("tools/list", MODERN, None).unwrap();
        assert_eq!(page.value().as_ptr(), again.value().as_ptr());
    }
}

/// How long this thread has been running.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let running = told.split(' ').next().unwrap();
    Duration::from_nanos(running.parse().unwrap())
}
