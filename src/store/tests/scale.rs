//! How a store of some size starts and answers. Debug builds are slow, and
//! machines busy: the limits here catch what grows with the square.

use std::time::{Duration, Instant};

use super::whole::{new_entry, tools};
use super::*;

/// How much memory this process has, in MiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4 / 1024
}

/// Fills a store, starts it again, and creates; the time to start and the
/// median time of a create.
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
async fn f6_two_thousand_entries_start_and_grow_in_no_time() {
    let (start, create) = measure(2_000).await;
    assert!(start < Duration::from_secs(20), "{start:?}");
    assert!(create < Duration::from_millis(500), "{create:?}");
}

/// With the limits of a release build.
#[tokio::test]
#[ignore = "for a release build, alone"]
async fn f6_ten_thousand_entries_start_and_grow_in_no_time() {
    let (start, create) = measure(10_000).await;
    assert!(start < Duration::from_secs(3), "{start:?}");
    assert!(create < Duration::from_millis(20), "{create:?}");
}
