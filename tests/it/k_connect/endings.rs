//! It ends with its client, and takes what it had running with it.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::{CANCELLED, RUNS, StdioClient, command, heard, recorded};
use crate::app::{alive, eventually};
use crate::mcp_front::portway;

#[tokio::test]
async fn k5_however_its_client_ends_it_ends_and_so_does_what_runs() {
    for modern in [false, true] {
        for end in [None, Some(Signal::SIGTERM), Some(Signal::SIGINT)] {
            let app = recorded().await;
            let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
            if !modern {
                client.hello("2025-11-25", json!({})).await;
                client.begin("tools/call", json!({"name": "hang"})).await;
            } else {
                let hang = json!({"name": "hang"});
                client.begin_modern("tools/call", hang).await;
            }
            heard(&app, RUNS).await;
            match end {
                Some(signal) => client.signal(signal),
                None => drop(client.stdin.take()),
            }
            assert_eq!(client.ended().await, Some(0), "{modern} {end:?}");
            heard(&app, CANCELLED).await;
        }
    }
}

#[tokio::test]
async fn k5_killed_it_leaves_nothing_running_for_a_modern_client() {
    let app = recorded().await;
    let mut client = StdioClient::start(&app.setup, &["--server", "x"]);
    let hang = json!({"name": "hang"});
    client.begin_modern("tools/call", hang).await;
    heard(&app, RUNS).await;
    client.signal(Signal::SIGKILL);
    client.ended().await;
    heard(&app, CANCELLED).await;
}

#[tokio::test]
async fn k5_a_client_that_reads_no_more_is_gone() {
    let app = portway(&[]).await;
    let mut bridge = command(&app.setup, &["--server", "x"]).spawn().unwrap();
    let mut stdin = bridge.stdin.take().unwrap();
    drop(bridge.stdout.take());
    use tokio::io::AsyncWriteExt;
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    stdin.write_all(ping).await.unwrap();
    let status = tokio::time::timeout(crate::app::PATIENCE, bridge.wait()).await;
    assert_eq!(status.expect("it ends").unwrap().code(), Some(0));
}

#[tokio::test]
async fn k5_it_ends_with_a_client_that_was_killed_while_another_holds_its_stdin() {
    let app = portway(&[]).await;
    let bridge = command(&app.setup, &[]);
    let bridge = bridge.as_std();
    let mut shell = Command::new("sh");
    let script = "sleep 600 | { echo $$; exec \"$0\" connect; } & wait";
    shell.arg("-c").arg(script).arg(bridge.get_program());
    for (name, value) in bridge.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
        .current_dir(app.setup.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut shell = shell.spawn().unwrap();
    let connects = || -> Vec<i32> {
        let all = app.setup.processes().into_iter();
        all.filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).split('\0').nth(1) == Some("connect")
        })
        .collect()
    };
    let mut lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().is_some());
    eventually("it runs", || connects().len() == 1).await;
    let bridge = connects()[0];
    // Made by it when it knows whose child it is.
    let clients = app.setup.path().join("data/clients");
    eventually("it has begun", || clients.exists()).await;
    // The one who started it, not the one who holds its stdin.
    let stat = std::fs::read_to_string(format!("/proc/{bridge}/stat")).unwrap();
    let parent = stat.rsplit(')').next().unwrap().split_whitespace().nth(1);
    let parent: i32 = parent.unwrap().parse().unwrap();
    kill(Pid::from_raw(parent), Signal::SIGKILL).unwrap();
    eventually("it ends", || !alive(bridge.into())).await;
    for pid in app.setup.processes() {
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name == b"sleep\n" {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
