use super::*;

fn once(key: u8, body: u8) -> Option<Idempotency> {
    Some(Idempotency {
        key: [key; 32],
        body: [body; 32],
    })
}

pub(super) async fn e4_who_asks_again_gets_what_was_made(place: &dyn TestStore) {
    let store = place.open().await;
    let read = made(store.create_tool(new_tool(ME, "read"), once(1, 1)).await);
    let again = store.create_tool(new_tool(ME, "read"), once(1, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(Some(read.clone())));

    let (key, new) = new_entry("desk", &[read.id]);
    let desk = made(store.create_entry(new.clone(), once(2, 1)).await);
    let again = store.create_entry(new, once(2, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(Some(desk.clone())));
    // With a new random key: the first one stays.
    let (drawn, new) = new_entry("desk", &[read.id]);
    let again = store.create_entry(new, once(2, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(Some(desk.clone())));
    assert!(granted(&store, &drawn).await.is_none());
    assert!(granted(&store, &key).await.is_some());

    let (_, new) = new_instance("old", serde_json::json!({}));
    let old = made(store.create_instance(new.clone(), once(3, 1)).await);
    let again = store.create_instance(new, once(3, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(Some(old)));
    assert_eq!(counts(&store).await, (1, 1, 1));

    // The response has the current state, not the original one.
    let change = EntryChange {
        name: Some("table".to_owned()),
        ..EntryChange::default()
    };
    let table = store.update_entry(&ALL, desk.id, change).await.unwrap();
    let (_, new) = new_entry("desk", &[read.id]);
    let again = store.create_entry(new, once(2, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(table));
}

pub(super) async fn e4_another_request_with_the_same_key_is_refused(place: &dyn TestStore) {
    let store = place.open().await;
    made(store.create_tool(new_tool(ME, "read"), once(1, 1)).await);
    let refused = store.create_tool(new_tool(ME, "write"), once(1, 2)).await;
    assert!(matches!(kind(refused), StoreErrorKind::OnceReused));
    let (_, new) = new_entry("desk", &[]);
    made(store.create_entry(new.clone(), once(2, 1)).await);
    let refused = store.create_entry(new, once(2, 2)).await;
    assert!(matches!(kind(refused), StoreErrorKind::OnceReused));
    let (_, new) = new_instance("old", serde_json::json!({}));
    made(store.create_instance(new.clone(), once(3, 1)).await);
    let refused = store.create_instance(new, once(3, 2)).await;
    assert!(matches!(kind(refused), StoreErrorKind::OnceReused));
    assert_eq!(counts(&store).await, (1, 1, 1));
}

pub(super) async fn e4_what_is_gone_since_is_not_made_again(place: &dyn TestStore) {
    let store = place.open().await;
    let read = made(store.create_tool(new_tool(ME, "read"), once(1, 1)).await);
    store.delete_tool(&ALL, read.id).await.unwrap();
    let again = store.create_tool(new_tool(ME, "read"), once(1, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(None));
    let (_, new) = new_entry("desk", &[]);
    let desk = made(store.create_entry(new.clone(), once(2, 1)).await);
    store.delete_entry(&ALL, desk.id).await.unwrap();
    let again = store.create_entry(new, once(2, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(None));
    let (key, new) = new_instance("old", serde_json::json!({}));
    made(store.create_instance(new.clone(), once(3, 1)).await);
    store
        .delete_instance(&ALL, &key.digest().into())
        .await
        .unwrap();
    let again = store.create_instance(new, once(3, 1)).await;
    assert_eq!(again.unwrap(), Creation::Earlier(None));
    assert_eq!(counts(&store).await, (0, 0, 0));
}

pub(super) async fn e4_a_failed_create_may_be_tried_again(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "a"]).await;
    let (_, new) = new_entry("desk", &ids);
    let failed = store.create_entry(new.clone(), once(1, 1)).await;
    assert!(matches!(kind(failed), StoreErrorKind::SameName(_)));
    let change = ToolChange {
        name: Some("b".to_owned()),
        ..ToolChange::default()
    };
    store.update_tool(&ALL, ids[1], change).await.unwrap();
    let desk = made(store.create_entry(new, once(1, 1)).await);
    assert_eq!(bound(&store, desk.id).await.len(), 2);
}

pub(super) async fn e4_the_same_create_at_once_is_made_once(place: &dyn TestStore) {
    let store = place.open().await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = store.clone();
        let (_, new) = new_entry("desk", &[]);
        asked.spawn(async move { store.create_entry(new, once(1, 1)).await });
    }
    let (mut new, mut earlier) = (Vec::new(), Vec::new());
    for outcome in asked.join_all().await {
        match outcome.unwrap() {
            Creation::New(entry) => new.push(entry.id),
            Creation::Earlier(entry) => earlier.push(entry.unwrap().id),
        }
    }
    assert_eq!(new.len(), 1);
    assert!(earlier.iter().all(|id| *id == new[0]));
    assert_eq!(counts(&store).await, (0, 1, 0));
}
