//! A parent like Portway, small enough to be killed a thousand times: starts
//! servers and holds them until it is itself gone.
//!
//! `holder SHIM CONTAINMENT INSTANCE COUNT PROGRAM ARGS…` writes
//! `started STEP PID` for each server, and what that writes. With `self` for
//! SHIM it is its own helper, as Portway is, and starts at a line on stdin.

use std::io::Write;

use config::{Containment, Privileges};
use tokio::io::{AsyncBufReadExt, BufReader};
use upstream::process::{ProcessCommand, own_binary, spawn};

fn main() {
    upstream::shim::run_if_asked();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run());
}

async fn run() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [shim, containment, instance, count, program, args @ ..] = args.as_slice() else {
        std::process::exit(64);
    };
    let containment = match containment.as_str() {
        "auto" => Containment::Auto,
        "namespace" => Containment::Namespace,
        "cgroup" => Containment::Cgroup,
        "subreaper" => Containment::Subreaper,
        "group" => Containment::Group,
        _ => std::process::exit(64),
    };
    let shim = match shim.as_str() {
        "self" => {
            let _ = std::io::stdin().read_line(&mut String::new());
            own_binary().expect("a binary")
        }
        shim => shim.into(),
    };
    let command = ProcessCommand {
        program: program.clone(),
        args: args.to_vec(),
        env: std::env::vars().collect(),
        cwd: "/".into(),
        containment,
        privileges: Privileges::Drop,
        hidden: Vec::new(),
        instance: instance.clone(),
        shim,
    };
    let count = count.parse().unwrap_or(1);
    let servers = (0..count).map(|_| tokio::spawn(hold(command.clone())));
    for server in servers.collect::<Vec<_>>() {
        let _ = server.await;
    }
}

async fn hold(command: ProcessCommand) {
    let mut process = match spawn(&command).await {
        Ok(process) => process,
        Err(error) => return say(&format!("failed {error}")),
    };
    say(&format!(
        "started {} {}",
        process.containment(),
        process.pid()
    ));
    if let Some(stdout) = process.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            say(&line);
        }
    }
    say(&format!("ended {}", process.exited().await));
}

/// Not `println!`: it panics when nobody listens any more.
fn say(line: &str) {
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}
