//! SPEC A8, B6: reloads under load lose no call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use config::Target;
use fleet::{ServerView, Status};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::app::{PATIENCE, fixture};
use crate::remote;
use crate::rooms::Rooms;

const CALLS_A_SECOND: u32 = 500;
const RELOADS: usize = 100;
const IN_FLIGHT: usize = 128;

/// What became of the calls: how many were answered, how long each server's
/// short ones took, and those that came to nothing.
#[derive(Default)]
struct Tally {
    answered: usize,
    took: BTreeMap<&'static str, Vec<Duration>>,
    lost: Vec<String>,
}

/// Calls without end, at a rate that does not wait for answers as long as the
/// machine keeps up.
async fn load(rooms: Arc<Rooms>, tally: Arc<Mutex<Tally>>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / CALLS_A_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    for n in 0_u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => break,
        }
        while calls.try_join_next().is_some() {}
        let place = places.clone().acquire_owned().await.unwrap();
        let server = ["steady", "edited", "remote"][(n % 3) as usize];
        let (rooms, tally) = (rooms.clone(), tally.clone());
        calls.spawn(async move {
            let _place = place;
            let start = Instant::now();
            // Every tenth is long enough to be met by a reload.
            let (tool, args, expected) = match n % 10 {
                7 => {
                    let ms = fastrand::u64(1..80);
                    ("sleep", json!({ "ms": ms }), format!("slept {ms} ms"))
                }
                _ => ("echo", json!({"text": n.to_string()}), n.to_string()),
            };
            let answer = rooms.call(server, tool, args).await;
            let mut tally = tally.lock().unwrap();
            match answer {
                Ok(said) if said == expected => {
                    tally.answered += 1;
                    if tool == "echo" {
                        tally.took.entry(server).or_default().push(start.elapsed());
                    }
                }
                Ok(said) => tally.lost.push(format!("{server}: {said}, not {expected}")),
                Err(error) => tally.lost.push(format!("{server}: {error}")),
            }
        });
    }
    while calls.join_next().await.is_some() {}
}

/// What the file says at one moment of the test.
#[derive(Debug)]
struct Definitions {
    url: String,
    edited: usize,
    remote: usize,
    guest: bool,
}

impl Definitions {
    fn text(&self) -> String {
        let stdio = |lock: &str| json!({"command": fixture(), "args": ["--exclusive", lock]});
        let mut edited = stdio("edited.lock");
        edited["env"] = json!({"N": self.edited.to_string()});
        let headers = json!({"X-N": self.remote.to_string()});
        let mut servers = json!({
            "steady": stdio("steady.lock"),
            "edited": edited,
            "remote": {"type": "http", "url": self.url, "headers": headers},
        });
        if self.guest {
            servers["guest"] = stdio("guest.lock");
        }
        serde_json::to_string_pretty(&json!({ "mcpServers": servers })).unwrap()
    }

    /// The next change, and how it is made.
    async fn change(&mut self, rooms: &Rooms, n: usize) {
        let by_api = n % 8 >= 4;
        match n % 4 {
            0 => self.edited += 1,
            1 | 3 => self.guest = !self.guest,
            _ => self.remote += 1,
        }
        if !by_api {
            let new = rooms.path("new");
            std::fs::write(&new, self.text()).unwrap();
            return std::fs::rename(new, rooms.path(".mcp.json")).unwrap();
        }
        match n % 4 {
            0 => {
                let env = json!({"env": {"N": self.edited.to_string()}});
                rooms.patch("edited", env).await;
            }
            2 => {
                let headers = json!({"headers": {"X-N": self.remote.to_string()}});
                rooms.patch("remote", headers).await;
            }
            _ if self.guest => rooms.create("guest", &["--exclusive", "guest.lock"]).await,
            _ => drop(rooms.registry.remove("guest").await.unwrap()),
        }
    }

    /// Waits until all of it is so.
    async fn in_force(&self, rooms: &Rooms) {
        let start = Instant::now();
        loop {
            let snapshot = rooms.fleet.snapshot();
            let view = |name: &str| snapshot.servers.get(name);
            if view("edited").and_then(|view| number(view)) == Some(self.edited)
                && view("remote").and_then(|view| number(view)) == Some(self.remote)
                && view("guest").is_some() == self.guest
            {
                return;
            }
            let told = snapshot.servers.iter().map(|(name, view)| {
                let (status, error) = (view.state.status(), view.state.error());
                format!("{name}: {status:?} {error:?}, {:?}", number(view))
            });
            let told: Vec<String> = told.collect();
            assert!(start.elapsed() < PATIENCE, "{self:?} is not so: {told:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The one value that tells one definition from the next, once it is served.
fn number(view: &ServerView) -> Option<usize> {
    let spec = view.wanted.spec.as_ref().ok()?;
    let number = match &spec.target {
        Target::Stdio { env, .. } => env.get("N"),
        Target::Remote { headers, .. } => headers.get("X-N"),
    };
    let connected = view.settled && view.state.status() == Status::Connected;
    number?.parse().ok().filter(|_| connected)
}

fn at(sorted: &[Duration], share: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_100_reloads_under_500_calls_a_second_lose_none() {
    let server = remote::fixture(&["--http", "0"]).await;
    let rooms = Arc::new(Rooms::open(&[("steady", &["--exclusive", "steady.lock"])]).await);
    let mut definitions = Definitions {
        url: server.url.clone(),
        edited: 0,
        remote: 0,
        guest: false,
    };
    std::fs::write(rooms.path(".mcp.json"), definitions.text()).unwrap();
    rooms.follow();
    definitions.in_force(&rooms).await;
    let pid = |name: &str| rooms.fleet.snapshot().servers[name].process.clone();
    let steady = pid("steady").unwrap().pid;

    let tally = Arc::new(Mutex::new(Tally::default()));
    let stop = CancellationToken::new();
    let load = tokio::spawn(load(rooms.clone(), tally.clone(), stop.clone()));
    let start = Instant::now();
    for n in 0..RELOADS {
        definitions.change(&rooms, n).await;
        definitions.in_force(&rooms).await;
    }
    let took = start.elapsed();
    stop.cancel();
    load.await.unwrap();

    let mut tally = std::mem::take(&mut *tally.lock().unwrap());
    let made = tally.answered;
    println!(
        "{RELOADS} reloads in {took:?} under {made} calls ({:.0} a second), {} lost",
        made as f64 / took.as_secs_f64(),
        tally.lost.len()
    );
    for (server, took) in &mut tally.took {
        took.sort_unstable();
        let [half, most, last] = [0.5, 0.99, 1.0].map(|share| at(took, share));
        println!(
            "{server}: {} short calls, p50 {half:?}, p99 {most:?}, longest {last:?}",
            took.len()
        );
    }
    assert_eq!(tally.lost, [""; 0]);
    assert!(made > RELOADS * 10, "{made}");
    assert_eq!(pid("steady").unwrap().pid, steady);
    for lock in ["steady.lock", "edited.lock", "guest.lock"] {
        assert_eq!(
            std::fs::read(rooms.path(lock)).unwrap(),
            b"",
            "{lock}: no overlap"
        );
    }
    match Arc::try_unwrap(rooms) {
        Ok(rooms) => rooms.close().await,
        Err(_) => panic!("a call is still under way"),
    }
}
