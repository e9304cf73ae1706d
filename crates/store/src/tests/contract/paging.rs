use serde_json::json;

use super::*;

const PAGES: &[(u64, u64)] = &[
    (0, 10),
    (0, 3),
    (3, 3),
    (6, 3),
    (6, 1),
    (7, 3),
    (100, 3),
    (0, 0),
    (2, 0),
];

/// The expected page of `all`.
fn cut<T: Clone>(all: &[T], (skip, limit): (u64, u64)) -> Vec<T> {
    let (skip, limit) = (skip as usize, limit as usize);
    all.iter().skip(skip).take(limit).cloned().collect()
}

pub(super) async fn f4_tools_come_in_pages(place: &dyn TestStore) {
    let store = place.open().await;
    let mut all = Vec::new();
    for name in ["g", "a", "f", "b", "e", "c", "d"] {
        all.push(tool(&store, name).await);
        made(store.create_tool(new_tool(OTHER, name), None).await);
    }
    let change = ToolChange {
        name: Some("later".to_owned()),
        ..ToolChange::default()
    };
    let later = store.update_tool(&ALL, all[2].id, change).await.unwrap();
    all[2] = later.unwrap();
    for &(skip, limit) in PAGES {
        let page = Page { skip, limit };
        let listed = store.tools(&only(ME), page).await.unwrap();
        assert_eq!(listed.items, cut(&all, (skip, limit)), "{page:?}");
        assert_eq!(listed.total, 7);
        assert_eq!(store.tools(&ALL, page).await.unwrap().total, 14);
    }
}

pub(super) async fn f4_entries_come_in_pages(place: &dyn TestStore) {
    let store = place.open().await;
    let mut all = Vec::new();
    for name in ["g", "a", "f", "b", "e", "c", "d"] {
        let (_, new) = new_entry(name, &[]);
        all.push(made(store.create_entry(new, None).await));
        let (_, mut new) = new_entry(name, &[]);
        new.owner = OTHER.into();
        made(store.create_entry(new, None).await);
    }
    let change = EntryChange {
        enabled: Some(false),
        ..EntryChange::default()
    };
    let later = store.update_entry(&ALL, all[2].id, change).await.unwrap();
    all[2] = later.unwrap();
    for &(skip, limit) in PAGES {
        let page = Page { skip, limit };
        let listed = store.entries(&only(ME), page).await.unwrap();
        assert_eq!(listed.items, cut(&all, (skip, limit)), "{page:?}");
        assert_eq!(listed.total, 7);
        assert_eq!(store.entries(&ALL, page).await.unwrap().total, 14);
    }
}

pub(super) async fn f4_old_records_come_in_pages(place: &dyn TestStore) {
    let store = place.open().await;
    let mut all = Vec::new();
    for name in ["g", "a", "f", "b", "e", "c", "d"] {
        let (_, new) = new_instance(name, json!({}));
        all.push(made(store.create_instance(new, None).await));
        let (_, mut new) = new_instance(name, json!({}));
        new.owner = OTHER.into();
        made(store.create_instance(new, None).await);
    }
    for &(skip, limit) in PAGES {
        let page = Page { skip, limit };
        let listed = store.instances(&only(ME), page).await.unwrap();
        assert_eq!(listed.items, cut(&all, (skip, limit)), "{page:?}");
        assert_eq!(listed.total, 7);
        assert_eq!(store.instances(&ALL, page).await.unwrap().total, 14);
    }
}
