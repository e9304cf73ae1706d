use super::*;

/// Each record is one second later, so that their order is certain.
fn record(name: &str, second: u64) -> ServerRecord {
    let mut record = ServerRecord::new(ServerName::parse(name).unwrap());
    record.created_at = Timestamp::from_millis(1_700_000_000_000 + second * 1000);
    record
}

pub(super) async fn f4_servers_are_put_replaced_and_deleted(place: &dyn TestStore) {
    let store = place.open().await;
    assert_eq!(store.servers().await.unwrap(), []);
    let (mut one, two, three) = (record("one", 1), record("two", 2), record("three", 3));
    store.put_server(&one).await.unwrap();
    store
        .put_servers(&[two.clone(), three.clone()])
        .await
        .unwrap();
    one.run = Some(false);
    one.name = ServerName::parse("uno").unwrap();
    store.put_server(&one).await.unwrap();
    let all = [one.clone(), two.clone(), three.clone()];
    assert_eq!(store.servers().await.unwrap(), all);
    one.run = None;
    store.put_server(&one).await.unwrap();
    assert!(store.delete_server(&two.name).await.unwrap());
    assert!(!store.delete_server(&two.name).await.unwrap());
    store.put_servers(&[]).await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(store.servers().await.unwrap(), [one, three]);
}

pub(super) async fn f4_server_names_are_unique(place: &dyn TestStore) {
    let store = place.open().await;
    let one = record("one", 1);
    store.put_server(&one).await.unwrap();
    let clash = store.put_server(&record("one", 2)).await.unwrap_err();
    assert!(matches!(clash.kind, StoreErrorKind::Conflict(_)));
    assert_eq!(
        clash.to_string(),
        "cannot save the server: the server's name is taken"
    );
    let kept = store.servers().await.unwrap();
    assert_eq!(kept, std::slice::from_ref(&one));
    assert!(store.delete_server(&one.name).await.unwrap());
    let next = record("one", 3);
    store.put_server(&next).await.unwrap();
    assert_eq!(store.servers().await.unwrap(), [next]);
}

pub(super) async fn f4_servers_are_put_all_or_none(place: &dyn TestStore) {
    let store = place.open().await;
    let many: Vec<_> = (0..50).map(|i| record(&format!("s{i}"), i)).collect();
    store.put_servers(&many).await.unwrap();
    let mut changed = many[3].clone();
    changed.run = Some(true);
    for bad in [
        vec![changed, record("new", 100), record("s7", 101)],
        vec![record("twin", 100), record("twin", 101)],
    ] {
        let refused = kind(store.put_servers(&bad).await);
        assert!(matches!(refused, StoreErrorKind::Conflict(_)));
        assert_eq!(store.servers().await.unwrap(), many);
    }
}

pub(super) async fn a9_the_record_follows_its_server(place: &dyn TestStore) {
    let store = place.open().await;
    let (one, two, past) = (record("one", 1), record("two", 2), record("uno", 3));
    let all = [one.clone(), two.clone(), past.clone()];
    store.put_servers(&all).await.unwrap();
    // Twice: the next start finishes an edit that was cut off.
    for _ in 0..2 {
        let moved = store.server_moved(&one.name, Some(&past.name)).await;
        moved.unwrap();
        let renamed = ServerRecord {
            name: past.name.clone(),
            ..one.clone()
        };
        assert_eq!(store.servers().await.unwrap(), [renamed, two.clone()]);
    }
    for _ in 0..2 {
        store.server_moved(&past.name, None).await.unwrap();
        assert_eq!(store.servers().await.unwrap(), std::slice::from_ref(&two));
    }
}
