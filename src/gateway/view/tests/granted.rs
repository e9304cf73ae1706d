use super::super::fixture::{bound, grant, grant_of};
use super::*;
use crate::gateway::EntryScope;
use crate::store::{Exposes, Grant};

fn of(grant: &Arc<Grant>) -> Scope {
    Scope::Entry(EntryScope::new(grant.clone()))
}

fn exposes(resources: &[&str], prompts: &[&str]) -> Exposes {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Exposes {
        resources: owned(resources),
        prompts: owned(prompts),
    }
}

#[test]
fn e1_an_entry_shows_its_granted_tools_by_their_names() {
    let snapshot = Servers::default()
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
    let grant = grant(1, &given, Exposes::default());
    let view = Views::default().get(&of(&grant), &snapshot);
    let tools = list(&view, Kind::Tools, MODERN);
    assert_eq!(names(&tools, "tools", "name"), ["alpha", "zeta"]);
    assert_eq!(tools["tools"][0]["_meta"]["portway/stale"], true);
    let target = view.tool("zeta").unwrap();
    assert_eq!((&*target.server, target.name.as_str()), ("a", "one"));
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
    let offer = listed(Era::Modern).with(Kind::Tools, &[odd.clone(), hidden]);
    let snapshot = Servers::default().add("s", offer.offer()).snapshot();
    let given = [("mine", "s", "own"), ("plain", "s", "hid")];
    let bound = bound(&given);
    let mut described = bound.clone();
    described[0].tool.description = Some("\"ours\"\u{e0041}".into());
    let view = |bound| {
        let grant = grant_of(1, bound, Exposes::default());
        Views::default().get(&of(&grant), &snapshot)
    };
    let mut expected = odd;
    expected["name"] = json!("mine");
    let plain = view(&bound);
    let tools = list(&plain, Kind::Tools, MODERN);
    assert_eq!(tools["tools"][0], expected);
    assert_eq!(tools["tools"][1]["description"], "ab");
    expected["description"] = json!("\"ours\"");
    let ours = view(&described);
    assert_eq!(list(&ours, Kind::Tools, MODERN)["tools"][0], expected);
    let target = ours.tool("mine").unwrap();
    assert!(target.wrapped);
    assert_eq!(target.headers[0].name, "Mcp-Param-R");
    let legacy = list(&ours, Kind::Tools, LEGACY);
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
    let snapshot = Servers::default().snapshot();
    for (exposes, expected) in table {
        let grant = grant(1, &[], exposes);
        let view = Views::default().get(&of(&grant), &snapshot);
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!(parsed(view.capabilities(era)), expected);
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
    let offer = listed(Era::Modern).with(Kind::Tools, &tools).offer();
    let snapshot = Servers::default().add("s", offer).snapshot();
    let grant = grant(1, &[("mine", "s", "a")], Exposes::default());
    let view = Views::default().get(&of(&grant), &snapshot);
    let handed = |uri| view.handed(uri).map(|handed| (handed.tool, handed.uri));
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
    let first = Servers::default().add("s", kept.clone()).snapshot();
    let granted = [("mine", "s", "a")];
    let one = grant(1, &granted, Exposes::default());
    let view = views.get(&of(&one), &first);
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &first)));
    // Another server comes: nothing of it is in this view.
    let second = Servers::default().add("s", kept.clone()).add("t", kept);
    let second = second.snapshot();
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &second)));
    assert!(Arc::ptr_eq(&view, &views.get(&of(&one), &first)));
    let third = Servers::default().add("s", tools(&["a"])).add("t", None);
    let third = third.add("u", None).snapshot();
    assert!(!Arc::ptr_eq(&view, &views.get(&of(&one), &third)));
    // The same entry, changed.
    let again = grant(1, &granted, Exposes::default());
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
    let offer = listed(Era::Modern).with(Kind::Tools, &tools).offer();
    let snapshot = Servers::default().add("s", offer).snapshot();
    let names: Vec<String> = (0..20).map(|n| format!("do_something_{n}")).collect();
    let given: Vec<_> = names.iter().map(|name| (&**name, "s", &**name)).collect();
    let seal = Arc::new(crate::gateway::Seal::new(&crate::config::Secret::new("s")));
    let shelf = super::super::shelf::Shelf::new(4 << 20, None, open_servers());
    let grants: Vec<_> = (0..1000)
        .map(|id| grant(id, &given, Exposes::default()))
        .collect();
    let start = processor_time();
    for grant in &grants {
        shelf.get(&EntryScope::new(grant.clone()), &seal, &snapshot);
    }
    let took = (processor_time() - start) / 1000;
    let (count, weight) = shelf.load();
    println!("a view of 20 tools took {took:?}; {count} kept, {weight} bytes");
    assert!(weight <= 4 << 20 && count > 50, "{count} {weight}");
    // The latest are those that are kept.
    let last = grants.last().unwrap();
    let view = shelf.get(&EntryScope::new(last.clone()), &seal, &snapshot);
    assert!(Arc::ptr_eq(
        &view,
        &shelf.get(&EntryScope::new(last.clone()), &seal, &snapshot)
    ));
    assert_eq!(shelf.load(), (count, weight));
}
