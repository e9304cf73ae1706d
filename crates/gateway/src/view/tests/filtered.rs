use tokio::sync::watch;

use super::super::fixture::{enabled, grant_with, records};
use super::*;
use crate::EntryScope;
use config::filters::{Filter, Filters};
use store::{ExposedServers, Grant};

fn filter(allow: &[&str], deny: &[&str]) -> Filter {
    let owned = |patterns: &[&str]| patterns.iter().map(|one| (*one).to_owned()).collect();
    Filter {
        allow: owned(allow),
        deny: owned(deny),
    }
}

fn given(tools: &[(&str, &str, &str)], allow: &[&str], deny: &[&str]) -> Arc<Grant> {
    let filter = Some(filter(allow, deny));
    grant_with(
        1,
        enabled(records(tools)),
        ExposedServers::default(),
        filter,
    )
}

fn seen(views: &Views, grant: &Arc<Grant>, snapshot: &Arc<fleet::Snapshot>) -> Vec<String> {
    let scope = Scope::Entry(EntryScope::narrowed(grant.clone(), None));
    let tools = list(&views.get(&scope, snapshot), ListKind::Tools, MODERN);
    names(&tools, "tools", "name")
}

fn two() -> SnapshotBuilder {
    SnapshotBuilder::default()
        .add("fs", listed(Era::Modern).tools(&["read", "delete"]).offer())
        .add("gh", listed(Era::Modern).tools(&["read"]).offer())
}

#[test]
fn d7_an_entrys_filter_gives_what_matches_now_and_later() {
    let views = Views::default();
    for (allow, deny, wanted) in [
        (
            &["fs:*"][..],
            &[][..],
            &["mcp_fs_delete", "mcp_fs_read"][..],
        ),
        (&["*"], &["*:delete*"], &["mcp_fs_read", "mcp_gh_read"]),
        (&["fs:read"], &["fs:*"], &[]),
        // Nothing is allowed that no pattern names.
        (&[], &["*:delete"], &[]),
    ] {
        let grant = given(&[], allow, deny);
        assert_eq!(seen(&views, &grant, &two().snapshot()), wanted, "{allow:?}");
    }
    let grant = given(&[], &["*:read"], &[]);
    assert_eq!(seen(&views, &grant, &two().snapshot()).len(), 2);
    let more = two().add("later", listed(Era::Legacy).tools(&["read", "x"]).offer());
    let names = seen(&views, &grant, &more.snapshot());
    assert_eq!(names, ["mcp_fs_read", "mcp_gh_read", "mcp_later_read"]);
}

#[test]
fn d7_a_binding_keeps_its_name_and_is_denied_like_the_rest() {
    let views = Views::default();
    let snapshot = two().snapshot();
    // Once, under the name of its record.
    let grant = given(&[("mine", "fs", "read")], &["fs:*"], &[]);
    assert_eq!(seen(&views, &grant, &snapshot), ["mine", "mcp_fs_delete"]);
    let grant = given(&[("mine", "fs", "delete")], &["gh:*"], &["*:delete"]);
    assert_eq!(seen(&views, &grant, &snapshot), ["mcp_gh_read"]);
    // A name that a binding has is never another tool's, although the server
    // of that binding is away.
    let qualified = crate::naming::qualified("gh", "read");
    for server in ["fs", "away"] {
        let grant = given(&[("mcp_gh_read", server, "delete")], &["gh:*"], &[]);
        let scope = Scope::Entry(EntryScope::narrowed(grant.clone(), None));
        let view = views.get(&scope, &snapshot);
        let target = view.tool(&qualified).unwrap();
        assert_eq!((&*target.server, &*target.name), ("gh", "read"));
        let taken = view.tool("mcp_gh_read").map(|target| &*target.server);
        assert_eq!(taken, (server == "fs").then_some("fs"));
    }
    // A binding that is switched off takes its tool away.
    let mut off = enabled(records(&[("mine", "fs", "read")]));
    off[0].1 = false;
    let all = Some(filter(&["fs:*"], &[]));
    let grant = grant_with(1, off, ExposedServers::default(), all);
    assert_eq!(seen(&views, &grant, &snapshot), ["mcp_fs_delete"]);
}

#[test]
fn d7_a_named_filter_only_narrows_an_entry() {
    let mut filters = Filters::default();
    for (name, allow) in [("reading", "*:read"), ("everything", "*")] {
        filters.named.insert(name.into(), Ok(filter(&[allow], &[])));
    }
    let (file, filters) = watch::channel(Arc::new(filters));
    let views = Views::filtered(filters);
    let snapshot = two().snapshot();
    let grant = given(&[("mine", "fs", "delete")], &["fs:*"], &[]);
    let narrowed = |name: &str| {
        let entry = EntryScope::narrowed(grant.clone(), Some(name.into()));
        views.get(&Scope::Entry(entry), &snapshot)
    };
    let shown = |view: &View| names(&list(view, ListKind::Tools, MODERN), "tools", "name");
    assert_eq!(shown(&narrowed("reading")), ["mcp_fs_read"]);
    assert_eq!(shown(&narrowed("everything")), ["mine", "mcp_fs_read"]);
    assert!(narrowed("none").is_empty());
    assert!(Arc::ptr_eq(&narrowed("reading"), &narrowed("reading")));
    // An edit of the file is in force at once.
    let before = narrowed("everything");
    file.send_replace(Arc::default());
    assert!(narrowed("everything").is_empty() && !before.is_empty());
}

#[test]
fn e2_users_get_nothing_of_a_server_that_is_closed_to_them() {
    let open = |servers: &[&str]| Filters {
        user_servers: Some(servers.iter().map(|one| (*one).to_owned()).collect()),
        ..Filters::default()
    };
    let (file, filters) = watch::channel(Arc::new(open(&["fs", "gh"])));
    let views = Views::filtered(filters);
    let snapshot = two().snapshot();
    let grant = given(&[("mine", "gh", "read")], &["*"], &[]);
    let all = ["mine", "mcp_fs_delete", "mcp_fs_read"];
    assert_eq!(seen(&views, &grant, &snapshot), all);
    file.send_replace(Arc::new(open(&["fs"])));
    assert_eq!(seen(&views, &grant, &snapshot), all[1..]);
    file.send_replace(Arc::new(open(&[])));
    assert!(seen(&views, &grant, &snapshot).is_empty());
}
