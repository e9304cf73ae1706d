//! Start time and response time of a store as it grows: compares figures of one
//! run, so that the limits catch quadratic growth.

use std::time::{Duration, Instant};

use super::whole::{new_entry, tools};
use super::*;

/// The memory of this process, in MiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4 / 1024
}

/// Fills a store, reopens it, and creates entries; returns the time to open and
/// the median time of a create.
async fn measure(entries: usize) -> (Duration, Duration) {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(open(directory.path()));
    let ids = tools(&store, 60).await;
    let mut filling = tokio::task::JoinSet::new();
    for i in 0..entries {
        let (store, new) = (store.clone(), new_entry(&ids[i % 40..i % 40 + 20]));
        filling.spawn(async move { store.create_entry(new, None).await.map(drop) });
        if filling.len() >= 500 {
            filling.join_next().await.unwrap().unwrap().unwrap();
        }
    }
    while let Some(filled) = filling.join_next().await {
        filled.unwrap().unwrap();
    }
    let closing = Instant::now();
    drop(store);
    let closing = closing.elapsed();

    let starting = Instant::now();
    let store = open(directory.path());
    let starting = starting.elapsed();
    let mut creates = Vec::new();
    for _ in 0..100 {
        let (new, begin) = (new_entry(&ids[..20]), Instant::now());
        store.create_entry(new, None).await.unwrap();
        creates.push(begin.elapsed());
    }
    creates.sort_unstable();
    let size = std::fs::metadata(directory.path().join("mcp_instances.json"));
    println!(
        "{entries} entries with 20 bindings: start {starting:?}, create {:?} median, {:?} worst, \
         close {closing:?}, {} KiB on disk, {} MiB resident",
        creates[50],
        creates[99],
        size.unwrap().len() / 1024,
        resident()
    );
    (starting, creates[50])
}

#[tokio::test]
async fn f6_a_start_grows_with_the_entries_and_a_create_does_not() {
    let times = rounds(10, 50);
    let (start_few, create_few) = measure(200).await;
    let (start, create) = measure(200 * times).await;
    assert!(
        start < start_few * 4 * times as u32,
        "{start_few:?}, {start:?}"
    );
    assert!(create < create_few * 5, "{create_few:?}, {create:?}");
}
