use super::*;

pub(super) async fn e2_a_tool_is_made_read_changed_and_deleted(place: &dyn Place) {
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

pub(super) async fn e2_a_change_that_changes_nothing_keeps_the_time(place: &dyn Place) {
    let store = place.open().await;
    let read = tool(&*store, "read").await;
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

pub(super) async fn e2_two_tools_may_have_one_name(place: &dyn Place) {
    let store = place.open().await;
    let one = tool(&*store, "read").await;
    let two = tool(&*store, "read").await;
    assert!(one.id < two.id);
    let (_, first) = entry(&*store, &[one.id]).await;
    let (_, second) = entry(&*store, &[two.id]).await;
    assert_eq!(bound(&*store, first.id).await, [(one.id, true)]);
    assert_eq!(bound(&*store, second.id).await, [(two.id, true)]);
}

pub(super) async fn e2_deleting_a_tool_takes_its_bindings(place: &dyn Place) {
    let store = place.open().await;
    let ids = tools(&*store, &["a", "b", "c"]).await;
    let (key, first) = entry(&*store, &ids).await;
    let (_, second) = entry(&*store, &ids[1..]).await;
    assert!(store.delete_tool(&ALL, ids[1]).await.unwrap());
    assert_eq!(
        bound(&*store, first.id).await,
        [(ids[0], true), (ids[2], true)]
    );
    assert_eq!(bound(&*store, second.id).await, [(ids[2], true)]);
    assert_eq!(visible(&*store, &key).await.unwrap(), ["a", "c"]);
    assert_eq!(counts(&*store).await, (2, 2, 0));
}

pub(super) async fn e2_numbers_are_not_used_twice(place: &dyn Place) {
    let store = place.open().await;
    let mut last = ToolId(0);
    for _ in 0..5 {
        let next = tool(&*store, "read").await.id;
        assert!(next > last);
        store.delete_tool(&ALL, next).await.unwrap();
        last = next;
    }
}

pub(super) async fn f4_a_missing_tool_is_no_error(place: &dyn Place) {
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
    assert_eq!(counts(&*store).await, (0, 0, 0));
}
