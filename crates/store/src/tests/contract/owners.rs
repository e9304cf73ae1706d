use serde_json::json;

use super::*;

pub(super) async fn e2_tools_of_another_are_not_there(place: &dyn TestStore) {
    let store = place.open().await;
    let mine = tool(&store, "read").await;
    let theirs = made(store.create_tool(new_tool(OTHER, "read"), None).await);
    let other = only(OTHER);
    assert_eq!(store.tool(&other, mine.id).await.unwrap(), None);
    let change = ToolChange {
        name: Some("stolen".to_owned()),
        ..ToolChange::default()
    };
    let changed = store.update_tool(&other, mine.id, change).await.unwrap();
    assert_eq!(changed, None);
    assert!(!store.delete_tool(&other, mine.id).await.unwrap());
    let found = store.tool(&only(ME), mine.id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&mine));
    let listed = store.tools(&other, EVERY).await.unwrap();
    assert_eq!((listed.items, listed.total), (vec![theirs], 1));
    assert_eq!(store.tools(&ALL, EVERY).await.unwrap().total, 2);
    assert_eq!(store.tools(&only("nobody"), EVERY).await.unwrap().total, 0);
    assert!(store.delete_tool(&only(ME), mine.id).await.unwrap());
}

pub(super) async fn e1_entries_of_another_are_not_there(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b"]).await;
    let (key, mine) = entry(&store, &ids[..1]).await;
    let other = only(OTHER);
    assert_eq!(store.entry(&other, mine.id).await.unwrap(), None);
    let change = EntryChange {
        enabled: Some(false),
        ..EntryChange::default()
    };
    let changed = store.update_entry(&other, mine.id, change).await.unwrap();
    assert_eq!(changed, None);
    let new = ApiKey::random().unwrap().record(None);
    let replaced = store.replace_key(&other, mine.id, new).await.unwrap();
    assert_eq!(replaced, None);
    assert!(!store.delete_entry(&other, mine.id).await.unwrap());
    assert_eq!(store.bindings(&other, mine.id).await.unwrap(), None);
    let bind = store.bind(&other, mine.id, &[on(ids[1])]).await.unwrap();
    assert_eq!(bind, None);
    // The error does not even reveal whether the tool could be bound.
    let bind = store.bind(&other, mine.id, &[on(ToolId(99_999))]).await;
    assert_eq!(bind.unwrap(), None);
    let set = store.update_binding(&other, mine.id, off(ids[0])).await;
    assert_eq!(set.unwrap(), None);
    assert!(!store.unbind(&other, mine.id, ids[0]).await.unwrap());
    assert_eq!(store.entries(&other, EVERY).await.unwrap().total, 0);

    let me = only(ME);
    assert_eq!(store.entry(&me, mine.id).await.unwrap(), Some(mine.clone()));
    assert_eq!(bound(&store, mine.id).await, [(ids[0], true)]);
    assert_eq!(visible(&store, &key).await.unwrap(), ["a"]);
    assert_eq!(store.entries(&me, EVERY).await.unwrap().total, 1);
    assert!(store.delete_entry(&me, mine.id).await.unwrap());
}

pub(super) async fn e9_old_records_of_another_are_not_there(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_instance("old", json!({}));
    let mine = made(store.create_instance(new, None).await);
    let (key, other) = (key.digest(), only(OTHER));
    assert_eq!(store.instance(&other, &key.into()).await.unwrap(), None);
    let change = InstanceChange {
        enabled: Some(false),
        ..InstanceChange::default()
    };
    let changed = store
        .update_instance(&other, &key.into(), change)
        .await
        .unwrap();
    assert_eq!(changed, None);
    assert!(!store.delete_instance(&other, &key.into()).await.unwrap());
    assert_eq!(store.instances(&other, EVERY).await.unwrap().total, 0);
    let listed = store.instances(&only(ME), EVERY).await.unwrap();
    assert_eq!(listed.items, [mine]);
    assert!(store.delete_instance(&only(ME), &key.into()).await.unwrap());
}

/// The tool must belong to the entry's owner, whatever the caller's scope is.
pub(super) async fn e5_nobody_binds_the_tool_of_another(place: &dyn TestStore) {
    let store = place.open().await;
    let theirs = made(store.create_tool(new_tool(OTHER, "read"), None).await);
    let (_, new) = new_entry("desk", &[theirs.id]);
    let refused = kind(store.create_entry(new, None).await);
    assert!(matches!(refused, StoreErrorKind::NoSuchTool(id) if id == theirs.id));
    let (_, mine) = entry(&store, &[]).await;
    for whose in [ALL, only(ME)] {
        let refused = kind(store.bind(&whose, mine.id, &[on(theirs.id)]).await);
        assert!(matches!(refused, StoreErrorKind::NoSuchTool(id) if id == theirs.id));
    }
    assert_eq!(bound(&store, mine.id).await, []);
    let (key, mut new) = new_entry("theirs", &[theirs.id]);
    new.owner = OTHER.into();
    made(store.create_entry(new, None).await);
    assert_eq!(visible(&store, &key).await.unwrap(), ["read"]);
}
