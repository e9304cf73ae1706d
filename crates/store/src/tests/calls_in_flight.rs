//! Tests of `CallsInFlight` and the directory of grants alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn grant(id: i64, key: &ApiKey) -> (EntryId, Option<Grant>) {
    let now = Timestamp::now();
    let record = key.record(None);
    let entry = Entry {
        id: EntryId(id),
        owner: "me".into(),
        name: "desk".to_owned(),
        enabled: true,
        key: KeyRecord {
            digest: record.digest,
            hint: record.hint,
            created_at: now,
            expires_at: None,
            last_used_at: None,
        },
        exposes: ExposedServers::default(),
        filter: None,
        created_at: now,
        updated_at: now,
    };
    (entry.id, Grant::new(&entry, Vec::new()))
}

#[tokio::test]
async fn e7_a_gate_lets_through_until_it_is_closed() {
    let gate = CallsInFlight::default();
    assert!(gate.enter() && gate.enter());
    gate.close();
    assert!(!gate.enter());
    assert!(!gate.emptied(Duration::from_millis(5)).await);
    gate.leave();
    assert!(!gate.emptied(Duration::from_millis(5)).await);
    gate.leave();
    assert!(gate.emptied(LONG).await);
    assert!(!gate.enter() && gate.is_closed());
}

/// Each caller is counted when it enters and leaves; when the gate reports that
/// it is empty, no caller is inside, and none can enter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e7_an_emptied_gate_stays_empty() {
    for _ in 0..rounds(50, 2_000) {
        let gate = Arc::new(CallsInFlight::default());
        let inside = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (gate, inside, stop) = (gate.clone(), inside.clone(), stop.clone());
                std::thread::spawn(move || {
                    let mut passed = 0;
                    while !stop.load(Ordering::SeqCst) {
                        if gate.enter() {
                            inside.fetch_add(1, Ordering::SeqCst);
                            passed += 1;
                            inside.fetch_sub(1, Ordering::SeqCst);
                            gate.leave();
                        }
                    }
                    passed
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..500))).await;
        gate.close();
        assert!(gate.emptied(LONG).await);
        for _ in 0..100 {
            assert_eq!(inside.load(Ordering::SeqCst), 0);
        }
        stop.store(true, Ordering::SeqCst);
        for caller in callers {
            caller.join().unwrap();
        }
    }
}

#[tokio::test]
async fn e7_a_replaced_grant_is_closed_and_found_no_more() {
    let directory = GrantDirectory::default();
    let (first, second) = (ApiKey::random().unwrap(), ApiKey::random().unwrap());
    assert!(directory.replace(vec![grant(1, &first)]).is_empty());
    let held = directory.find(&first.digest()).unwrap();
    let used = Timestamp::from_millis(5);
    held.touch(used);
    held.touch(Timestamp::from_millis(4));

    // Replaced with the same key: its last use is kept.
    let old = directory.replace(vec![grant(1, &first)]);
    assert!(old.len() == 1 && held.calls.is_closed());
    let anew = directory.find(&first.digest()).unwrap();
    assert_eq!(anew.last_used(), Some(used));
    assert!(anew.calls.enter());
    anew.calls.leave();

    // Replaced with another key: it was never used, and the first opens nothing.
    directory.replace(vec![grant(1, &second)]);
    assert!(directory.find(&first.digest()).is_none());
    let other = directory.find(&second.digest()).unwrap();
    assert_eq!(other.last_used(), None);
    assert!(directory.of_entry(EntryId(1)).is_some());

    let old = directory.replace(vec![(EntryId(1), None), (EntryId(2), None)]);
    let settled = tokio::time::timeout(LONG, GrantDirectory::settle(&old)).await;
    settled.unwrap().unwrap();
    assert!(directory.find(&second.digest()).is_none());
    assert!(directory.of_entry(EntryId(1)).is_none());
    assert!(directory.all().is_empty());
}
