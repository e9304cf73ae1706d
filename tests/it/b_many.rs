//! Files of a size that people do not write by hand, and what following
//! them costs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::app::{App, eventually, fixture, setup};
use crate::process::forest::rounds;

/// The processor time Portway has used, its children not counted.
fn cpu(app: &App) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", app.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[tokio::test]
async fn b3_of_500_servers_100_are_wrong_and_the_400_load() {
    let faults = [
        (json!({"command": "x", "timeout": "soon"}), "timeout"),
        (json!({"args": []}), "command"),
        (json!({"command": "x", "env": {"A": 1}}), "env.A"),
        (json!({"url": "ftp://x"}), "url"),
        (json!({"command": "x", "args": ["a", 2]}), "args[1]"),
    ];
    let mut text = String::from("{\n  \"mcpServers\": {\n");
    let mut expected = Vec::new();
    for n in 0..500 {
        let server = match n {
            n if n % 5 == 3 => {
                let (server, field) = &faults[n / 5 % faults.len()];
                // The line of the key; each server has one.
                expected.push((format!("s{n:03}"), *field, n as u64 + 3));
                server.clone()
            }
            n if n % 100 == 0 => json!({"command": fixture()}),
            _ => json!({"command": fixture(), "enabled": false}),
        };
        let comma = if n == 499 { "" } else { "," };
        text += &format!("    \"s{n:03}\": {server}{comma}\n");
    }
    text += "  }\n}\n";
    let start = Instant::now();
    let app = setup().file(".mcp.json", &text).start().await;
    println!("500 servers: the port is open after {:?}", start.elapsed());
    for name in ["s000", "s100", "s200", "s300", "s400"] {
        app.until_status(name, "connected").await;
    }
    let list = app.list().await;
    let by = |fits: &dyn Fn(&Value) -> bool| list.iter().filter(|one| fits(one)).count();
    assert_eq!(list.len(), 500);
    assert_eq!(by(&|one| one["state"] == "running"), 5);
    assert_eq!(by(&|one| one["state"] == "stopped"), 395);
    assert_eq!(by(&|one| one["state"] == "error"), 100);

    let file = app.path(".mcp.json").canonicalize().unwrap();
    let log = app.log();
    assert_eq!(expected.len(), 100);
    for (name, field, line) in expected {
        let record = list.iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(record["source"], file.display().to_string());
        let problem = &record["problems"][0];
        assert_eq!(
            (&problem["server"], &problem["field"], &problem["line"]),
            (&json!(name), &json!(field), &json!(line))
        );
        let said = format!("{}: server {name:?}: {field}: ", file.display());
        let said = log.lines().find(|one| one.contains(&said));
        let place = format!("(line {line}, column ");
        assert!(said.is_some_and(|said| said.contains(&place)), "{name}");
    }
}

fn off(command: &str, timeout: u32) -> Value {
    json!({"command": command, "enabled": false, "timeout": timeout})
}

/// Five million bytes: many servers, long ones, or much else of another tool.
fn large(shape: &str, timeout: u32) -> String {
    let padding = |length: usize| "x".repeat(length);
    let mut servers = serde_json::Map::new();
    servers.insert("edited".into(), off("x", timeout));
    let mut file = json!({});
    match shape {
        "many servers" => {
            for n in 0..20_000 {
                servers.insert(format!("s{n}"), off(&padding(180), 7));
            }
        }
        "long servers" => {
            for n in 0..100 {
                servers.insert(format!("s{n}"), off(&padding(50_000), 7));
            }
        }
        _ => {
            let said = |n: u32| json!({"display": format!("{n} {}", padding(200)), "n": n});
            file["history"] = (0..20_000).map(said).collect();
        }
    }
    file["mcpServers"] = servers.into();
    serde_json::to_string_pretty(&file).unwrap()
}

#[tokio::test]
async fn b6_a_file_of_5_mb_is_reloaded_with_little_work() {
    for shape in ["many servers", "long servers", "much else"] {
        let texts: Vec<String> = (1..=4).map(|timeout| large(shape, timeout)).collect();
        assert!(texts[0].len() > 4_900_000, "{shape}: {}", texts[0].len());
        let app = setup().file(".mcp.json", &texts[0]).start().await;
        // What the start left to do is not part of a reload.
        let mut before = cpu(&app);
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = cpu(&app);
            if now < before + Duration::from_millis(50) {
                break;
            }
            before = now;
        }
        let started = cpu(&app);
        let mut costs = Vec::new();
        for (n, text) in texts.iter().enumerate().skip(1) {
            let before = cpu(&app);
            std::fs::write(app.path(".mcp.json"), text).unwrap();
            let reloads = || app.log().matches("changed \"edited\"").count();
            eventually("it is reloaded", || reloads() == n).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            costs.push(cpu(&app) - before);
        }
        println!("{shape}: the start cost {started:?}, reloads {costs:?}");
        // A start reads the file once; a reload reads it once more.
        let least = costs.iter().min().unwrap();
        assert!(*least < started * 2, "{shape}: {started:?}, {costs:?}");
    }
}

#[tokio::test]
async fn b6_a_file_that_nobody_saves_is_not_read_again() {
    let app = setup()
        .file(".mcp.json", large("much else", 7))
        .start()
        .await;
    // Beyond the second look at a new file.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let seconds = rounds(5, 30);
    let before = bytes_read(&app);
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    let read = bytes_read(&app) - before;
    println!("idle: {read} bytes read in {seconds} s");
    assert!(read < 1_000_000, "{read} bytes; the file has five million");
}

/// How much the program has read so far, from files and sockets.
fn bytes_read(app: &App) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", app.pid())).unwrap();
    let read = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// Whoever starts Portway may read the line with the address and no more.
#[tokio::test]
async fn k2_a_stdout_that_is_not_read_holds_nothing_up() {
    let servers: serde_json::Map<String, Value> = (0..3000)
        .map(|n| (format!("a server with a long name {n:020}"), off("x", 7)))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = json!({ "mcpServers": servers }).to_string();
    std::fs::write(dir.path().join(".mcp.json"), file).unwrap();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_portway"))
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(dir.path())
        .env_clear()
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut line = [0; 8];
    stdout.read_exact(&mut line).await.unwrap();
    assert_eq!(&line, b"portway ");
    let pid = child.id().unwrap();
    // The table is more than a pipe holds: somebody hangs in the write.
    eventually("the pipe is full", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let mut places = threads.flatten().map(|thread| thread.path().join("wchan"));
        places.any(|place| {
            std::fs::read_to_string(place)
                .unwrap_or_default()
                .contains("pipe_write")
        })
    })
    .await;
    let pid = nix::unistd::Pid::from_raw(pid as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let ended = tokio::time::timeout(crate::app::PATIENCE, child.wait()).await;
    assert!(ended.expect("it ends").unwrap().success());
}
