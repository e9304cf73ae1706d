//! The journal beside the snapshot: saves since the snapshot are never lost
//! with either of the two.

use std::fs;
use std::path::PathBuf;

use super::*;

const FILE: &str = "mcp_instances.json";
const BACKUP: &str = "mcp_instances.json.bak";
const JOURNAL: &str = "mcp_instances.journal";

/// Sizes at which a quiet moment makes no snapshot.
const STILL: Sizes = Sizes {
    journal: u64::MAX,
    small: 0,
};

/// The files as a killed process leaves them: "one" in the snapshot, the
/// rest in the journal.
async fn killed() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_files_with(directory.path(), STILL)
        .unwrap()
        .store;
    for name in ["one", "two", "three"] {
        store.put_server(&record(name)).await.unwrap();
    }
    let copy = tempfile::tempdir().unwrap();
    for file in [FILE, BACKUP, JOURNAL] {
        fs::copy(directory.path().join(file), copy.path().join(file)).unwrap();
    }
    copy
}

fn warned(directory: &Path) -> (Store, Vec<String>) {
    let opened = Store::open_files(directory).unwrap();
    (opened.store, opened.warnings)
}

fn put_aside(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".corrupt-"))
        .collect()
}

#[tokio::test]
async fn f6_a_killed_store_has_everything() {
    let directory = killed().await;
    assert!(fs::metadata(directory.path().join(JOURNAL)).unwrap().len() > 0);
    let store = open(directory.path());
    assert_eq!(names(&store).await, ["one", "two", "three"]);
    store.put_server(&record("four")).await.unwrap();
    drop(store);
    // After the store is closed, the snapshot has everything.
    assert_eq!(
        fs::metadata(directory.path().join(JOURNAL)).unwrap().len(),
        0
    );
    fs::remove_file(directory.path().join(JOURNAL)).unwrap();
    let store = open(directory.path());
    assert_eq!(names(&store).await, ["one", "two", "three", "four"]);
    // Without a journal, as before journals existed.
    store.put_server(&record("five")).await.unwrap();
    drop(store);
    assert_eq!(names(&open(directory.path())).await.len(), 5);
}

#[tokio::test]
async fn f6_with_a_damaged_snapshot_the_backup_and_the_journal_are_everything() {
    for damage in [Some("x"), None] {
        let directory = killed().await;
        match damage {
            Some(text) => fs::write(directory.path().join(FILE), text).unwrap(),
            None => fs::remove_file(directory.path().join(FILE)).unwrap(),
        }
        let (store, warnings) = warned(directory.path());
        assert_eq!(names(&store).await, ["one", "two", "three"]);
        assert!(warnings.len() == 1 && warnings[0].contains("backup"));
        drop(store);
        assert_eq!(names(&open(directory.path())).await.len(), 3);
    }
}

#[tokio::test]
async fn f6_a_torn_journal_is_cut_and_goes_on() {
    let directory = killed().await;
    let path = directory.path().join(JOURNAL);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let (store, warnings) = warned(directory.path());
    assert_eq!(names(&store).await, ["one", "two"]);
    assert!(warnings.len() == 1 && warnings[0].contains("was cut off"));
    assert!(put_aside(directory.path()).is_empty());
    store.put_server(&record("four")).await.unwrap();
    drop(store);
    assert_eq!(names(&open(directory.path())).await, ["one", "two", "four"]);
}

#[tokio::test]
async fn f6_a_damaged_journal_is_put_aside_and_its_good_part_used() {
    let directory = killed().await;
    let path = directory.path().join(JOURNAL);
    let text = fs::read_to_string(&path).unwrap();
    let damaged = text.replace("\"three\"", "\"thr3e\"");
    fs::write(&path, &damaged).unwrap();
    let (store, warnings) = warned(directory.path());
    assert_eq!(names(&store).await, ["one", "two"]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("does not match its checksum in line 2"));
    assert!(warnings[0].contains("put aside as"), "{warnings:?}");
    let aside = put_aside(directory.path());
    assert_eq!(fs::read_to_string(&aside[0]).unwrap(), damaged);
    store.put_server(&record("four")).await.unwrap();
    drop(store);
    assert_eq!(names(&open(directory.path())).await, ["one", "two", "four"]);
}

/// A crash between a new snapshot and the emptying of the journal.
#[tokio::test]
async fn f6_a_journal_that_the_snapshot_contains_is_not_applied_again() {
    let directory = killed().await;
    let journal = fs::read(directory.path().join(JOURNAL)).unwrap();
    let store = open(directory.path());
    let two = ServerName::parse("two").unwrap();
    assert!(store.delete_server(&two).await.unwrap());
    drop(store);
    fs::write(directory.path().join(JOURNAL), journal).unwrap();
    let store = open(directory.path());
    assert_eq!(names(&store).await, ["one", "three"]);
    drop(store);
    assert_eq!(
        fs::metadata(directory.path().join(JOURNAL)).unwrap().len(),
        0
    );
}

#[tokio::test]
async fn f6_a_journal_without_its_snapshot_is_put_aside() {
    let directory = killed().await;
    for file in [FILE, BACKUP] {
        fs::remove_file(directory.path().join(file)).unwrap();
    }
    let (store, warnings) = warned(directory.path());
    assert!(names(&store).await.is_empty());
    assert!(
        warnings[0].contains("a snapshot that is lost"),
        "{warnings:?}"
    );
    assert_eq!(put_aside(directory.path()).len(), 1);
    store.put_server(&record("four")).await.unwrap();
    drop(store);
    assert_eq!(names(&open(directory.path())).await, ["four"]);
}

#[tokio::test]
async fn f6_a_journal_makes_way_for_a_snapshot_when_it_grows() {
    let directory = tempfile::tempdir().unwrap();
    let sizes = Sizes {
        journal: 10_000,
        small: 0,
    };
    let store = Store::open_files_with(directory.path(), sizes)
        .unwrap()
        .store;
    let length = |file| fs::metadata(directory.path().join(file)).unwrap().len();
    for i in 0..300 {
        store.put_server(&record(&format!("s{i}"))).await.unwrap();
        // One save may be in progress.
        assert!(length(JOURNAL) <= length(FILE).max(10_000) + 1_000);
    }
    assert!(length(FILE) > 10_000);
    assert_eq!(length(FILE), length(BACKUP));
}

#[tokio::test]
async fn e10_the_last_use_is_saved_but_not_by_who_uses_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_files_with(directory.path(), STILL)
        .unwrap()
        .store;
    let key = ApiKey::random().unwrap();
    let mut new = whole::new_entry(&[]);
    new.key = key.record(None);
    store.create_entry(new, None).await.unwrap();
    let before = fs::read(directory.path().join(JOURNAL)).unwrap();
    let GrantLookup::Yes(grant) = store.grant(&key.digest()) else {
        panic!("it is open");
    };
    let now = Timestamp::now();
    grant.touch(now);
    assert_eq!(fs::read(directory.path().join(JOURNAL)).unwrap(), before);
    drop(store);
    let store = open(directory.path());
    let entries = store.entries(&OwnerScope::Everyone, Page { skip: 0, limit: 9 });
    let used = entries.await.unwrap().items[0].key.last_used_at;
    assert_eq!(used, Some(now));
}
