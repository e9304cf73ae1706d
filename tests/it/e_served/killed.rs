//! Portway killed while entries are being made: each is there with all its
//! bindings, or not at all.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use nix::sys::signal::Signal;
use serde_json::json;

use super::*;
use crate::app::PATIENCE;
use crate::e_records::{BOUND, ENTRIES, each, on_each_store};
use crate::process::forest::rounds;

on_each_store!(e4_a_kill_leaves_whole_entries_or_none);

const TOOLS: usize = 12;
const MAKERS: usize = 8;

/// Makes entries without end, every third one with a binding that cannot be;
/// notes those that were answered. Its name tells how many bindings an entry
/// must have.
async fn make(
    app: &App,
    maker: usize,
    ids: &[i64],
    (answered, made, busy): (&mut Vec<String>, &AtomicUsize, &AtomicUsize),
) {
    for n in 0.. {
        let (bindings, broken) = (1 + (n + maker) % TOOLS, n % 3 == 2);
        let mut tools: Vec<Value> = ids[..bindings]
            .iter()
            .map(|id| json!({"tool_id": id}))
            .collect();
        let name = match broken {
            true => {
                // At each place in turn.
                tools[n % bindings] = json!({"tool_id": 999_999});
                "broken".to_owned()
            }
            false => format!("{bindings} {maker} {n} {}", app.pid()),
        };
        let body = json!({"name": name, "bindings": tools});
        let bearer = format!("Bearer {}", crate::app::TOKEN);
        let headers = [("authorization", bearer.as_str())];
        let sent = app.try_request("POST", BOUND, Some(body.to_string()), &headers);
        match sent.await {
            // A database may be slow to take whoever has just started; whether
            // it was made then is not told, but not in part.
            Some(answer) if answer.status == 503 => {
                busy.fetch_add(1, Ordering::Relaxed);
            }
            Some(answer) if broken => assert_eq!(answer.status, 404, "{}", answer.text),
            Some(answer) => {
                assert_eq!(answer.status, 201, "{}", answer.text);
                answered.push(name);
                made.fetch_add(1, Ordering::Relaxed);
            }
            None => return,
        }
    }
}

/// Every entry there is, by its name; each has what its name says.
async fn whole(app: &App) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    loop {
        let path = format!("{ENTRIES}?limit=1000&skip={}", names.len());
        let page = app.read(&path).await;
        let (ids, found) = (each(&page, "id"), each(&page, "name"));
        if ids.is_empty() {
            return names;
        }
        let count = async |id| app.total(&format!("{ENTRIES}/{id}/bindings")).await;
        let bound = stream::iter(&ids).map(count).buffered(16);
        let bound: Vec<i64> = bound.collect().await;
        for (name, bound) in found.iter().zip(bound) {
            let wanted = text(name).split(' ').next().and_then(|n| n.parse().ok());
            assert_eq!(wanted, Some(bound), "{name}");
            assert!(names.insert(text(name).to_owned()), "{name} twice");
        }
    }
}

async fn e4_a_kill_leaves_whole_entries_or_none(storage: Storage) {
    let mut app = storage.start().await;
    let mut ids = Vec::new();
    for tool in 0..TOOLS {
        ids.push(app.new_tool(&format!("t{tool}")).await);
    }
    let mut answered: Vec<String> = Vec::new();
    let (mut kept, busy) = (0, AtomicUsize::new(0));
    let rounds = rounds(3, 200);
    for round in 0..rounds {
        let mut notes = vec![Vec::new(); MAKERS];
        let (made, enough) = (AtomicUsize::new(0), fastrand::usize(0..40));
        let makers = notes.iter_mut().enumerate();
        let busy = &busy;
        let makers = makers.map(|(maker, notes)| make(&app, maker, &ids, (notes, &made, busy)));
        let kill = async {
            while made.load(Ordering::Relaxed) < enough {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_micros(fastrand::u64(0..10_000))).await;
            app.signal(Signal::SIGKILL);
        };
        let work = async { tokio::join!(join_all(makers), kill) };
        tokio::time::timeout(PATIENCE, work).await.expect("in time");
        answered.extend(notes.concat());
        app.ended().await;
        app = app.setup.start().await;
        // All of them in the end, and now and then on the way.
        if round % 50 == 49 || round + 1 == rounds {
            let there = whole(&app).await;
            for name in &answered {
                assert!(there.contains(name), "{name} was answered and is lost");
            }
            kept = there.len();
        }
    }
    let (busy, answered) = (busy.into_inner(), answered.len());
    assert!(storage == Storage::Supabase || busy == 0, "{busy} refused");
    println!("{rounds} kills: {answered} answered, {busy} refused, {kept} kept, all whole");
}
