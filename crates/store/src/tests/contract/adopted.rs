//! Tests of the adoption of another application's records.

use serde_json::json;

use super::*;

/// A record as it is read from another application's table or file.
fn theirs(key: &str, name: &str) -> Instance {
    let now = Timestamp::now();
    let (_, new) = new_instance(name, json!({"register_tools": ["files:read", "git:log"]}));
    let key = ApiKey::given(key).record(None);
    Instance {
        id: EntryId(0),
        owner: ME.into(),
        name: new.name,
        enabled: true,
        key: KeyRecord {
            digest: key.digest,
            hint: key.hint,
            created_at: now,
            expires_at: None,
            last_used_at: None,
        },
        extra: new.extra,
        created_at: Timestamp::from_millis(1_700_000_000_000),
        updated_at: now,
    }
}

#[track_caller]
fn entry_of(adopted: &Adoption) -> EntryId {
    match adopted {
        Adoption::Made(made) => made.entry,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn e9_records_of_others_become_entries_with_their_keys(place: &dyn TestStore) {
    let store = place.open().await;
    let mut off = theirs("the key of two", "two");
    off.enabled = false;
    let records = [theirs("the key of one", "one"), off];
    let adopted = store.adopt(&records).await.unwrap();
    let ids: Vec<EntryId> = adopted.iter().map(entry_of).collect();
    assert_eq!(counts(&store).await, (2, 2, 0));
    let grant = granted(&store, &ApiKey::given("the key of one"))
        .await
        .unwrap();
    assert_eq!((grant.entry, grant.tools.len()), (ids[0], 2));
    assert!(
        granted(&store, &ApiKey::given("the key of two"))
            .await
            .is_none()
    );
    let one = store.entry(&ALL, ids[0]).await.unwrap().unwrap();
    assert_eq!((one.name.as_str(), &*one.owner), ("one", ME));
    assert_eq!(one.created_at, records[0].created_at);
    assert_eq!(one.key.hint, "", "the key is too short for a hint");
    let two = store.entry(&ALL, ids[1]).await.unwrap().unwrap();
    assert!(!two.enabled);
}

pub(super) async fn e9_adopting_again_makes_nothing_more(place: &dyn TestStore) {
    let store = place.open().await;
    let records = [
        theirs("the key of one", "one"),
        theirs("the key of two", "two"),
    ];
    let adopted = store.adopt(&records[..1]).await.unwrap();
    let first = entry_of(&adopted[0]);
    // The same after a change of the entry.
    let change = EntryChange {
        name: Some("renamed".into()),
        enabled: Some(false),
        ..EntryChange::default()
    };
    store.update_entry(&ALL, first, change).await.unwrap();
    let adopted = store.adopt(&records).await.unwrap();
    assert_eq!(adopted[0], Adoption::Known(first));
    entry_of(&adopted[1]);
    assert_eq!(counts(&store).await, (2, 2, 0));
    let kept = store.entry(&ALL, first).await.unwrap().unwrap();
    assert_eq!((kept.name.as_str(), kept.enabled), ("renamed", false));
}

pub(super) async fn e9_a_key_of_somebody_elses_is_refused(place: &dyn TestStore) {
    let store = place.open().await;
    let mut other = theirs("the key of one", "one");
    other.owner = OTHER.into();
    let first = entry_of(&store.adopt(&[other]).await.unwrap()[0]);
    let (_, mut new) = new_instance("old", json!({}));
    new.key = ApiKey::given("the key of two").record(None);
    let old = made(store.create_instance(new, None).await);
    let records = [
        theirs("the key of one", "one"),
        theirs("the key of two", "two"),
        theirs("the key of three", "three"),
    ];
    let adopted = store.adopt(&records).await.unwrap();
    let refused = |adopted: &Adoption| match adopted {
        Adoption::Refused(reason) => reason.clone(),
        other => panic!("{other:?}"),
    };
    let words = format!("its key is that of entry {first}, of user {OTHER}");
    assert_eq!(refused(&adopted[0]), words);
    let words = format!("its key is that of the old record {} in Portway", old.id);
    assert!(refused(&adopted[1]).starts_with(&words));
    entry_of(&adopted[2]);
}
