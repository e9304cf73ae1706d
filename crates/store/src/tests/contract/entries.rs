use super::*;

pub(super) async fn e1_an_entry_is_made_read_changed_and_deleted(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, mut new) = new_entry("desk", &[]);
    let expires_at = Some(Timestamp::from_millis(4_102_444_799_999));
    new.key = key.record(expires_at);
    let desk = made(store.create_entry(new, None).await);
    assert_eq!((&*desk.owner, desk.name.as_str()), (ME, "desk"));
    assert!(desk.enabled);
    assert_eq!(desk.created_at, desk.updated_at);
    assert_eq!(desk.key.created_at, desk.created_at);
    assert_eq!(desk.key.digest, key.digest());
    assert!(key.expose().ends_with(&desk.key.hint) && desk.key.hint.len() == 4);
    assert_eq!(desk.key.expires_at, expires_at);
    assert_eq!(desk.key.last_used_at, None);
    assert_eq!(desk.exposes, ExposedServers::default());
    assert_eq!(
        store.entry(&ALL, desk.id).await.unwrap().as_ref(),
        Some(&desk)
    );
    assert_eq!(bound(&store, desk.id).await, []);

    let change = EntryChange {
        name: Some("table".to_owned()),
        ..EntryChange::default()
    };
    let table = store.update_entry(&ALL, desk.id, change).await.unwrap();
    let table = table.unwrap();
    assert_eq!(table.name, "table");
    assert!(table.updated_at >= desk.updated_at);
    assert_eq!(store.entry(&ALL, desk.id).await.unwrap(), Some(table));

    assert!(store.delete_entry(&ALL, desk.id).await.unwrap());
    assert_eq!(store.entry(&ALL, desk.id).await.unwrap(), None);
    assert_eq!(store.bindings(&ALL, desk.id).await.unwrap(), None);
    assert!(!store.delete_entry(&ALL, desk.id).await.unwrap());
}

pub(super) async fn e1_a_change_leaves_the_rest(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a"]).await;
    let (_, mut expected) = entry(&store, &ids).await;
    let exposes = ExposedServers {
        resources: vec!["files".to_owned(), "git".to_owned()],
        prompts: vec!["git".to_owned()],
    };
    let expires_at = Some(Timestamp::from_millis(4_102_444_799_999));
    let changes = [
        EntryChange {
            name: Some("new".to_owned()),
            ..EntryChange::default()
        },
        EntryChange {
            enabled: Some(false),
            ..EntryChange::default()
        },
        EntryChange {
            exposes: Some(exposes),
            ..EntryChange::default()
        },
        EntryChange {
            filter: Some(Some(filter(&["files:*", "*:读"], &[]))),
            ..EntryChange::default()
        },
        EntryChange {
            filter: Some(Some(filter(&[], &["*:delete*"]))),
            ..EntryChange::default()
        },
        EntryChange {
            filter: Some(None),
            ..EntryChange::default()
        },
        EntryChange {
            expires_at: Some(expires_at),
            ..EntryChange::default()
        },
        EntryChange {
            expires_at: Some(None),
            ..EntryChange::default()
        },
    ];
    for change in changes {
        let given = change.clone();
        expected.name = given.name.unwrap_or(expected.name);
        expected.enabled = given.enabled.unwrap_or(expected.enabled);
        expected.exposes = given.exposes.unwrap_or(expected.exposes);
        expected.filter = given.filter.unwrap_or(expected.filter);
        expected.key.expires_at = given.expires_at.unwrap_or(expected.key.expires_at);
        let after = store.update_entry(&ALL, expected.id, change).await.unwrap();
        let after = after.unwrap();
        expected.updated_at = after.updated_at;
        assert_eq!(after, expected);
        assert_eq!(store.entry(&ALL, expected.id).await.unwrap(), Some(after));
    }
    assert_eq!(bound(&store, expected.id).await, [(ids[0], true)]);
}

pub(super) async fn e1_a_change_that_changes_nothing_keeps_the_time(place: &dyn TestStore) {
    let store = place.open().await;
    let (_, desk) = entry(&store, &[]).await;
    let same = EntryChange {
        name: Some(desk.name.clone()),
        enabled: Some(true),
        expires_at: Some(None),
        ..EntryChange::default()
    };
    for change in [EntryChange::default(), same] {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let after = store.update_entry(&ALL, desk.id, change).await.unwrap();
        assert_eq!(after.as_ref(), Some(&desk));
    }
}

pub(super) async fn e1_any_text_is_kept_as_it_is(place: &dyn TestStore) {
    let store = place.open().await;
    let long = "x".repeat(10_000);
    for text in [
        "'; drop table mcp_v2; --",
        "\"quoted\" \\n back\\slash",
        "žluťoučký 🦀 نص",
        " spaces \t\n and lines ",
        "%s {} $1 ${HOME}",
        &long,
    ] {
        let (_, mut new) = new_entry(text, &[]);
        new.owner = text.into();
        new.exposes.prompts = vec![text.to_owned()];
        let desk = made(store.create_entry(new, None).await);
        assert_eq!((desk.name.as_str(), &*desk.owner), (text, text));
        let found = store.entry(&only(text), desk.id).await.unwrap();
        assert_eq!(found, Some(desk));
        let mut new = new_tool(text, text);
        new.description = Some(text.to_owned());
        let read = made(store.create_tool(new, None).await);
        assert_eq!(read.description.as_deref(), Some(text));
        let listed = store.tools(&only(text), EVERY).await.unwrap();
        assert_eq!(listed.items, [read]);
    }
}

pub(super) async fn e1_numbers_are_not_used_twice(place: &dyn TestStore) {
    let store = place.open().await;
    let mut last = EntryId(0);
    for _ in 0..5 {
        let (_, next) = entry(&store, &[]).await;
        assert!(next.id > last);
        store.delete_entry(&ALL, next.id).await.unwrap();
        last = next.id;
    }
}

pub(super) async fn e10_a_key_is_replaced(place: &dyn TestStore) {
    let store = place.open().await;
    let (old, desk) = entry(&store, &[]).await;
    let grant = granted(&store, &old).await.unwrap();
    grant.touch(Timestamp::now());
    let new = ApiKey::random().unwrap();
    let expires_at = Some(Timestamp::from_millis(4_102_444_799_999));
    let after = store
        .replace_key(&ALL, desk.id, new.record(expires_at))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(after.key.digest, new.digest());
    assert!(new.expose().ends_with(&after.key.hint));
    assert_eq!(after.key.expires_at, expires_at);
    assert!(after.key.created_at >= desk.key.created_at);
    assert_eq!(after.key.last_used_at, None, "the new key was never used");
    assert_eq!(store.entry(&ALL, desk.id).await.unwrap(), Some(after));
    assert!(granted(&store, &old).await.is_none());
    assert!(granted(&store, &new).await.is_some());
}

pub(super) async fn e10_a_key_is_of_one_entry(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, first) = entry(&store, &[]).await;
    let (_, second) = entry(&store, &[]).await;
    let (_, mut new) = new_entry("another", &[]);
    new.key = key.record(None);
    let taken = store.create_entry(new, None).await.unwrap_err();
    assert!(matches!(taken.kind, StoreErrorKind::Conflict(_)));
    assert_eq!(
        taken.to_string(),
        "cannot create MCP instance: the key is taken"
    );
    let taken = kind(store.replace_key(&ALL, second.id, key.record(None)).await);
    assert!(matches!(taken, StoreErrorKind::Conflict(_)));
    assert_eq!(store.entry(&ALL, second.id).await.unwrap(), Some(second));
    assert_eq!(counts(&store).await, (0, 2, 0));
    assert_eq!(granted(&store, &key).await.unwrap().entry, first.id);
}

pub(super) async fn e10_keys_are_in_no_debug_output(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_entry("desk", &[]);
    let asked = format!("{key:?} {new:?} {:?}", key.record(None));
    let desk = made(store.create_entry(new, None).await);
    let (old, new) = new_instance("old", serde_json::json!({}));
    let asked = format!("{asked} {new:?}");
    made(store.create_instance(new, None).await);
    let (_, mut again) = new_entry("again", &[]);
    again.key = key.record(None);
    let refused = store.create_entry(again, None).await.unwrap_err();
    let said = format!(
        "{asked} {desk:?} {:?} {:?} {:?} {refused:?} {refused}",
        granted(&store, &key).await,
        store.entries(&ALL, EVERY).await,
        store.instances(&ALL, EVERY).await,
    );
    for key in [key, old] {
        assert!(!said.contains(key.expose()));
        let digest = serde_json::to_string(&key.digest()).unwrap();
        assert!(!said.contains(digest.trim_matches('"')));
        let bytes = format!("{:?}", key.digest().as_bytes());
        assert!(!said.contains(bytes.trim_matches(['[', ']'])));
    }
}

pub(super) async fn f4_a_missing_entry_is_no_error(place: &dyn TestStore) {
    let store = place.open().await;
    let read = tool(&store, "read").await.id;
    for id in [0, -1, 99, i64::MAX].map(EntryId) {
        assert_eq!(store.entry(&ALL, id).await.unwrap(), None);
        let change = EntryChange {
            enabled: Some(false),
            ..EntryChange::default()
        };
        assert_eq!(store.update_entry(&ALL, id, change).await.unwrap(), None);
        let key = ApiKey::random().unwrap().record(None);
        assert_eq!(store.replace_key(&ALL, id, key).await.unwrap(), None);
        assert!(!store.delete_entry(&ALL, id).await.unwrap());
        assert_eq!(store.bindings(&ALL, id).await.unwrap(), None);
        assert_eq!(store.bind(&ALL, id, &[on(read)]).await.unwrap(), None);
        let set = store.update_binding(&ALL, id, off(read)).await.unwrap();
        assert_eq!(set, None);
        assert!(!store.unbind(&ALL, id, read).await.unwrap());
        assert!(store.grant_of(id).is_none());
    }
    assert_eq!(counts(&store).await, (1, 0, 0));
}
