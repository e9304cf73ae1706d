use super::*;
use crate::EntryScope;
use crate::format::Format;
use crate::view::fixture::grant;
use store::ExposedServers;

fn told(list: &ToolList) -> Value {
    serde_json::from_slice(&list.body).unwrap()
}

#[test]
fn d10_a_list_is_made_once_and_shared() {
    let snapshot = SnapshotBuilder::default()
        .add("a", listed(Era::Legacy).tools(&["x", "y"]).offer())
        .snapshot();
    let views = Views::default();
    for format in Format::ALL {
        let view = views.get(&everything(), &snapshot);
        let (one, two) = (view.tools_as(format), view.tools_as(format));
        assert_eq!(one.body.as_ptr(), two.body.as_ptr(), "{format:?}");
        let again = views.get(&everything(), &snapshot).tools_as(format);
        assert_eq!(one.body.as_ptr(), again.body.as_ptr());
        assert_eq!(told(&one)["hash"], view.hash());
    }
    let fewer = SnapshotBuilder::default()
        .add("a", listed(Era::Legacy).tools(&["x"]).offer())
        .snapshot();
    let other = Views::default().get(&everything(), &fewer);
    let view = views.get(&everything(), &snapshot);
    assert_ne!(
        view.tools_as(Format::Mcp).tag,
        other.tools_as(Format::Mcp).tag
    );
}

#[test]
fn d10_who_is_away_is_said_and_changes_the_tag() {
    let at = |stale: bool| {
        let offer = listed(Era::Modern).tools(&["x"]);
        let offer = if stale { offer.stale() } else { offer };
        let snapshot = SnapshotBuilder::default()
            .add("a", offer.offer())
            .snapshot();
        let view = Views::default().get(&everything(), &snapshot);
        view.tools_as(Format::Mcp)
    };
    let (there, away) = (at(false), at(true));
    assert_eq!(told(&away)["tools"][0]["_meta"]["portway/stale"], true);
    assert_eq!(told(&there)["hash"], told(&away)["hash"]);
    assert_ne!(there.tag, away.tag);
}

#[test]
fn d10_a_tool_is_found_by_each_of_its_names() {
    let snapshot = SnapshotBuilder::default()
        .add("a", listed(Era::Modern).tools(&["x:y", "z"]).offer())
        .add("off", None)
        .snapshot();
    let views = Views::default();
    let view = views.get(&everything(), &snapshot);
    for (name, own) in [("mcp_a_z", "z"), ("a:z", "z"), ("a:x:y", "x:y")] {
        assert_eq!(*view.tool_called(name).unwrap().1.name, *own, "{name}");
    }
    for none in ["z", "b:z", "a:", ":z", "a:zz"] {
        assert!(view.tool_called(none).is_none(), "{none}");
    }
    assert_eq!(view.absent_server("off:x"), Some("off"));
    let given = grant(1, &[("a.b", "a", "z")], ExposedServers::default());
    let entry = views.get(&Scope::Entry(EntryScope::narrowed(given, None)), &snapshot);
    let list = told(&entry.tools_as(Format::OpenAi));
    let fitted = list["tools"][0]["function"]["name"].as_str().unwrap();
    assert!(fitted.starts_with("a_b_"), "{fitted}");
    for name in ["a.b", fitted] {
        assert_eq!(entry.tool_called(name).unwrap().0, "a.b");
    }
    assert!(
        entry.tool_called("a:z").is_none(),
        "entries know no servers"
    );
    assert!(!list.to_string().contains("server"), "{list}");
}

#[test]
fn d10_lists_in_other_formats_weigh_what_they_take() {
    let snapshot = SnapshotBuilder::default()
        .add("a", listed(Era::Modern).tools(&["x"]).offer())
        .snapshot();
    let views = entry_views(1 << 20);
    let given = grant(1, &[("x", "a", "x")], ExposedServers::default());
    let view = views.get(&EntryScope::narrowed(given.clone(), None), &snapshot);
    let before = views.load().1;
    let made: usize = Format::ALL
        .map(|format| view.tools_as(format).body.len())
        .iter()
        .sum();
    views.get(&EntryScope::narrowed(given.clone(), None), &snapshot);
    views.get(&EntryScope::narrowed(given.clone(), None), &snapshot);
    assert_eq!(views.load(), (1, before + made));
}
