//! `portway connect` (SPEC K5): a client that can only start a command, and
//! every line it writes and reads.

mod endings;
mod legacy;
mod messages;
mod modern;
mod restarts;
mod started;

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, Setup, TOKEN, eventually};
use crate::mcp_front::portway;

const MODERN: &str = "2026-07-28";

/// A client and the `portway connect` that it has started.
struct StdioClient {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Mutex<Vec<Value>>>,
    log: Arc<Mutex<String>>,
    asked: u64,
}

/// The command as it is run in a directory.
fn command(setup: &Setup, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
    command
        .arg("connect")
        .args(args)
        .current_dir(setup.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", setup.path())
        .env("PORTWAY_ADMIN_TOKEN", TOKEN)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Exit code and stderr of one that says no.
async fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, command.output());
    let output = output.await.expect("it refuses in time").unwrap();
    assert!(output.stdout.is_empty(), "stdout is for MCP only");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

impl StdioClient {
    fn start(setup: &Setup, args: &[&str]) -> StdioClient {
        StdioClient::run(command(setup, args))
    }

    fn run(mut command: Command) -> StdioClient {
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, stdout) = (seen.clone(), child.stdout.take().unwrap());
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"odd": line}));
                sink.lock().unwrap().push(message);
            }
        });
        let log = Arc::new(Mutex::new(String::new()));
        let (sink, mut stderr) = (log.clone(), child.stderr.take().unwrap());
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut chunk).await {
                let text = String::from_utf8_lossy(&chunk[..n]).into_owned();
                sink.lock().unwrap().push_str(&text);
            }
        });
        StdioClient {
            child,
            stdin,
            seen,
            log,
            asked: 0,
        }
    }

    fn pid(&self) -> i32 {
        self.child.id().expect("it runs") as i32
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }

    async fn raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it listens");
        stdin.write_all(line.as_bytes()).await.unwrap();
        stdin.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        self.raw(&message.to_string()).await;
    }

    /// The first message that fits, whenever it came.
    async fn until(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let found = self.seen.lock().unwrap().iter().find(|m| fits(m)).cloned();
            if let Some(found) = found {
                return found;
            }
            let shown = || {
                format!("{:?}", self.seen())
                    .chars()
                    .take(2000)
                    .collect::<String>()
            };
            assert!(
                start.elapsed() < PATIENCE,
                "{what} never came; saw {}; said {}",
                shown(),
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn answer(&self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let answers = |m: &Value| m["id"] == id && m.get("method").is_none();
        self.until(&format!("the answer to {id}"), answers).await
    }

    async fn told(&self, method: &str) -> Value {
        self.until(method, |m| m["method"] == method).await
    }

    fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|m| m["method"] == method).count()
    }

    /// Sends a legacy request: its id.
    async fn begin(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = json!(format!("c{}", self.asked));
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// The text that a tool says, called by a legacy client.
    async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        text(&self.ask("tools/call", params).await)
    }

    async fn hello(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}
        });
        let answer = self.ask("initialize", params).await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        answer
    }

    /// Sends a modern request: its id.
    async fn begin_modern(&mut self, method: &str, params: Value) -> Value {
        let params = with_envelope(params, json!({}));
        self.begin(method, params).await
    }

    async fn ask_modern(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin_modern(method, params).await;
        self.answer(id).await
    }

    /// Closes its stdin: the exit code.
    async fn close(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.ended().await
    }

    async fn ended(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        status.expect("it ends").unwrap().code()
    }

    fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
    }
}

fn with_envelope(mut params: Value, capabilities: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    params
}

#[track_caller]
fn text(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

#[track_caller]
fn error(answer: &Value) -> String {
    let text = answer["error"]["message"].as_str();
    text.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// Portway with a fixture `x` that writes down what it hears.
async fn recorded() -> App {
    portway(&["--record", "record"]).await
}

/// Until that fixture has heard it.
async fn heard(app: &App, what: &str) {
    let path = app.path("record");
    eventually(what, || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains(what))
    })
    .await;
}

/// In the record: a call that runs, and the end of one that is not wanted.
const RUNS: &str = "\"name\":\"hang\"";
const CANCELLED: &str = "\"event\":\"cancelled\"";

/// Waits until nothing runs that came from there.
async fn empty(setup: &Setup) {
    eventually("nothing is left", || setup.processes().is_empty()).await;
}
