use super::super::fixture::{grant, grant_of};
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
