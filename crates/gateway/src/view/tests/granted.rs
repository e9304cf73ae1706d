use super::super::fixture::{grant, grant_of, records};
use super::*;
use crate::EntryScope;
use store::{ExposedServers, Grant, ToolRecord};

fn of(grant: &Arc<Grant>) -> Scope {
    Scope::Entry(EntryScope::narrowed(grant.clone(), None))
}

fn exposes(resources: &[&str], prompts: &[&str]) -> ExposedServers {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ExposedServers {
        resources: owned(resources),
        prompts: owned(prompts),
    }
}

#[test]
fn e1_an_entry_shows_its_granted_tools_by_their_names() {
    let snapshot = SnapshotBuilder::default()
        .add("a", listed(Era::Modern).tools(&["one", "two"]).offer())
        .add("b", listed(Era::Legacy).tools(&["one"]).stale().offer())
        .add("off", None)
        .snapshot();
    let given = [
        ("zeta", "a", "one"),
        ("alpha", "b", "one"),
        ("gone", "off", "one"),
        ("never", "a", "three"),
        ("nobody", "none", "one"),
    ];
    let grant = grant(1, &given, ExposedServers::default());
    let view = Views::default().get(&of(&grant), &snapshot);
    let tools = list(&view, ListKind::Tools, MODERN);
    assert_eq!(names(&tools, "tools", "name"), ["alpha", "zeta"]);
    assert_eq!(tools["tools"][0]["_meta"]["portway/stale"], true);
    let target = view.tool("zeta").unwrap();
    assert_eq!((&*target.server, &*target.name), ("a", "one"));
    for name in ["one", "mcp_a_one", "gone", "never", "nobody"] {
        assert!(view.tool(name).is_none(), "{name}");
    }
}

#[test]
fn e2_a_record_replaces_name_and_description_and_nothing_else() {
    let odd = json!({"name": "own", "title": "T", "description": "theirs", "x": [1.0],
        "inputSchema": {"type": "object", "properties": {
            "r": {"type": "string", "x-mcp-header": "R"}}},
        "outputSchema": {"type": "string"}});
    let hidden = json!({"name": "hid", "description": "a\u{e0041}b"});
    let offer = listed(Era::Modern).with(ListKind::Tools, &[odd.clone(), hidden]);
    let snapshot = SnapshotBuilder::default()
        .add("s", offer.offer())
        .snapshot();
    let given = [("mine", "s", "own"), ("plain", "s", "hid")];
    let plain = records(&given);
    let mut described = plain.clone();
    Arc::make_mut(&mut described[0]).description = Some("\"ours\"\u{e0041}".into());
    let view = |tools| {
        let grant = grant_of(1, tools, ExposedServers::default());
        Views::default().get(&of(&grant), &snapshot)
    };
    let mut expected = odd;
    expected["name"] = json!("mine");
    let plain = view(plain);
    let tools = list(&plain, ListKind::Tools, MODERN);
    assert_eq!(tools["tools"][0], expected);
    assert_eq!(tools["tools"][1]["description"], "ab");
    expected["description"] = json!("\"ours\"");
    let ours = view(described);
    assert_eq!(list(&ours, ListKind::Tools, MODERN)["tools"][0], expected);
    let target = ours.tool("mine").unwrap();
    assert!(target.traits.wrapped);
    assert_eq!(target.traits.headers[0].name, "Mcp-Param-R");
    let legacy = list(&ours, ListKind::Tools, LEGACY);
    let schema = &legacy["tools"][0]["outputSchema"];
    assert_eq!(schema["required"], json!(["result"]));
}

#[test]
fn e12_an_entry_says_what_it_can_do() {
    let table = [
        (
            exposes(&[], &[]),
            json!({"tools": {"listChanged": true}, "resources": {}, "logging": {}}),
        ),
        (
            exposes(&["s"], &[]),
            json!({"tools": {"listChanged": true}, "logging": {}, "completions": {},
                "resources": {"listChanged": true, "subscribe": true}}),
        ),
        (
            exposes(&[], &["s"]),
            json!({"tools": {"listChanged": true}, "resources": {}, "logging": {},
                "completions": {}, "prompts": {"listChanged": true}}),
        ),
    ];
    let snapshot = SnapshotBuilder::default().snapshot();
    for (exposes, expected) in table {
        let grant = grant(1, &[], exposes);
        let view = Views::default().get(&of(&grant), &snapshot);
        for greeting in [&*view.discover(), &*view.initialize("2025-11-25")] {
            assert_eq!(parsed(greeting)["capabilities"], expected);
        }
        let prompts = expected.get("prompts").is_some();
        assert_eq!(view.offers("prompts/get").is_ok(), prompts);
        assert!(view.offers("resources/read").is_ok());
    }
}

#[test]
fn e12_pages_of_granted_tools_can_be_read_and_no_others() {
    let page = |name: &str, uri: &str| json!({"name": name, "_meta": {"ui": {"resourceUri": uri}}});
    let tools = [page("a", "ui://app/a"), page("b", "ui://app/b")];
    let offer = listed(Era::Modern).with(ListKind::Tools, &tools).offer();
    let snapshot = SnapshotBuilder::default().add("s", offer).snapshot();
    let grant = grant(1, &[("mine", "s", "a")], ExposedServers::default());
    let view = Views::default().get(&of(&grant), &snapshot);
    let handed = |uri| view.tool_link(uri).map(|handed| (handed.tool, handed.uri));
    assert_eq!(handed("ui://app/a"), Some(("a", "ui://app/a")));
    assert_eq!(handed("ui://app/b"), None);
    for uri in ["ui://app/a", "ui://app/b", "portway://s/x:y"] {
        assert!(view.resource(uri).is_none());
    }
}

#[test]
fn a_view_of_an_entry_is_made_anew_only_when_its_part_changed() {
    let views = Views::default();
    let tools = |names: &[&str]| listed(Era::Modern).tools(names).offer();
    let kept = tools(&["a"]);
    let first = SnapshotBuilder::default().add("s", kept.clone()).snapshot();
    let granted = [("mine", "s", "a")];
    let one = grant(1, &granted, ExposedServers::default());
    let view = views.get(&of(&one), &first);
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &first)));
    // Another server comes: nothing of it is in this view.
    let second = SnapshotBuilder::default()
        .add("s", kept.clone())
        .add("t", kept);
    let second = second.snapshot();
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &second)));
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &first)));
    let third = SnapshotBuilder::default()
        .add("s", tools(&["a"]))
        .add("t", None);
    let third = third.add("u", None).snapshot();
    assert!(!Arc::ptr_eq(&view, &views.get(&of(&one), &third)));
    // The same entry, changed.
    let again = grant(1, &granted, ExposedServers::default());
    let now = views.get(&of(&again), &third);
    assert!(Arc::ptr_eq(&now, &views.get(&of(&again), &third)));
    assert!(!Arc::ptr_eq(&now, &views.get(&of(&one), &third)));
}

#[test]
fn ten_thousand_entries_are_no_burden() {
    let tool = |number: usize| {
        json!({"name": format!("do_something_{number}"), "description": "Does one thing and says so.",
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}}, "required": ["path"]}})
    };
    let tools: Vec<Value> = (0..100).map(tool).collect();
    let offer = listed(Era::Modern).with(ListKind::Tools, &tools).offer();
    let snapshot = SnapshotBuilder::default().add("s", offer).snapshot();
    let names: Vec<String> = (0..20).map(|n| format!("do_something_{n}")).collect();
    let given: Vec<_> = names.iter().map(|name| (&**name, "s", &**name)).collect();
    let views = entry_views(4 << 20);
    let grants: Vec<_> = (0..1000)
        .map(|id| grant(id, &given, ExposedServers::default()))
        .collect();
    let start = processor_time();
    for grant in &grants {
        views.get(&EntryScope::narrowed(grant.clone(), None), &snapshot);
    }
    let took = (processor_time() - start) / 1000;
    let (count, weight) = views.load();
    println!("a view of 20 tools took {took:?}; {count} kept, {weight} bytes");
    assert!(weight <= 4 << 20 && count > 50, "{count} {weight}");
    // The latest are those that are kept.
    let last = grants.last().unwrap();
    let view = views.get(&EntryScope::narrowed(last.clone(), None), &snapshot);
    assert!(Arc::ptr_eq(
        &view,
        &views.get(&EntryScope::narrowed(last.clone(), None), &snapshot)
    ));
    assert_eq!(views.load(), (count, weight));
}

#[test]
fn t_views_share_the_text_of_their_tools_and_a_change_makes_one_anew() {
    let offer = listed(Era::Legacy).tools(&["one", "two"]).offer();
    let snapshot = SnapshotBuilder::default().add("s", offer).snapshot();
    let tools = records(&[("a", "s", "one"), ("b", "s", "two")]);
    let views = Views::default();
    let view = |entry, tools: &[Arc<ToolRecord>]| {
        let grant = grant_of(entry, tools.to_vec(), ExposedServers::default());
        (views.get(&of(&grant), &snapshot), grant)
    };
    let text = |view: &View, at: usize| {
        view.lists[ListKind::Tools as usize].entries[at]
            .modern
            .clone()
    };
    let (first, granted) = view(1, &tools);
    let (second, _) = view(2, &tools);
    for at in 0..2 {
        assert!(Arc::ptr_eq(&text(&first, at), &text(&second, at)));
    }
    let mut changed = tools.clone();
    Arc::make_mut(&mut changed[1]).description = Some("another".into());
    let (third, _) = view(3, &changed);
    assert!(Arc::ptr_eq(&text(&first, 0), &text(&third, 0)));
    assert!(text(&third, 1).get().contains("another"));
    assert!(Arc::ptr_eq(&first, &views.get(&of(&granted), &snapshot)));
}

#[test]
fn t_a_view_that_would_push_out_the_others_is_not_kept() {
    let large = json!({"name": "large", "description": "x".repeat(8 << 10)});
    let offer = listed(Era::Modern).with(ListKind::Tools, &[large]).offer();
    let snapshot = SnapshotBuilder::default().add("s", offer).snapshot();
    let views = entry_views(32 << 10);
    let small = grant(1, &[], ExposedServers::default());
    let large = grant(2, &[("large", "s", "large")], ExposedServers::default());
    let get = |grant: &Arc<Grant>| views.get(&EntryScope::narrowed(grant.clone(), None), &snapshot);
    let kept = get(&small);
    get(&large);
    assert_eq!(views.load().0, 1);
    assert!(Arc::ptr_eq(&kept, &get(&small)));
}

#[test]
fn t_a_page_is_made_when_it_is_asked_for() {
    let tool =
        |number: usize| json!({"name": format!("t{number}"), "description": "x".repeat(1 << 20)});
    let tools: Vec<Value> = (0..9).map(tool).collect();
    let offer = listed(Era::Modern).with(ListKind::Tools, &tools).offer();
    let snapshot = SnapshotBuilder::default().add("s", offer).snapshot();
    let view = Views::default().get(&only("s"), &snapshot);
    assert_eq!(view.grown(), 0);
    view.list("tools/list", MODERN, None).unwrap();
    let made = view.grown();
    assert!((3 << 20..6 << 20).contains(&made), "{made}");
    view.list("tools/list", MODERN, None).unwrap();
    assert_eq!(view.grown(), made);
}
