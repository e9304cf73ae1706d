use std::time::Duration;

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

fn enabled(enabled: bool) -> EntryChange {
    EntryChange {
        enabled: Some(enabled),
        ..EntryChange::default()
    }
}

pub(super) async fn e3_what_is_visible_is_what_is_bound_and_enabled(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["d", "b", "c", "a"]).await;
    let (key, desk) = entry(&store, &ids[..3]).await;
    let grant = granted(&store, &key).await.unwrap();
    assert_eq!((grant.entry, &*grant.owner), (desk.id, ME));
    assert_eq!(*grant.principal, *format!("entry:{}", desk.id));
    assert_eq!(*grant.name, *desk.name);
    assert_eq!(visible(&store, &key).await.unwrap(), ["b", "c", "d"]);
    let found = grant.tool("c").unwrap();
    assert_eq!((&*found.server, &*found.tool), ("files", "c_there"));
    assert!(grant.tool("a").is_none() && grant.tool("c_there").is_none());

    store
        .update_binding(&ALL, desk.id, off(ids[1]))
        .await
        .unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["c", "d"]);
    store.bind(&ALL, desk.id, &[on(ids[3])]).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["a", "c", "d"]);
    store.unbind(&ALL, desk.id, ids[0]).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["a", "c"]);
    let change = ToolChange {
        name: Some("z".to_owned()),
        description: Some(Some("the last".to_owned())),
        server: Some("git".to_owned()),
        tool: Some("log".to_owned()),
    };
    store.update_tool(&ALL, ids[3], change).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["c", "z"]);
    let grant = granted(&store, &key).await.unwrap();
    let found = grant.tool("z").unwrap();
    assert_eq!(found.description.as_deref(), Some("the last"));
    assert_eq!((&*found.server, &*found.tool), ("git", "log"));
    store.delete_tool(&ALL, ids[2]).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["z"]);
    let exposes = ExposedServers {
        resources: vec!["git".to_owned()],
        prompts: vec![],
    };
    let change = EntryChange {
        exposes: Some(exposes.clone()),
        ..EntryChange::default()
    };
    store.update_entry(&ALL, desk.id, change).await.unwrap();
    assert_eq!(granted(&store, &key).await.unwrap().exposes, exposes);
}

pub(super) async fn d7_an_entrys_filter_is_part_of_what_it_grants(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (key, mut new) = new_entry("an entry", &ids);
    new.filter = Some(filter(&["files:*"], &["*:c_there"]));
    let desk = made(store.create_entry(new, None).await);
    // A record stands for `files:<name>_there`.
    let gives = |grant: &Grant, tool: &str| grant.filter_gives("files", Some(tool));
    let grant = granted(&store, &key).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["a", "b"]);
    assert!(gives(&grant, "new") && gives(&grant, "a_there") && !gives(&grant, "c_there"));
    assert!(!grant.filter_gives("git", Some("new")));
    // The filter does not give a disabled tool either.
    store.bind(&ALL, desk.id, &[off(ids[0])]).await.unwrap();
    let grant = granted(&store, &key).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["b"]);
    assert!(gives(&grant, "new") && !gives(&grant, "a_there"));
    store.bind(&ALL, desk.id, &[on(ids[0])]).await.unwrap();
    let none = EntryChange {
        filter: Some(None),
        ..EntryChange::default()
    };
    store.update_entry(&ALL, desk.id, none).await.unwrap();
    let grant = granted(&store, &key).await.unwrap();
    assert_eq!(visible(&store, &key).await.unwrap(), ["a", "b", "c"]);
    assert!(!gives(&grant, "new"));
    // The filter is still there after a restart.
    let some = EntryChange {
        filter: Some(Some(filter(&["git:*"], &[]))),
        ..EntryChange::default()
    };
    store.update_entry(&ALL, desk.id, some).await.unwrap();
    drop((store, grant));
    let store = place.open().await;
    let grant = granted(&store, &key).await.unwrap();
    assert!(grant.filter_gives("git", None) && !grant.filter_gives("files", None));
}

pub(super) async fn e7_disabled_deleted_rotated_and_unknown_open_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let (first, desk) = entry(&store, &[]).await;
    for text in ["", "pwk_", "unknown", "žluť"] {
        assert!(granted(&store, &ApiKey::given(text)).await.is_none());
    }
    assert!(granted(&store, &first).await.is_some());
    assert!(store.grant_of(desk.id).is_some());
    store
        .update_entry(&ALL, desk.id, enabled(false))
        .await
        .unwrap();
    assert!(granted(&store, &first).await.is_none());
    assert!(store.ask(&first.digest()).await.unwrap().is_none());
    assert!(store.grant_of(desk.id).is_none());
    store
        .update_entry(&ALL, desk.id, enabled(true))
        .await
        .unwrap();
    assert!(granted(&store, &first).await.is_some());

    let second = ApiKey::random().unwrap();
    let new = second.record(None);
    store.replace_key(&ALL, desk.id, new).await.unwrap();
    assert!(granted(&store, &first).await.is_none());
    assert!(store.ask(&first.digest()).await.unwrap().is_none());
    let asked = store.ask(&second.digest()).await.unwrap().unwrap();
    assert_eq!(asked.entry, desk.id);

    store.delete_entry(&ALL, desk.id).await.unwrap();
    assert!(granted(&store, &second).await.is_none());
    assert!(store.ask(&second.digest()).await.unwrap().is_none());
    assert!(store.grant_of(desk.id).is_none());

    let (off, mut new) = new_entry("off", &[]);
    new.enabled = false;
    made(store.create_entry(new, None).await);
    assert!(granted(&store, &off).await.is_none());
}

/// Every change that removes access.
#[derive(Clone, Copy, Debug)]
enum GrantChange {
    Disable,
    Rotate,
    Delete,
    Unbind,
    DisableBinding,
    RenameTool,
    DeleteTool,
}

impl GrantChange {
    async fn make(self, store: &Store, entry: EntryId, tool: ToolId) {
        match self {
            GrantChange::Disable => {
                let done = store.update_entry(&ALL, entry, enabled(false)).await;
                assert!(done.unwrap().is_some());
            }
            GrantChange::Rotate => {
                let key = ApiKey::random().unwrap().record(None);
                let done = store.replace_key(&ALL, entry, key).await;
                assert!(done.unwrap().is_some());
            }
            GrantChange::Delete => assert!(store.delete_entry(&ALL, entry).await.unwrap()),
            GrantChange::Unbind => assert!(store.unbind(&ALL, entry, tool).await.unwrap()),
            GrantChange::DisableBinding => {
                let done = store.update_binding(&ALL, entry, off(tool)).await;
                assert!(done.unwrap().is_some());
            }
            GrantChange::RenameTool => {
                let change = ToolChange {
                    name: Some("renamed".to_owned()),
                    ..ToolChange::default()
                };
                let done = store.update_tool(&ALL, tool, change).await;
                assert!(done.unwrap().is_some());
            }
            GrantChange::DeleteTool => assert!(store.delete_tool(&ALL, tool).await.unwrap()),
        }
    }
}

pub(super) async fn e7_after_the_answer_nothing_enters(place: &dyn TestStore) {
    let store = place.open().await;
    let bystander = tool(&store, "bystander").await.id;
    let (unmoved, _) = entry(&store, &[bystander]).await;
    let unmoved = granted(&store, &unmoved).await.unwrap();
    for change in [
        GrantChange::Disable,
        GrantChange::Rotate,
        GrantChange::Delete,
        GrantChange::Unbind,
        GrantChange::DisableBinding,
        GrantChange::RenameTool,
        GrantChange::DeleteTool,
    ] {
        let read = tool(&store, "read").await.id;
        let (key, desk) = entry(&store, &[read]).await;
        let grant = granted(&store, &key).await.unwrap();
        assert!(grant.calls.enter(), "{change:?}");
        grant.calls.leave();
        change.make(&store, desk.id, read).await;
        assert!(grant.calls.is_closed(), "{change:?}");
        assert!(!grant.calls.enter(), "{change:?}");
        let now = granted(&store, &key).await;
        assert!(now.is_none_or(|now| now.tool("read").is_none()));
    }
    assert!(!unmoved.calls.is_closed(), "nothing of its own has changed");
}

pub(super) async fn e7_the_answer_waits_for_those_who_are_passing(place: &dyn TestStore) {
    let store = place.open().await;
    let read = tool(&store, "read").await.id;
    let (key, desk) = entry(&store, &[read]).await;
    let grant = granted(&store, &key).await.unwrap();
    assert!(grant.calls.enter());
    let change = {
        let store = store.clone();
        tokio::spawn(async move { GrantChange::Unbind.make(&store, desk.id, read).await })
    };
    let closed = async {
        while !grant.calls.is_closed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, closed).await.unwrap();
    // Time enough for the change to finish, if it did not wait.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!change.is_finished());
    grant.calls.leave();
    tokio::time::timeout(LIMIT, change).await.unwrap().unwrap();
}

pub(super) async fn e7_a_matrix_of_keys_and_tools_is_exact(place: &dyn TestStore) {
    let store = place.open().await;
    let names: Vec<String> = (0..50).map(|i| format!("t{i:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ids = tools(&store, &names).await;
    let mut keys = Vec::new();
    for one in 0..20_usize {
        let (key, mut new) = new_entry(&format!("e{one}"), &[]);
        let bound = (0..50).filter(|t| (t * 7 + one * 3) % 5 < 3);
        new.bindings = bound
            .map(|t| NewBinding {
                tool: ids[t],
                enabled: (t + one) % 4 != 0,
            })
            .collect();
        made(store.create_entry(new, None).await);
        keys.push(key);
    }
    for (one, key) in keys.iter().enumerate() {
        let expected: Vec<&str> = (0..50)
            .filter(|t| (t * 7 + one * 3) % 5 < 3 && (t + one) % 4 != 0)
            .map(|t| names[t])
            .collect();
        assert_eq!(visible(&store, key).await.unwrap(), expected);
        let grant = granted(&store, key).await.unwrap();
        for name in &names {
            assert_eq!(grant.tool(name).is_some(), expected.contains(name));
        }
    }
}

pub(super) async fn e7_changes_are_announced(place: &dyn TestStore) {
    let store = place.open().await;
    let read = tool(&store, "read").await.id;
    let (_, desk) = entry(&store, &[read]).await;
    for change in [
        GrantChange::DisableBinding,
        GrantChange::RenameTool,
        GrantChange::Rotate,
        GrantChange::DeleteTool,
        GrantChange::Disable,
        GrantChange::Delete,
    ] {
        let mut heard = store.changes();
        change.make(&store, desk.id, read).await;
        let about = async {
            loop {
                match heard.recv().await.unwrap() {
                    StoreChange::Entry(id) if id == desk.id => return,
                    StoreChange::Everything => return,
                    _ => {}
                }
            }
        };
        let heard = tokio::time::timeout(LIMIT, about).await;
        assert!(heard.is_ok(), "{change:?}");
    }
}

pub(super) async fn e10_an_expired_key_opens_nothing(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, desk) = entry(&store, &[]).await;
    let now = Timestamp::now().as_millis();
    let expires = |at: Option<u64>| EntryChange {
        expires_at: Some(at.map(Timestamp::from_millis)),
        ..EntryChange::default()
    };
    for (at, open) in [
        (Some(now - 1), false),
        (Some(now + 3_600_000), true),
        (Some(now), false),
        (None, true),
    ] {
        store
            .update_entry(&ALL, desk.id, expires(at))
            .await
            .unwrap();
        assert_eq!(granted(&store, &key).await.is_some(), open);
        assert_eq!(store.ask(&key.digest()).await.unwrap().is_some(), open);
    }
    // The key expires without any other change.
    let soon = Timestamp::now().as_millis() + 300;
    store
        .update_entry(&ALL, desk.id, expires(Some(soon)))
        .await
        .unwrap();
    let gone = async {
        while granted(&store, &key).await.is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.unwrap();
    assert!(Timestamp::now().as_millis() >= soon);
}

pub(super) async fn e10_the_last_use_is_shown(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, desk) = entry(&store, &[]).await;
    assert_eq!(desk.key.last_used_at, None);
    let grant = granted(&store, &key).await.unwrap();
    let now = Timestamp::now();
    grant.touch(now);
    let shown = async {
        loop {
            let found = store.entry(&ALL, desk.id).await.unwrap().unwrap();
            let listed = store.entries(&ALL, EVERY).await.unwrap().items;
            let used = [&found, &listed[0]].map(|entry| entry.key.last_used_at);
            if used == [Some(now); 2] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, shown).await.unwrap();
    // Other changes keep it.
    let change = EntryChange {
        name: Some("table".to_owned()),
        ..EntryChange::default()
    };
    for change in [change, enabled(false), enabled(true)] {
        let after = store.update_entry(&ALL, desk.id, change).await.unwrap();
        assert_eq!(after.unwrap().key.last_used_at, Some(now));
        let found = store.entry(&ALL, desk.id).await.unwrap().unwrap();
        assert_eq!(found.key.last_used_at, Some(now));
    }
}

pub(super) async fn t_a_tool_is_in_memory_once_and_a_change_touches_only_its_entries(
    place: &dyn TestStore,
) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (first, _) = entry(&store, &ids).await;
    let (second, _) = entry(&store, &ids).await;
    let (third, _) = entry(&store, &ids[..2]).await;
    let all = async || {
        let of = async |key| granted(&store, key).await.unwrap();
        [of(&first).await, of(&second).await, of(&third).await]
    };
    let before = all().await;
    let shares = |grants: &[Arc<Grant>; 3], name| {
        let mut its = grants.iter().filter_map(|grant| grant.tool(name));
        let one = its.next().unwrap();
        its.all(|other| Arc::ptr_eq(one, other))
    };
    assert!(["a", "b", "c"].iter().all(|name| shares(&before, name)));

    let change = ToolChange {
        description: Some(Some("another".to_owned())),
        ..ToolChange::default()
    };
    store.update_tool(&ALL, ids[2], change).await.unwrap();
    let after = all().await;
    assert!(["a", "b", "c"].iter().all(|name| shares(&after, name)));
    let kept = |name| Arc::ptr_eq(before[0].tool(name).unwrap(), after[0].tool(name).unwrap());
    assert!(kept("a") && kept("b") && !kept("c"));
    let same: Vec<bool> = (0..3)
        .map(|at| Arc::ptr_eq(&before[at], &after[at]))
        .collect();
    assert_eq!(same, [false, false, true]);
}
