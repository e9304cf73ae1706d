use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::*;

fn named(name: &str) -> ToolChange {
    ToolChange {
        name: Some(name.to_owned()),
        ..ToolChange::default()
    }
}

/// The number of jobs at a time: more than there are database connections, but
/// few enough that on a busy machine the last ones do not time out.
const AT_ONCE: usize = 16;

/// Runs all jobs concurrently; returns their results, in no order.
async fn at_once<T: Send + 'static, F>(jobs: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for job in jobs {
        let room = room.clone();
        running.spawn(async move {
            let _place = room.acquire_owned().await;
            job.await
        });
    }
    running.join_all().await
}

/// Retries an operation that reached the store's own time limit, as a client
/// would: on a busy machine operations behind many others do.
async fn insisting<T, F>(mut operation: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..100 {
        match operation().await {
            Ok(done) => return done,
            Err(StoreError {
                kind: StoreErrorKind::Unavailable(_),
                ..
            }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the store does not answer");
}

pub(super) async fn e4_many_creates_at_once_are_all_kept(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b"]).await;
    let created = at_once((0..60).map(|i| {
        let (store, ids) = (store.clone(), ids.clone());
        async move {
            let (key, new) = new_entry(&format!("e{i}"), &ids);
            made(store.create_tool(new_tool(ME, "t"), None).await);
            (key, made(store.create_entry(new, None).await))
        }
    }))
    .await;
    let numbers: HashSet<EntryId> = created.iter().map(|(_, entry)| entry.id).collect();
    assert_eq!(numbers.len(), 60);
    assert_eq!(counts(&store).await, (62, 60, 0));
    for (key, entry) in &created {
        let grant = granted(&store, key).await.unwrap();
        assert_eq!((grant.entry, grant.tools.len()), (entry.id, 2));
    }
    drop(store);
    let store = place.open().await;
    for (_, entry) in created {
        let found = store.entry(&ALL, entry.id).await.unwrap();
        assert_eq!(found, Some(entry));
    }
}

pub(super) async fn e3_many_binds_at_once_are_all_kept(place: &dyn TestStore) {
    let store = place.open().await;
    let names: Vec<String> = (0..30).map(|i| format!("t{i:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ids = tools(&store, &names).await;
    let (key, desk) = entry(&store, &[]).await;
    at_once(ids.iter().map(|&id| {
        let store = store.clone();
        async move {
            let new = [on(id)];
            insisting(|| store.bind(&ALL, desk.id, &new)).await
        }
    }))
    .await;
    let there: HashSet<ToolId> = bound(&store, desk.id).await.iter().map(|b| b.0).collect();
    assert_eq!(there, ids.into_iter().collect());
    assert_eq!(visible(&store, &key).await.unwrap(), names);
}

pub(super) async fn e9_fields_given_at_once_are_all_kept(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, new) = new_instance("old", serde_json::json!({}));
    made(store.create_instance(new, None).await);
    let digest = key.digest();
    at_once((0..30).map(|i| {
        let (store, digest) = (store.clone(), digest);
        let mut change = InstanceChange::default();
        change.extra.insert(format!("f{i:02}"), i.into());
        async move {
            let named = digest.into();
            insisting(|| store.update_instance(&ALL, &named, change.clone())).await
        }
    }))
    .await;
    let found = store.instance(&ALL, &digest.into()).await.unwrap().unwrap();
    let kept: HashSet<i64> = found.extra.values().filter_map(|v| v.as_i64()).collect();
    assert_eq!(kept, (0..30).collect());
}

pub(super) async fn e1_changes_at_once_lose_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    for round in 0..10 {
        let (_, desk) = entry(&store, &[]).await;
        let expires_at = Some(Some(Timestamp::from_millis(4_102_444_799_999)));
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
                expires_at,
                ..EntryChange::default()
            },
        ];
        at_once(changes.map(|change| {
            let store = store.clone();
            async move { insisting(|| store.update_entry(&ALL, desk.id, change.clone())).await }
        }))
        .await;
        let after = store.entry(&ALL, desk.id).await.unwrap().unwrap();
        let seen = (after.name.as_str(), after.enabled, after.key.expires_at);
        assert_eq!(Some(seen.2), expires_at, "round {round}");
        assert_eq!((seen.0, seen.1), ("new", false), "round {round}");
    }
}

pub(super) async fn e5_of_many_with_one_name_one_is_bound(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["same"; 12]).await;
    let (key, desk) = entry(&store, &[]).await;
    let outcomes = at_once(ids.into_iter().map(|id| {
        let store = store.clone();
        async move { store.bind(&ALL, desk.id, &[on(id)]).await }
    }))
    .await;
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(done, 1);
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert!(matches!(error.kind, StoreErrorKind::SameName(_)), "{error}");
    }
    assert_eq!(bound(&store, desk.id).await.len(), 1);
    assert_eq!(visible(&store, &key).await.unwrap(), ["same"]);
}

pub(super) async fn e5_of_two_renames_to_one_name_one_is_done(place: &dyn TestStore) {
    let store = place.open().await;
    for round in 0..10 {
        let ids = tools(&store, &["a", "b"]).await;
        let (key, _) = entry(&store, &ids).await;
        let outcomes = at_once(ids.into_iter().map(|id| {
            let store = store.clone();
            async move { store.update_tool(&ALL, id, named("same")).await }
        }))
        .await;
        let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(done, 1, "round {round}");
        let names = visible(&store, &key).await.unwrap();
        assert!(
            names == ["a", "same"] || names == ["b", "same"],
            "{names:?}"
        );
    }
}

pub(super) async fn e5_a_rename_and_a_bind_do_not_meet(place: &dyn TestStore) {
    let store = place.open().await;
    for round in 0..10 {
        let ids = tools(&store, &["a", "b"]).await;
        let (key, desk) = entry(&store, &ids[..1]).await;
        let rename = {
            let (store, id) = (store.clone(), ids[0]);
            async move { store.update_tool(&ALL, id, named("b")).await.is_ok() }
        };
        let bind = {
            let (store, id) = (store.clone(), ids[1]);
            async move { store.bind(&ALL, desk.id, &[on(id)]).await.is_ok() }
        };
        let (renamed, bound) = tokio::join!(tokio::spawn(rename), tokio::spawn(bind));
        let done = (renamed.unwrap(), bound.unwrap());
        let names = visible(&store, &key).await.unwrap();
        match done {
            (true, false) => assert_eq!(names, ["b"], "round {round}"),
            (false, true) => assert_eq!(names, ["a", "b"], "round {round}"),
            both => panic!("round {round}: {both:?}"),
        }
    }
}

pub(super) async fn e5_no_binding_outlives_its_tool(place: &dyn TestStore) {
    let store = place.open().await;
    for round in 0..10 {
        let id = tool(&store, "read").await.id;
        let (key, desk) = entry(&store, &[]).await;
        let delete = {
            let store = store.clone();
            async move { store.delete_tool(&ALL, id).await.unwrap() }
        };
        let bind = {
            let store = store.clone();
            async move { store.bind(&ALL, desk.id, &[on(id)]).await }
        };
        let (deleted, bind) = tokio::join!(tokio::spawn(delete), tokio::spawn(bind));
        assert!(deleted.unwrap());
        if let Err(error) = bind.unwrap() {
            assert!(
                matches!(error.kind, StoreErrorKind::NoSuchTool(_)),
                "{error}"
            );
        }
        assert_eq!(bound(&store, desk.id).await, [], "round {round}");
        assert!(visible(&store, &key).await.unwrap().is_empty());
    }
}

pub(super) async fn e10_a_key_is_taken_once(place: &dyn TestStore) {
    let store = place.open().await;
    let key = ApiKey::random().unwrap();
    let outcomes = at_once((0..12).map(|_| {
        let (store, (_, mut new)) = (store.clone(), new_entry("desk", &[]));
        new.key = key.record(None);
        async move { store.create_entry(new, None).await }
    }))
    .await;
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(done, 1);
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert!(matches!(error.kind, StoreErrorKind::Conflict(_)));
    }
    assert_eq!(counts(&store).await, (0, 1, 0));
}

pub(super) async fn e10_rotations_at_once_leave_one_key(place: &dyn TestStore) {
    let store = place.open().await;
    let (first, desk) = entry(&store, &[]).await;
    let keys: Vec<ApiKey> = (0..12).map(|_| ApiKey::random().unwrap()).collect();
    at_once(keys.iter().map(|key| {
        let (store, key) = (store.clone(), key.record(None));
        async move { store.replace_key(&ALL, desk.id, key).await.unwrap() }
    }))
    .await;
    let kept = store.entry(&ALL, desk.id).await.unwrap().unwrap();
    let mut open = Vec::new();
    for key in keys.iter().chain([&first]) {
        if granted(&store, key).await.is_some() {
            open.push(key.digest());
        }
    }
    assert_eq!(open, [kept.key.digest]);
}
