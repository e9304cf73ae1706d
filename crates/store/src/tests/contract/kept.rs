use serde_json::json;

use super::*;

pub(super) async fn f6_everything_answered_is_there_after_opening_again(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (key, desk) = entry(&store, &ids).await;
    store
        .update_binding(&ALL, desk.id, off(ids[1]))
        .await
        .unwrap();
    let (gone, deleted) = entry(&store, &ids).await;
    store.delete_entry(&ALL, deleted.id).await.unwrap();
    let (_, new) = new_instance("old", json!({"register_tools": ["files:read"]}));
    made(store.create_instance(new, None).await);
    let server = ServerRecord::new(ServerName::parse("files").unwrap());
    store.put_server(&server).await.unwrap();
    let servers = store.servers().await.unwrap();
    assert_eq!(servers, [server]);
    let tools = store.tools(&ALL, EVERY).await.unwrap();
    let entries = store.entries(&ALL, EVERY).await.unwrap();
    let bindings = store.bindings(&ALL, desk.id).await.unwrap();
    let instances = store.instances(&ALL, EVERY).await.unwrap();
    drop(store);
    for _ in 0..2 {
        let store = place.open().await;
        assert_eq!(store.tools(&ALL, EVERY).await.unwrap(), tools);
        assert_eq!(store.entries(&ALL, EVERY).await.unwrap(), entries);
        assert_eq!(store.bindings(&ALL, desk.id).await.unwrap(), bindings);
        assert_eq!(store.instances(&ALL, EVERY).await.unwrap(), instances);
        assert_eq!(store.servers().await.unwrap(), servers);
        assert_eq!(visible(&store, &key).await.unwrap(), ["a", "c"]);
        assert!(granted(&store, &gone).await.is_none());
    }
}

pub(super) async fn f6_numbers_go_on_after_opening_again(place: &dyn TestStore) {
    let store = place.open().await;
    let last = tools(&store, &["a", "b"]).await[1];
    let (_, desk) = entry(&store, &[]).await;
    store.delete_tool(&ALL, last).await.unwrap();
    store.delete_entry(&ALL, desk.id).await.unwrap();
    drop(store);
    let store = place.open().await;
    assert!(tool(&store, "c").await.id > last);
    assert!(entry(&store, &[]).await.1.id > desk.id);
}

pub(super) async fn f6_a_create_is_remembered_after_opening_again(place: &dyn TestStore) {
    let once = Idempotency {
        key: [1; 32],
        body: [1; 32],
    };
    let other = Idempotency {
        body: [2; 32],
        ..once
    };
    let store = place.open().await;
    let (_, new) = new_entry("desk", &[]);
    let desk = made(store.create_entry(new.clone(), Some(once)).await);
    drop(store);
    let store = place.open().await;
    let again = store.create_entry(new.clone(), Some(once)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(Some(desk)));
    let refused = kind(store.create_entry(new, Some(other)).await);
    assert!(matches!(refused, StoreErrorKind::OnceReused));
}
