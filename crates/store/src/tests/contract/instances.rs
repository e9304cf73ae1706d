use serde_json::json;

use super::*;

pub(super) async fn e9_an_old_record_is_made_read_changed_and_deleted(place: &dyn TestStore) {
    let store = place.open().await;
    let extra = json!({
        "register_tools": ["files:read"],
        "nested": {"deep": [1, 2.5, null, true, "žluť"]},
        "empty": {},
    });
    let (key, new) = new_instance("old", extra);
    let digest = key.digest();
    let old = made(store.create_instance(new.clone(), None).await);
    assert_eq!((old.name.as_str(), &*old.owner), ("old", ME));
    assert_eq!(old.extra, new.extra);
    assert_eq!(old.key.digest, digest);
    assert_eq!(old.created_at, old.updated_at);
    let found = store.instance(&ALL, &digest.into()).await.unwrap();
    assert_eq!(found.as_ref(), Some(&old));

    let change = InstanceChange {
        name: Some("older".to_owned()),
        enabled: Some(false),
        ..InstanceChange::default()
    };
    let older = store
        .update_instance(&ALL, &digest.into(), change)
        .await
        .unwrap();
    let older = older.unwrap();
    assert_eq!((older.name.as_str(), older.enabled), ("older", false));
    assert_eq!(older.extra, old.extra);
    assert_eq!(older.created_at, old.created_at);

    let change = |extra: &serde_json::Value| InstanceChange {
        extra: extra.as_object().unwrap().clone(),
        ..InstanceChange::default()
    };
    let given = json!({"nested": null, "more": [1]});
    let more = store
        .update_instance(&ALL, &digest.into(), change(&given))
        .await;
    let more = more.unwrap().unwrap();
    let mut extra = old.extra.clone();
    extra.extend(given.as_object().unwrap().clone());
    assert_eq!((more.name.as_str(), &more.extra), ("older", &extra));
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let same = store
        .update_instance(&ALL, &digest.into(), change(&given))
        .await;
    assert_eq!(same.unwrap().as_ref(), Some(&more));
    assert_eq!(
        store.instance(&ALL, &digest.into()).await.unwrap(),
        Some(more)
    );

    assert!(store.delete_instance(&ALL, &digest.into()).await.unwrap());
    assert!(!store.delete_instance(&ALL, &digest.into()).await.unwrap());
    assert_eq!(store.instance(&ALL, &digest.into()).await.unwrap(), None);
}

pub(super) async fn e9_an_old_record_opens_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_instance("old", json!({"register_tools": ["files:read"]}));
    made(store.create_instance(new, None).await);
    assert!(granted(&store, &key).await.is_none());
    assert!(store.ask(&key.digest()).await.unwrap().is_none());
    assert_eq!(counts(&store).await, (0, 0, 1));
    let (entry_key, _) = entry(&store, &[]).await;
    let found = store
        .instance(&ALL, &entry_key.digest().into())
        .await
        .unwrap();
    assert_eq!(found, None);
}

pub(super) async fn e9_an_old_key_is_of_one_record(place: &dyn TestStore) {
    let store = place.open().await;
    let (_, new) = new_instance("old", json!({}));
    made(store.create_instance(new.clone(), None).await);
    let taken = store.create_instance(new, None).await.unwrap_err();
    assert!(matches!(taken.kind, StoreErrorKind::Conflict(_)));
    assert_eq!(
        taken.to_string(),
        "cannot create MCP instance: the key is taken"
    );
    assert_eq!(counts(&store).await, (0, 0, 1));
}

pub(super) async fn e9_an_old_record_is_found_by_its_id(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_instance("old", json!({}));
    let old = made(store.create_instance(new, None).await);
    let by_id = |id| InstanceName {
        key: ApiKey::given("unknown").digest(),
        id: Some(id),
    };
    let named = by_id(old.id);
    assert_eq!(
        store.instance(&ALL, &named).await.unwrap(),
        Some(old.clone())
    );
    assert_eq!(store.instance(&only(OTHER), &named).await.unwrap(), None);
    let missing = by_id(EntryId(old.id.0 + 1));
    assert_eq!(store.instance(&ALL, &missing).await.unwrap(), None);

    // A key that equals the id of another record takes precedence.
    let (_, mut new) = new_instance("numbered", json!({}));
    new.key = ApiKey::given(&old.id.to_string()).record(None);
    let numbered = made(store.create_instance(new, None).await);
    let both = InstanceName {
        key: numbered.key.digest,
        id: Some(old.id),
    };
    let found = store.instance(&ALL, &both).await.unwrap().unwrap();
    assert_eq!(found.id, numbered.id);

    let change = InstanceChange {
        enabled: Some(false),
        ..InstanceChange::default()
    };
    let changed = store.update_instance(&ALL, &named, change).await.unwrap();
    assert!(!changed.unwrap().enabled);
    assert!(!store.delete_instance(&only(OTHER), &named).await.unwrap());
    assert!(store.delete_instance(&ALL, &named).await.unwrap());
    let gone = store.instance(&ALL, &key.digest().into()).await.unwrap();
    assert_eq!(gone, None);
    assert_eq!(counts(&store).await, (0, 0, 1));
}

pub(super) async fn e9_an_old_record_gets_another_owner_and_key(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_instance("old", json!({}));
    let old = made(store.create_instance(new, None).await);
    let (taken, new) = new_instance("other", json!({}));
    made(store.create_instance(new, None).await);
    let (of_entry, _) = entry(&store, &[]).await;
    let named: InstanceName = key.digest().into();
    let to = |key: &ApiKey| InstanceChange {
        owner: Some(OTHER.into()),
        key: Some(key.record(None)),
        ..InstanceChange::default()
    };
    for taken in [&taken, &of_entry] {
        let refused = kind(store.update_instance(&ALL, &named, to(taken)).await);
        assert!(matches!(refused, StoreErrorKind::Conflict(_)));
        let (_, mut new) = new_instance("third", json!({}));
        new.key = taken.record(None);
        let refused = kind(store.create_instance(new, None).await);
        assert!(matches!(refused, StoreErrorKind::Conflict(_)));
    }
    let found = store.instance(&ALL, &named).await.unwrap();
    assert_eq!(found, Some(old.clone()), "nothing of it is changed");

    let fresh = ApiKey::given("a key that the admin chose");
    let changed = store.update_instance(&ALL, &named, to(&fresh)).await;
    let changed = changed.unwrap().unwrap();
    assert_eq!((changed.id, &*changed.owner), (old.id, OTHER));
    assert_eq!(changed.key.hint, "hose");
    let named: InstanceName = fresh.digest().into();
    let found = store.instance(&only(OTHER), &named).await.unwrap();
    assert_eq!(found, Some(changed.clone()));
    let gone = store.instance(&ALL, &key.digest().into()).await.unwrap();
    assert_eq!(gone, None);
    // Setting the same key is no change: the key keeps its creation time.
    let same = store.update_instance(&ALL, &named, to(&fresh)).await;
    assert_eq!(same.unwrap(), Some(changed));
}

pub(super) async fn e9_migrating_keeps_the_key_and_binds_the_tools(place: &dyn TestStore) {
    let store = place.open().await;
    let listed = json!({"register_tools": [
        "files:read", "git:log", "files:read", "web:read",
        "no server", ":empty", "empty:", 7, null, "files:a:b",
    ]});
    let (first, mut new) = new_instance("first", listed);
    let expires_at = Some(Timestamp::from_millis(4_102_444_799_999));
    new.key = first.record(expires_at);
    let one = made(store.create_instance(new, None).await);
    let (second, mut new) = new_instance("second", json!({"register_tools": "none"}));
    new.enabled = false;
    let two = made(store.create_instance(new, None).await);

    let done = store.migrate_instances().await.unwrap();
    let said: Vec<_> = done.iter().map(|one| (&*one.name, one.tools)).collect();
    assert_eq!(said, [("first", 3), ("second", 0)]);
    assert_eq!((done[0].instance, done[1].instance), (one.id, two.id));
    assert_eq!(counts(&store).await, (3, 2, 0));

    let entry = store.entry(&ALL, done[0].entry).await.unwrap().unwrap();
    assert_eq!((entry.name.as_str(), entry.enabled), ("first", true));
    assert_eq!((entry.owner, entry.created_at), (one.owner, one.created_at));
    assert_eq!(entry.key, one.key);
    let bindings = store.bindings(&ALL, entry.id).await.unwrap().unwrap();
    let tools: Vec<_> = bindings
        .iter()
        .map(|BoundTool { binding, tool }| {
            assert!(binding.enabled && &*tool.owner == ME);
            (&*tool.name, &*tool.server, &*tool.tool)
        })
        .collect();
    assert_eq!(
        tools,
        [
            ("read", "files", "read"),
            ("log", "git", "log"),
            ("a:b", "files", "a:b")
        ]
    );
    let names = visible(&store, &first).await.unwrap();
    assert_eq!(names, ["a:b", "log", "read"]);
    assert!(granted(&store, &second).await.is_none());
    let entry = store.entry(&ALL, done[1].entry).await.unwrap().unwrap();
    assert!(!entry.enabled);
}

pub(super) async fn e9_migrating_twice_does_nothing_more(place: &dyn TestStore) {
    let store = place.open().await;
    assert_eq!(store.migrate_instances().await.unwrap(), []);
    let (_, new) = new_instance("old", json!({"register_tools": ["files:read"]}));
    made(store.create_instance(new, None).await);
    assert_eq!(store.migrate_instances().await.unwrap().len(), 1);
    let after = counts(&store).await;
    assert_eq!(store.migrate_instances().await.unwrap(), []);
    assert_eq!(counts(&store).await, after);
}

pub(super) async fn e9_migrating_uses_the_tools_there_are(place: &dyn TestStore) {
    let store = place.open().await;
    let mut new = new_tool(ME, "look");
    new.tool = "read".to_owned();
    let look = made(store.create_tool(new.clone(), None).await);
    // The oldest of several matching tools is used.
    made(store.create_tool(new.clone(), None).await);
    new.owner = OTHER.into();
    new.tool = "write".to_owned();
    let theirs = made(store.create_tool(new, None).await);
    let listed = json!({"register_tools": ["files:read", "files:write"]});
    for name in ["one", "two"] {
        let (_, new) = new_instance(name, listed.clone());
        made(store.create_instance(new, None).await);
    }
    let done = store.migrate_instances().await.unwrap();
    let one = bound(&store, done[0].entry).await;
    assert_eq!(one[0], (look.id, true));
    assert_ne!(one[1].0, theirs.id);
    assert_eq!(bound(&store, done[1].entry).await, one);
    assert_eq!(counts(&store).await, (4, 2, 0));
}

pub(super) async fn e9_migrating_is_all_or_none(place: &dyn TestStore) {
    let store = place.open().await;
    let (_, new) = new_instance("fine", json!({"register_tools": ["files:read"]}));
    made(store.create_instance(new, None).await);
    let (key, new) = new_instance("with the key of an entry", json!({}));
    made(store.create_instance(new, None).await);
    let (_, mut new) = new_entry("an entry", &[]);
    new.key = key.record(None);
    made(store.create_entry(new, None).await);
    let before = counts(&store).await;
    let refused = kind(store.migrate_instances().await);
    assert!(matches!(refused, StoreErrorKind::Conflict(_)));
    assert_eq!(counts(&store).await, before);
    assert!(
        store
            .delete_instance(&ALL, &key.digest().into())
            .await
            .unwrap()
    );
    assert_eq!(store.migrate_instances().await.unwrap().len(), 1);
}

pub(super) async fn f4_a_missing_old_record_is_no_error(place: &dyn TestStore) {
    let store = place.open().await;
    let key = ApiKey::given("unknown").digest();
    assert_eq!(store.instance(&ALL, &key.into()).await.unwrap(), None);
    let change = InstanceChange {
        enabled: Some(false),
        ..InstanceChange::default()
    };
    let changed = store
        .update_instance(&ALL, &key.into(), change)
        .await
        .unwrap();
    assert_eq!(changed, None);
    assert!(!store.delete_instance(&ALL, &key.into()).await.unwrap());
    assert_eq!(counts(&store).await, (0, 0, 0));
}
