//! SPEC U2: Portway as a service: what it tells systemd, the socket it is handed,
//! and a restart that no client notices.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixDatagram};
use tokio::process::Child;
use tokio::time::timeout;

use crate::app::{PATIENCE, Setup, TOKEN, fixtures, setup};
use crate::needs::has;

/// The issue's number of calls, and how many clients make them.
const CALLS: usize = 2_000;
const CLIENTS: usize = 8;

/// Hands its stdin over as systemd hands over a socket.
const HAND_OVER: &str = r#"exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@""#;

/// Starts Portway with `listener` as its socket.
fn start(setup: &Setup, listener: &TcpListener) -> Child {
    let handed = OwnedFd::from(listener.try_clone().unwrap());
    let mut command = setup.command();
    command.stdin(Stdio::from(handed)).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn activated() -> Setup {
    let mut setup = setup().quietly().mcp(fixtures(&[("x", &[])]));
    setup.before = ["sh", "-c", HAND_OVER, "sh"].map(str::to_owned).into();
    setup
}

async fn end(mut child: Child, signal: Signal) {
    kill(Pid::from_raw(child.id().unwrap() as i32), signal).unwrap();
    let status = timeout(PATIENCE, child.wait()).await.expect("it ends");
    let status = status.unwrap();
    assert!(status.success(), "{status}");
}

/// A client that keeps its connection until a response says that it ends.
struct KeepAlive {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl KeepAlive {
    /// The response's session id and its body; a fault is what the client lost.
    async fn post(&mut self, body: &str, headers: &str) -> Result<(String, String), String> {
        let mut talk = match self.connection.take() {
            Some(talk) => talk,
            None => {
                let talk = TcpStream::connect(self.address).await;
                BufReader::new(talk.map_err(|error| format!("refused: {error}"))?)
            }
        };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             {headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let lost = |error: std::io::Error| format!("lost: {error}");
        talk.write_all(request.as_bytes()).await.map_err(lost)?;
        let (mut length, mut closes, mut session) = (0, false, String::new());
        let mut status = String::new();
        talk.read_line(&mut status).await.map_err(lost)?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("lost: {status:?}"));
        }
        loop {
            let mut line = String::new();
            talk.read_line(&mut line).await.map_err(lost)?;
            let line = line.trim_end();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("connection", value)) => closes = value == "close",
                Some(("mcp-session-id", value)) => session = value.to_owned(),
                Some(_) => {}
                None if line.is_empty() => break,
                None => return Err(format!("lost: {line:?}")),
            }
        }
        let mut answer = vec![0; length];
        talk.read_exact(&mut answer).await.map_err(lost)?;
        if !closes {
            self.connection = Some(talk);
        }
        Ok((session, String::from_utf8(answer).unwrap()))
    }
}

fn modern_call(number: usize) -> (String, String) {
    let body = json!({
        "jsonrpc": "2.0", "id": number, "method": "tools/call",
        "params": {
            "name": "mcp_x_echo",
            "arguments": { "text": format!("call {number}") },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
                   mcp-name: mcp_x_echo\r\n";
    (body.to_string(), headers.to_owned())
}

fn legacy_call(number: usize, session: &str) -> (String, String) {
    let body = json!({
        "jsonrpc": "2.0", "id": number, "method": "tools/call",
        "params": { "name": "mcp_x_echo", "arguments": { "text": format!("call {number}") } },
    });
    let headers = format!("mcp-protocol-version: 2025-06-18\r\nmcp-session-id: {session}\r\n");
    (body.to_string(), headers)
}

/// Calls until all have been made; half of the clients have a session, which
/// outlives each restart.
async fn client(address: SocketAddr, number: usize, made: Arc<AtomicUsize>) -> Vec<String> {
    let mut client = KeepAlive {
        address,
        connection: None,
    };
    let mut session = None;
    if number % 2 == 1 {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "restart", "version": "1" },
            },
        });
        let (id, _) = client.post(&hello.to_string(), "").await.unwrap();
        session = Some(id);
    }
    let mut faults = Vec::new();
    loop {
        let call = made.fetch_add(1, Ordering::Relaxed);
        if call >= CALLS {
            return faults;
        }
        let (body, headers) = match &session {
            Some(session) => legacy_call(call, session),
            None => modern_call(call),
        };
        let answer = timeout(PATIENCE, client.post(&body, &headers)).await;
        match answer.unwrap_or_else(|_| Err("no answer".to_owned())) {
            Ok((_, answer)) if answer.contains(&format!("call {call}\"")) => {}
            Ok((_, answer)) => faults.push(answer),
            Err(fault) => faults.push(fault),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn u2_a_restart_with_systemds_socket_loses_no_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let setup = activated();
    let mut child = start(&setup, &listener);
    let made = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(client(address, number, made.clone())))
        .collect();
    for share in 1..=3 {
        let until = CALLS * share / 4;
        let reached = async {
            while made.load(Ordering::Relaxed) < until {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, reached).await.expect("calls are made");
        end(child, Signal::SIGTERM).await;
        child = start(&setup, &listener);
    }
    for client in clients {
        assert_eq!(client.await.unwrap(), Vec::<String>::new());
    }
    end(child, Signal::SIGTERM).await;
    assert!(setup.processes().is_empty(), "{:?}", setup.processes());
}

/// The next message that holds `what`; watchdog messages may come between.
async fn told(socket: &UnixDatagram, what: &str) -> String {
    let mut buffer = [0; 512];
    let next = async {
        loop {
            let size = socket.recv(&mut buffer).await.unwrap();
            let text = String::from_utf8_lossy(&buffer[..size]).into_owned();
            if text.contains(what) {
                return text;
            }
        }
    };
    let found = timeout(PATIENCE, next).await;
    found.unwrap_or_else(|_| panic!("systemd was never told {what}"))
}

#[tokio::test]
async fn u2_systemd_is_told_of_the_start_the_reload_and_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let app = setup()
        .mcp(fixtures(&[("x", &[])]))
        .env("NOTIFY_SOCKET", path.to_str().unwrap())
        .env("WATCHDOG_USEC", "3000000")
        .start()
        .await;
    told(&socket, "READY=1").await;
    told(&socket, "WATCHDOG=1").await;
    app.until_status("x", "connected").await;
    // A server could speak to systemd in Portway's name.
    for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        let call = json!({ "arguments": { "name": name } });
        let answer = app.post("/api/mcp/servers/x/tools/env/call", call).await;
        assert!(!answer.text.contains("3000000"), "{}", answer.text);
        assert!(!answer.text.contains("notify"), "{}", answer.text);
    }
    kill(Pid::from_raw(app.pid()), Signal::SIGHUP).unwrap();
    let reloading = told(&socket, "RELOADING=1").await;
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    told(&socket, "READY=1").await;
    app.until_status("x", "connected").await;
    kill(Pid::from_raw(app.pid()), Signal::SIGTERM).unwrap();
    told(&socket, "STOPPING=1").await;
}

#[tokio::test]
async fn u2_a_socket_that_is_not_loopback_is_refused_without_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let setup = activated().arg("--no-auth");
    let mut command = setup.command();
    let handed = OwnedFd::from(listener.try_clone().unwrap());
    let output = command.stdin(Stdio::from(handed)).output();
    let output = timeout(PATIENCE, output).await.expect("it ends").unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("--no-auth"),
        "{text}"
    );
}

#[tokio::test]
async fn u2_the_units_are_valid() {
    let setup = setup().quietly();
    for scope in [&["--system"][..], &[]] {
        let mut command = setup.command();
        command
            .args(["service", "install", "--dry-run"])
            .args(scope);
        let output = command.output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        for line in [
            "Type=notify",
            "WatchdogSec=",
            "ExecReload=",
            "ListenStream=127.0.0.1:7420",
        ] {
            assert!(text.contains(line), "{line} is missing: {text}");
        }
        let exe = env!("CARGO_BIN_EXE_portway");
        assert!(text.contains(&format!("ExecStart={exe} serve")), "{text}");
        verify(&text);
    }
}

/// Writes each unit after its name and has systemd check it.
fn verify(text: &str) {
    let analyze = Path::new("/usr/bin/systemd-analyze");
    if !has(analyze.exists(), "systemd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for part in text.split("# /").skip(1) {
        let (name, unit) = part.split_once('\n').unwrap();
        let path = dir.path().join(Path::new(name).file_name().unwrap());
        // The account exists once the service is installed.
        let unit = unit.replace("User=portway\nGroup=portway\n", "");
        std::fs::write(&path, unit).unwrap();
        paths.push(path);
    }
    assert_eq!(paths.len(), 2, "{text}");
    let output = std::process::Command::new(analyze)
        .args(["verify", "--man=no"])
        .args(&paths)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("portway."))
        .collect();
    assert!(about_ours.is_empty(), "{about_ours:?}");
}
