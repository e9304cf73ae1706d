use super::*;

pub(super) async fn e2_a_tool_is_made_read_changed_and_deleted(place: &dyn TestStore) {
    let store = place.open().await;
    let mut new = new_tool(ME, "read");
    new.description = Some("reads".to_owned());
    let read = made(store.create_tool(new, None).await);
    assert_eq!(read.created_at, read.updated_at);
    assert_eq!((&*read.owner, read.name.as_str()), (ME, "read"));
    assert_eq!(
        (read.server.as_str(), read.tool.as_str()),
        ("files", "read_there")
    );
    assert_eq!(read.description.as_deref(), Some("reads"));
    assert_eq!(
        store.tool(&ALL, read.id).await.unwrap().as_ref(),
        Some(&read)
    );

    let change = ToolChange {
        name: Some("look".to_owned()),
        ..ToolChange::default()
    };
    let look = store.update_tool(&ALL, read.id, change).await.unwrap();
    let look = look.unwrap();
    assert_eq!(look.name, "look");
    assert_eq!(look.description.as_deref(), Some("reads"));
    assert_eq!(look.created_at, read.created_at);
    assert!(look.updated_at >= read.updated_at);

    let change = ToolChange {
        description: Some(None),
        server: Some("disk".to_owned()),
        tool: Some("see".to_owned()),
        ..ToolChange::default()
    };
    let see = store.update_tool(&ALL, read.id, change).await.unwrap();
    let see = see.unwrap();
    assert_eq!(
        (
            see.server.as_str(),
            see.tool.as_str(),
            see.description.as_ref()
        ),
        ("disk", "see", None)
    );
    assert_eq!(store.tool(&ALL, read.id).await.unwrap(), Some(see));

    assert!(store.delete_tool(&ALL, read.id).await.unwrap());
    assert_eq!(store.tool(&ALL, read.id).await.unwrap(), None);
    assert!(!store.delete_tool(&ALL, read.id).await.unwrap());
}

pub(super) async fn e2_a_change_that_changes_nothing_keeps_the_time(place: &dyn TestStore) {
    let store = place.open().await;
    let read = tool(&store, "read").await;
    let same = ToolChange {
        name: Some("read".to_owned()),
        ..ToolChange::default()
    };
    for change in [ToolChange::default(), same] {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let after = store.update_tool(&ALL, read.id, change).await.unwrap();
        assert_eq!(after.as_ref(), Some(&read));
    }
}

pub(super) async fn e2_two_tools_may_have_one_name(place: &dyn TestStore) {
    let store = place.open().await;
    let one = tool(&store, "read").await;
    let two = tool(&store, "read").await;
    assert!(one.id < two.id);
    let (_, first) = entry(&store, &[one.id]).await;
    let (_, second) = entry(&store, &[two.id]).await;
    assert_eq!(bound(&store, first.id).await, [(one.id, true)]);
    assert_eq!(bound(&store, second.id).await, [(two.id, true)]);
}

pub(super) async fn e2_deleting_a_tool_takes_its_bindings(place: &dyn TestStore) {
    let store = place.open().await;
    let ids = tools(&store, &["a", "b", "c"]).await;
    let (key, first) = entry(&store, &ids).await;
    let (_, second) = entry(&store, &ids[1..]).await;
    assert!(store.delete_tool(&ALL, ids[1]).await.unwrap());
    assert_eq!(
        bound(&store, first.id).await,
        [(ids[0], true), (ids[2], true)]
    );
    assert_eq!(bound(&store, second.id).await, [(ids[2], true)]);
    assert_eq!(visible(&store, &key).await.unwrap(), ["a", "c"]);
    assert_eq!(counts(&store).await, (2, 2, 0));
}

fn server(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

/// An entry that has two tools and the resources of `files`, and a tool of
/// another server.
async fn of_files(store: &Store) -> (ApiKey, EntryId, Vec<ToolId>) {
    let mut ids = tools(store, &["a", "b"]).await;
    let mut other = new_tool(ME, "c");
    other.server = "web".to_owned();
    ids.push(made(store.create_tool(other, None).await).id);
    let (key, mut new) = new_entry("an entry", &ids);
    new.exposes.resources = vec!["web".to_owned(), "files".to_owned()];
    new.exposes.prompts = vec!["files".to_owned()];
    let entry = made(store.create_entry(new, None).await);
    (key, entry.id, ids)
}

async fn exposed(store: &Store, entry: EntryId) -> (Vec<String>, Vec<String>) {
    let entry = store.entry(&ALL, entry).await.unwrap().unwrap();
    (entry.exposes.resources, entry.exposes.prompts)
}

pub(super) async fn a8_tools_follow_a_server_to_its_new_name(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, entry, ids) = of_files(&store).await;
    let (files, disk, web) = (server("files"), server("disk"), server("web"));
    store.server_moved(&files, Some(&disk)).await.unwrap();
    for (id, name) in ids.iter().zip(["disk", "disk", "web"]) {
        let tool = store.tool(&ALL, *id).await.unwrap().unwrap();
        assert_eq!(tool.server, name);
    }
    let grant = granted(&store, &key).await.unwrap();
    let servers: Vec<_> = grant.tools.iter().map(|tool| &*tool.server).collect();
    assert_eq!(servers, ["disk", "disk", "web"], "in force at once");
    let (resources, prompts) = exposed(&store, entry).await;
    assert_eq!(
        (resources, prompts),
        (strings(&["web", "disk"]), strings(&["disk"]))
    );

    store.server_moved(&disk, Some(&web)).await.unwrap();
    assert_eq!(exposed(&store, entry).await.0, ["web"], "once each");
}

pub(super) async fn a9_bindings_go_with_their_server(place: &dyn TestStore) {
    let store = place.open().await;
    let (key, entry, ids) = of_files(&store).await;
    store.server_moved(&server("none"), None).await.unwrap();
    assert_eq!(bound(&store, entry).await.len(), 3);
    store.server_moved(&server("files"), None).await.unwrap();
    assert_eq!(bound(&store, entry).await, [(ids[2], true)]);
    assert_eq!(visible(&store, &key).await.unwrap(), ["c"]);
    assert_eq!(
        exposed(&store, entry).await,
        (strings(&["web"]), Vec::new())
    );
    assert_eq!(counts(&store).await, (3, 1, 0), "the records stay");
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

pub(super) async fn e2_numbers_are_not_used_twice(place: &dyn TestStore) {
    let store = place.open().await;
    let mut last = ToolId(0);
    for _ in 0..5 {
        let next = tool(&store, "read").await.id;
        assert!(next > last);
        store.delete_tool(&ALL, next).await.unwrap();
        last = next;
    }
}

pub(super) async fn f4_a_missing_tool_is_no_error(place: &dyn TestStore) {
    let store = place.open().await;
    for id in [0, -1, 99, i64::MAX].map(ToolId) {
        assert_eq!(store.tool(&ALL, id).await.unwrap(), None);
        let change = ToolChange {
            name: Some("new".to_owned()),
            ..ToolChange::default()
        };
        assert_eq!(store.update_tool(&ALL, id, change).await.unwrap(), None);
        assert!(!store.delete_tool(&ALL, id).await.unwrap());
    }
    assert_eq!(counts(&store).await, (0, 0, 0));
}
