use super::*;

fn named(name: &str) -> ToolChange {
    ToolChange {
        name: Some(name.to_owned()),
        ..ToolChange::default()
    }
}

pub(super) async fn e3_bindings_stand_in_the_order_they_were_made(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c", "d"]).await;
    let (_, desk) = entry(&store, &[ids[2], ids[0]]).await;
    store
        .bind(&ALL, desk.id, &[on(ids[3]), off(ids[1])])
        .await
        .unwrap();
    let expected = [
        (ids[2], true),
        (ids[0], true),
        (ids[3], true),
        (ids[1], false),
    ];
    assert_eq!(bound(&store, desk.id).await, expected);
    let after = store.entry(&ALL, desk.id).await.unwrap();
    assert_eq!(
        after,
        Some(desk),
        "binding is no change of the entry itself"
    );
}

pub(super) async fn e3_binding_again_sets_the_status(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (_, desk) = entry(&store, &ids[..2]).await;
    let before = store.bindings(&ALL, desk.id).await.unwrap().unwrap();
    let answer = store
        .bind(&ALL, desk.id, &[on(ids[2]), off(ids[0])])
        .await
        .unwrap()
        .unwrap();
    let answered: Vec<ToolId> = answer.iter().map(|one| one.tool.id).collect();
    assert_eq!(answered, [ids[0], ids[2]], "those named, in their order");
    let after = store.bindings(&ALL, desk.id).await.unwrap().unwrap();
    assert_eq!(
        bound(&store, desk.id).await,
        [(ids[0], false), (ids[1], true), (ids[2], true)]
    );
    assert_eq!(after[0].binding.created_at, before[0].binding.created_at);
    assert_eq!(after[1], before[1]);
    assert_eq!([after[0].clone(), after[2].clone()], *answer);
}

pub(super) async fn e3_one_tool_named_twice_is_bound_once(place: &dyn TestStore) {
    let store = place.open().await;
    let read = tool(&store, "read").await.id;
    let (key, mut new) = new_entry("desk", &[]);
    new.bindings = vec![on(read), off(read)];
    let desk = made(store.create_entry(new, None).await);
    assert_eq!(bound(&store, desk.id).await, [(read, false)]);
    let twice = [off(read), on(read)];
    let answer = store.bind(&ALL, desk.id, &twice).await.unwrap().unwrap();
    assert_eq!(answer.len(), 1);
    assert_eq!(bound(&store, desk.id).await, [(read, true)]);
    assert_eq!(visible(&store, &key).await.unwrap(), ["read"]);
}

pub(super) async fn e3_a_status_is_set_only_where_there_is_a_binding(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b"]).await;
    let (_, desk) = entry(&store, &ids[..1]).await;
    let set = store.update_binding(&ALL, desk.id, off(ids[0])).await;
    let set = set.unwrap().unwrap();
    assert_eq!((set.tool.id, set.binding.enabled), (ids[0], false));
    for id in [ids[1], ToolId(9_999)] {
        let set = store.update_binding(&ALL, desk.id, on(id)).await.unwrap();
        assert_eq!(set, None);
    }
    assert_eq!(bound(&store, desk.id).await, [(ids[0], false)]);
}

pub(super) async fn e3_unbinding_takes_one_away(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b"]).await;
    let (_, desk) = entry(&store, &ids).await;
    let (_, other) = entry(&store, &ids).await;
    assert!(store.unbind(&ALL, desk.id, ids[0]).await.unwrap());
    assert!(!store.unbind(&ALL, desk.id, ids[0]).await.unwrap());
    assert!(!store.unbind(&ALL, desk.id, ToolId(9_999)).await.unwrap());
    assert_eq!(bound(&store, desk.id).await, [(ids[1], true)]);
    assert_eq!(bound(&store, other.id).await.len(), 2);
    // Bound again, the tool is the newest.
    store.bind(&ALL, desk.id, &[on(ids[0])]).await.unwrap();
    assert_eq!(
        bound(&store, desk.id).await,
        [(ids[1], true), (ids[0], true)]
    );
}

pub(super) async fn e3_binding_nothing_changes_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a"]).await;
    let (_, desk) = entry(&store, &ids).await;
    let answer = store.bind(&ALL, desk.id, &[]).await.unwrap();
    assert_eq!(answer, Some(vec![]));
    assert_eq!(bound(&store, desk.id).await, [(ids[0], true)]);
}

pub(super) async fn e5_a_rename_obeys_the_rule_of_names(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (key, _) = entry(&store, &ids[..2]).await;
    entry(&store, &ids[1..]).await;
    for (id, name) in [(ids[1], "a"), (ids[1], "c"), (ids[0], "b"), (ids[2], "b")] {
        let before = store.tool(&ALL, id).await.unwrap();
        let refused = store.update_tool(&ALL, id, named(name)).await.unwrap_err();
        assert!(matches!(&refused.kind, StoreErrorKind::SameName(same) if same == name));
        assert_eq!(
            refused.to_string(),
            format!("cannot change the tool: two bound tools are called {name:?}")
        );
        assert_eq!(store.tool(&ALL, id).await.unwrap(), before);
    }
    // No entry has both tools.
    let renamed = store.update_tool(&ALL, ids[0], named("c")).await.unwrap();
    assert_eq!(renamed.unwrap().name, "c");
    assert_eq!(visible(&store, &key).await.unwrap(), ["b", "c"]);
    // A tool's own name is not a conflict.
    let same = store.update_tool(&ALL, ids[1], named("b")).await.unwrap();
    assert_eq!(same.unwrap().name, "b");
}

pub(super) async fn e5_a_disabled_binding_counts_for_names(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "a", "b"]).await;
    let (_, mut new) = new_entry("desk", &[]);
    new.bindings = vec![off(ids[0]), on(ids[2])];
    let desk = made(store.create_entry(new, None).await);
    let refused = kind(store.bind(&ALL, desk.id, &[on(ids[1])]).await);
    assert!(matches!(refused, StoreErrorKind::SameName(name) if name == "a"));
    let refused = kind(store.bind(&ALL, desk.id, &[off(ids[1])]).await);
    assert!(matches!(refused, StoreErrorKind::SameName(_)));
    let refused = kind(store.update_tool(&ALL, ids[2], named("a")).await);
    assert!(matches!(refused, StoreErrorKind::SameName(_)));
    assert_eq!(
        bound(&store, desk.id).await,
        [(ids[0], false), (ids[2], true)]
    );
}

pub(super) async fn e5_names_may_meet_once_the_other_is_gone(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "a", "a"]).await;
    let (_, desk) = entry(&store, &ids[..1]).await;
    assert!(store.unbind(&ALL, desk.id, ids[0]).await.unwrap());
    store.bind(&ALL, desk.id, &[on(ids[1])]).await.unwrap();
    assert!(store.delete_tool(&ALL, ids[1]).await.unwrap());
    store.bind(&ALL, desk.id, &[on(ids[2])]).await.unwrap();
    store
        .update_tool(&ALL, ids[2], named("b"))
        .await
        .unwrap()
        .unwrap();
    store.bind(&ALL, desk.id, &[on(ids[0])]).await.unwrap();
    assert_eq!(
        bound(&store, desk.id).await,
        [(ids[2], true), (ids[0], true)]
    );
    // Names are compared case-sensitively.
    let upper = tool(&store, "A").await.id;
    store.bind(&ALL, desk.id, &[on(upper)]).await.unwrap();
    assert_eq!(bound(&store, desk.id).await.len(), 3);
}
