//! The invalidation of cached views, and the effect of filters on them.

use super::*;

#[test]
fn a_view_is_made_anew_only_when_its_lists_changed() {
    let views = Views::default();
    let kept = listed(Era::Modern).tools(&["a"]).offer();
    let first = SnapshotBuilder::default().add("s", kept.clone()).snapshot();
    let (all, one) = (
        views.get(&everything(), &first),
        views.get(&only("s"), &first),
    );
    assert!(Arc::ptr_eq(&all, &views.get(&everything(), &first)));
    let page = all.list("tools/list", MODERN, None).unwrap();
    let again = all.list("tools/list", MODERN, None).unwrap();
    assert_eq!(page.value().as_ptr(), again.value().as_ptr(), "made once");
    let second = SnapshotBuilder::default()
        .add("s", kept)
        .add("t", None)
        .snapshot();
    assert!(!Arc::ptr_eq(&all, &views.get(&everything(), &second)));
    assert!(Arc::ptr_eq(&one, &views.get(&only("s"), &second)));
    // A late request with an older snapshot gets the newer view.
    assert!(Arc::ptr_eq(
        &views.get(&everything(), &second),
        &views.get(&everything(), &first)
    ));
}

#[test]
fn d7_only_allowed_tools_are_listed_and_callable() {
    let page = json!({"uri": "a:b", "name": "n"});
    let listed = |tools: &[&str]| {
        let listed = listed(Era::Modern).tools(tools);
        listed
            .with(ListKind::Resources, std::slice::from_ref(&page))
            .offer()
    };
    let snapshot = SnapshotBuilder::default()
        .add("fs", listed(&["read", "delete"]))
        .add("gh", listed(&["read"]))
        .snapshot();
    let text = r#"{"filters":{"files":{"allow":["fs:*"],"deny":["*:delete"]},"bad":{"allow":1}}}"#;
    let parse = |text| Arc::new(config::filters::parse_filters(text).unwrap());
    let (sender, filters) = tokio::sync::watch::channel(parse(text));
    let views = Views::filtered(filters);
    let filtered = |name: &str| Scope::Everything {
        filter: Some(name.into()),
    };
    let view = views.get(&filtered("files"), &snapshot);
    assert_eq!(
        names(&list(&view, ListKind::Tools, MODERN), "tools", "name"),
        ["mcp_fs_read"]
    );
    assert!(view.tool("mcp_fs_read").is_some());
    assert!(view.tool("mcp_fs_delete").is_none() && view.tool("mcp_gh_read").is_none());
    assert!(view.resource("portway://fs/a:b").is_some());
    assert!(view.resource("portway://gh/a:b").is_none());
    assert_eq!(
        list(&view, ListKind::Resources, LEGACY)["resources"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for (name, words) in [("bad", "filters.bad.allow"), ("none", "\"none\"")] {
        let error = views
            .get(&filtered(name), &snapshot)
            .list("tools/list", MODERN, None);
        let error = error.unwrap_err();
        assert!(error.message.contains(words), "{error}");
    }
    assert!(Arc::ptr_eq(
        &view,
        &views.get(&filtered("files"), &snapshot)
    ));
    assert_eq!(views.get(&everything(), &snapshot).tools.len(), 3);
    sender.send_replace(parse(
        r#"{"filters":{"files":{"allow":["gh:*"]}},"default":"files"}"#,
    ));
    assert!(
        views
            .get(&filtered("files"), &snapshot)
            .tool("mcp_gh_read")
            .is_some()
    );
    assert_eq!(views.get(&everything(), &snapshot).tools.len(), 1);
}
