//! Servers started below the helper, by each step; `--nocapture` prints what
//! the helper costs.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use upstream::process::{Grace, Process, spawn};

use super::forest::{TestForest, helpers, ladder_here, rounds};

#[tokio::test(flavor = "multi_thread")]
async fn a2_every_step_starts_and_ends_a_server() {
    let direct = median_of(direct_first_byte).await;
    println!("first byte of cat, started directly: {direct:?}");
    for &step in ladder_here().await.works() {
        let tree = TestForest::new();
        let command = tree.command(step, "cat", &[]);
        let (mut firsts, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..rounds(10, 100) {
            let start = Instant::now();
            let mut process = spawn(&command).await.unwrap();
            echo(&mut process).await;
            firsts.push(start.elapsed());
            let start = Instant::now();
            process.end(Grace::default()).await;
            ends.push(start.elapsed());
        }
        let first = median(&mut firsts);
        let over = first.saturating_sub(direct);
        println!(
            "{step:10} first byte {first:?} (+{over:?}), end {:?}",
            median(&mut ends)
        );
        tree.assert_gone(&step.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_many_servers_at_once() {
    let tree = TestForest::new();
    let step = ladder_here().await.works()[0];
    let command = tree.command(step, "cat", &[]);
    let count = rounds(24, 200) as usize;
    let start = Instant::now();
    let spawned: Vec<_> = (0..count)
        .map(|_| {
            let command = command.clone();
            tokio::spawn(async move {
                let mut process = spawn(&command).await.unwrap();
                echo(&mut process).await;
                process
            })
        })
        .collect();
    let mut processes = Vec::new();
    for process in spawned {
        processes.push(process.await.unwrap());
    }
    println!("{count} servers up in {:?}", start.elapsed());
    let helpers = helpers(&tree.name);
    assert_eq!(helpers.len(), count);
    let private: Vec<u64> = helpers.iter().map(|pid| private_bytes(*pid)).collect();
    println!(
        "helper's private memory: {} KiB each",
        private.iter().sum::<u64>() / count as u64 / 1024
    );
    let start = Instant::now();
    let ends = processes
        .into_iter()
        .map(|process| tokio::spawn(process.end(Grace::default())));
    for end in ends.collect::<Vec<_>>() {
        end.await.unwrap();
    }
    println!("{count} servers ended in {:?}", start.elapsed());
    tree.assert_gone("all of them");
}

/// The helper's own pages and those of its init.
fn private_bytes(helper: i32) -> u64 {
    let list = fs::read_to_string(format!("/proc/{helper}/task/{helper}/children")).unwrap();
    let children = list
        .split_whitespace()
        .map(|pid| pid.parse::<i32>().unwrap());
    let of_helper = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with("portway")
    };
    let own = children.filter(of_helper).chain([helper]);
    own.map(|pid| {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let pss = rollup.lines().filter(|line| line.starts_with("Pss_Anon:"));
        pss.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum::<u64>()
            * 1024
    })
    .sum()
}

async fn echo(process: &mut Process) {
    process
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"x")
        .await
        .unwrap();
    let mut byte = [0];
    process
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut byte)
        .await
        .unwrap();
}

async fn direct_first_byte() -> Duration {
    let start = Instant::now();
    let mut command = tokio::process::Command::new("cat");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(b"x").await.unwrap();
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0])
        .await
        .unwrap();
    let took = start.elapsed();
    drop(child.stdin.take());
    child.wait().await.unwrap();
    took
}

async fn median_of<F: Future<Output = Duration>>(measure: impl Fn() -> F) -> Duration {
    let mut times = Vec::new();
    for _ in 0..rounds(10, 100) {
        times.push(measure().await);
    }
    median(&mut times)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
