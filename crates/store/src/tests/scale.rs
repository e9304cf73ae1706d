//! Start time and response time of a store as it grows: compares figures of one
//! run, so that the limits catch quadratic growth.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::whole::{new_entry, tools};
use super::*;

/// The memory of this process, in MiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0_u64) * 4 / 1024
}

/// A directory with a store of so many entries.
async fn filled(entries: usize) -> (TempDir, Vec<ToolId>) {
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
    (directory, ids)
}

/// The shortest times to open a store and to create an entry in it, for few
/// and for many entries. Both are measured in turns, so that a busy machine
/// slows both down; the shortest is the one that nothing disturbed.
async fn measure(sizes: [usize; 2]) -> [(Duration, Duration); 2] {
    let mut shortest = [(Duration::MAX, Duration::MAX); 2];
    let stores = [filled(sizes[0]).await, filled(sizes[1]).await];
    for _ in 0..10 {
        for ((directory, ids), (opened, created)) in stores.iter().zip(&mut shortest) {
            let begin = Instant::now();
            let store = open(directory.path());
            *opened = begin.elapsed().min(*opened);
            for _ in 0..10 {
                let (new, begin) = (new_entry(&ids[..20]), Instant::now());
                store.create_entry(new, None).await.unwrap();
                *created = begin.elapsed().min(*created);
            }
        }
    }
    println!(
        "{sizes:?} entries with 20 bindings: open and create take {shortest:?}, {} MiB resident",
        resident()
    );
    shortest
}

#[tokio::test]
async fn f6_a_start_grows_with_the_entries_and_a_create_does_not() {
    let times = rounds(10, 50);
    let [few, many] = measure([200, 200 * times]).await;
    assert!(many.0 < few.0 * 4 * times as u32, "{few:?}, {many:?}");
    assert!(many.1 < few.1 * 5, "{few:?}, {many:?}");
}
