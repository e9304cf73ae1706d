//! The JSON store under faults. A test that needs another process runs this
//! test binary again with one ignored test chosen and the directory given in
//! the environment.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

mod beside;
mod calls_in_flight;
mod cluster;
mod contract;
mod crash;
mod files;
mod journaled;
#[path = "../../../../tests/it/needs.rs"]
mod needs;
mod postgres;
mod power;
mod recovery;
mod scale;
mod whole;

use super::json::Sizes;

const DIRECTORY: &str = "PORTWAY_TEST_STORE";

/// The number of attempts at something that fails only by chance.
fn rounds(few: usize, many: usize) -> usize {
    match std::env::var("PORTWAY_SOAK") {
        Ok(_) => many,
        Err(_) => few,
    }
}

fn open(directory: &Path) -> Store {
    let opened = Store::open_files(directory).unwrap();
    assert_eq!(opened.warnings, Vec::<String>::new());
    opened.store
}

fn record(name: &str) -> ServerRecord {
    ServerRecord::new(ServerName::parse(name).unwrap())
}

async fn names(store: &Store) -> Vec<String> {
    let servers = store.servers().await.unwrap();
    servers.iter().map(|r| r.name.to_string()).collect()
}

/// Runs this binary as another process, under a shell that first runs `before`.
fn child(test: &str, directory: &Path, before: &str) -> Child {
    let me = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{before} exec \"$@\""), "sh"])
        .arg(me)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn f4_missing_is_not_an_error_and_names_are_unique() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("deep/data");
    let store = open(&data);
    let mut first = record("one");
    let second = record("two");
    store.put_server(&first).await.unwrap();
    store.put_server(&second).await.unwrap();
    assert_eq!(store.servers().await.unwrap(), [first.clone(), second]);

    let clash = store.put_server(&record("one")).await.unwrap_err();
    assert!(matches!(clash.kind, StoreErrorKind::Conflict(_)));
    assert_eq!(
        clash.to_string(),
        "cannot save the server: the server's name is taken"
    );

    first.run = Some(false);
    first.name = ServerName::parse("uno").unwrap();
    store.put_server(&first).await.unwrap();
    assert_eq!(names(&store).await, ["uno", "two"]);

    assert!(
        store
            .delete_server(&ServerName::parse("two").unwrap())
            .await
            .unwrap()
    );
    assert!(
        !store
            .delete_server(&ServerName::parse("two").unwrap())
            .await
            .unwrap()
    );
    drop(store);

    assert_eq!(open(&data).servers().await.unwrap(), [first]);
}

#[tokio::test]
async fn f6_writes_at_once_share_a_save_and_all_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open(directory.path()));
    let mut writes = tokio::task::JoinSet::new();
    for i in 0..500 {
        let store = store.clone();
        writes.spawn(async move { store.put_server(&record(&format!("s{i}"))).await });
    }
    let start = std::time::Instant::now();
    while let Some(written) = writes.join_next().await {
        written.unwrap().unwrap();
    }
    println!("500 writes at once took {:?}", start.elapsed());
    drop(store);
    assert_eq!(open(directory.path()).servers().await.unwrap().len(), 500);
}

#[tokio::test]
async fn f6_many_records_are_saved_in_one_go_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let many: Vec<_> = (0..5_000).map(|i| record(&format!("s{i}"))).collect();
    store.put_servers(&many).await.unwrap();
    let clash = [record("new"), record("s7")];
    assert!(store.put_servers(&clash).await.is_err());
    let twins = [record("twin"), record("twin")];
    assert!(store.put_servers(&twins).await.is_err());
    drop(store);
    assert_eq!(open(directory.path()).servers().await.unwrap(), many);
}

#[test]
fn a_full_disk_is_told_apart() {
    let full = io::Error::from_raw_os_error(libc::ENOSPC);
    assert!(matches!(
        StoreErrorKind::io("x", full),
        StoreErrorKind::Full
    ));
    let denied = io::Error::from_raw_os_error(libc::EACCES);
    assert!(matches!(
        StoreErrorKind::io("x", denied),
        StoreErrorKind::Io { .. }
    ));
}
