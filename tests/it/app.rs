//! The real program in a temporary directory, on a port of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::process::forest::{carrying, marked};

/// The machine may be busy: a condition that comes at all comes by then.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const TOKEN: &str = "test-admin-token-0123456789";

/// The test MCP server.
pub(crate) fn fixture() -> String {
    example("fixture")
}

/// A program of `examples/`, built by `cargo test` beside the tests.
pub(crate) fn example(name: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_portway"));
    let path = binary.with_file_name("examples").join(name);
    assert!(path.exists(), "run `cargo build --examples` first");
    path.display().to_string()
}

/// An `.mcp.json` of fixtures: names and arguments.
pub(crate) fn fixtures(servers: &[(&str, &[&str])]) -> Value {
    let entry = |(name, args): &(&str, &[&str])| {
        let server = serde_json::json!({"command": fixture(), "args": args});
        ((*name).to_owned(), server)
    };
    let servers: serde_json::Map<_, _> = servers.iter().map(entry).collect();
    serde_json::json!({ "mcpServers": servers })
}

pub(crate) struct Setup {
    dir: TempDir,
    args: Vec<String>,
    env: Vec<(String, String)>,
    nobody: bool,
    /// Words before the command, such as a shell's.
    pub before: Vec<String>,
}

/// A directory to start Portway in.
pub(crate) fn setup() -> Setup {
    Setup {
        dir: tempfile::tempdir().unwrap(),
        args: vec!["--listen".into(), "127.0.0.1:0".into()],
        env: vec![("PORTWAY_ADMIN_TOKEN".into(), TOKEN.into())],
        nobody: false,
        before: Vec::new(),
    }
}

impl Setup {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Setup {
        std::fs::write(self.path().join(name), content).unwrap();
        self
    }

    pub(crate) fn mcp(self, content: Value) -> Setup {
        self.file(".mcp.json", serde_json::to_vec_pretty(&content).unwrap())
    }

    pub(crate) fn arg(mut self, arg: &str) -> Setup {
        self.args.push(arg.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Setup {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts it without root's rights, in a directory of its own.
    pub(crate) fn for_nobody(mut self) -> Setup {
        self.nobody = nix::unistd::geteuid().is_root();
        if self.nobody {
            let give = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534));
            give(self.path()).unwrap();
            for entry in std::fs::read_dir(self.path()).unwrap() {
                give(&entry.unwrap().path()).unwrap();
            }
        }
        self
    }

    /// Without the arguments that every test has.
    pub(crate) fn quietly(mut self) -> Setup {
        self.args.clear();
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Setup {
        self.env.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_portway").to_owned();
        let words: Vec<String> = self.before.iter().cloned().chain([binary]).collect();
        let mut command = Command::new(&words[0]);
        command
            .args(words[1..].iter().chain(&self.args))
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .envs(self.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if self.nobody {
            command.uid(65534).gid(65534);
        }
        command
    }

    /// Starts without waiting for anything.
    pub(crate) fn spawn(&self) -> Child {
        self.command().spawn().unwrap()
    }

    /// Every live process that came from here: Portway and servers have this
    /// home, helpers and inits the instance's marker.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut pids = carrying(&format!("HOME={}", self.path().display()));
        let id = std::fs::read_to_string(self.path().join("data/instance_id"));
        if let Ok(id) = id {
            pids.extend(marked(id.trim()));
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Starts and expects the start to fail: exit code and stderr.
    pub(crate) async fn refused(&self) -> (Option<i32>, String) {
        let output = tokio::time::timeout(PATIENCE, self.command().output());
        let output = output.await.expect("it refuses in time").unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    }

    pub(crate) async fn start(self) -> App {
        let mut child = self.spawn();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let log = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let sink = log.clone();
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut chunk).await {
                sink.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&chunk[..n]));
            }
        });
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, stdout.read_line(&mut line)).await;
        assert!(
            matches!(read, Ok(Ok(1..))),
            "no line on stdout; stderr: {}",
            log.lock().unwrap()
        );
        let url = line
            .trim_end()
            .strip_prefix("portway listening on ")
            .unwrap_or_else(|| panic!("{line:?}"))
            .to_owned();
        let said = std::sync::Arc::new(std::sync::Mutex::new(line));
        let sink = said.clone();
        tokio::spawn(async move {
            let mut line = String::new();
            while let Ok(1..) = stdout.read_line(&mut line).await {
                sink.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        let mut app = App::at(self, child, &url);
        (app.log, app.said) = (log, said);
        app
    }
}

pub(crate) struct App {
    pub setup: Setup,
    pub child: Child,
    pub url: String,
    log: std::sync::Arc<std::sync::Mutex<String>>,
    said: std::sync::Arc<std::sync::Mutex<String>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// An answer: status, headers, body.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
    pub text: String,
}

impl HttpAnswer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }
}

impl App {
    /// One whose output somebody else reads.
    pub(crate) fn at(setup: Setup, child: Child, url: &str) -> App {
        App {
            setup,
            child,
            url: url.to_owned(),
            log: Default::default(),
            said: Default::default(),
            // Portway closes a revoked key's idle connection after a second:
            // a connection that is reused must not be that old.
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(Duration::from_millis(300))
                .build_http(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.setup.path().join(name)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().expect("it runs") as i32
    }

    /// What it has written to stderr so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// What it has written to stdout so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) async fn get(&self, path: &str) -> HttpAnswer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        self.send("POST", path, Some(body.to_string())).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<String>) -> HttpAnswer {
        self.request(
            method,
            path,
            body,
            &[("authorization", &format!("Bearer {TOKEN}"))],
        )
        .await
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> HttpAnswer {
        let answer = self.try_request(method, path, body, headers).await;
        answer.unwrap_or_else(|| panic!("{method} {path}: cut off; log: {}", self.log()))
    }

    /// None where the connection did not last until the answer.
    pub(crate) async fn try_request(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Option<HttpAnswer> {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body.unwrap_or_default())).unwrap();
        let work = async {
            let (head, body) = self.client.request(request).await.ok()?.into_parts();
            let bytes = body.collect().await.ok()?.to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(HttpAnswer {
                status: head.status.as_u16(),
                headers: head.headers,
                body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
                text,
            })
        };
        let answer = tokio::time::timeout(PATIENCE, work).await;
        answer.unwrap_or_else(|_| panic!("{method} {path}: no answer; log: {}", self.log()))
    }

    /// POST without a body: start, stop, restart.
    pub(crate) async fn act(&self, name: &str, verb: &str) -> Value {
        let path = format!("/api/mcp/servers/{name}/{verb}");
        self.send("POST", &path, None).await.expect(200)
    }

    pub(crate) async fn patch(&self, name: &str, body: Value) -> HttpAnswer {
        let path = format!("/api/mcp/servers/{name}");
        self.send("PATCH", &path, Some(body.to_string())).await
    }

    pub(crate) async fn delete(&self, name: &str) -> HttpAnswer {
        let path = format!("/api/mcp/servers/{name}");
        self.send("DELETE", &path, None).await
    }

    pub(crate) async fn list(&self) -> Vec<Value> {
        match self.get("/api/mcp/servers").await.expect(200) {
            Value::Array(servers) => servers,
            other => panic!("{other:#}"),
        }
    }

    /// The text of a server's log lines.
    pub(crate) async fn lines(&self, name: &str) -> Vec<String> {
        let path = format!("/api/mcp/servers/{name}/logs?limit=1000");
        let lines = self.get(&path).await.expect(200);
        let text = |line: &Value| line["text"].as_str().unwrap().to_owned();
        lines.as_array().unwrap().iter().map(text).collect()
    }

    /// The names of a server's tools.
    pub(crate) async fn tools(&self, name: &str) -> Vec<String> {
        let path = format!("/api/mcp/servers/{name}/tools");
        let tools = self.get(&path).await.expect(200);
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        tools.as_array().unwrap().iter().map(name).collect()
    }

    /// Everything Portway has started and not ended.
    pub(crate) fn children(&self) -> Vec<i32> {
        let own = self.pid();
        let all = self.setup.processes().into_iter();
        all.filter(|pid| *pid != own).collect()
    }

    pub(crate) async fn server(&self, name: &str) -> Value {
        self.get(&format!("/api/mcp/servers/{name}"))
            .await
            .expect(200)
    }

    /// Polls a server until it is there, and as `fits` says.
    pub(crate) async fn until(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let answer = self.get(&format!("/api/mcp/servers/{name}")).await;
            let record = answer.body;
            if answer.status == 200 && fits(&record) {
                return record;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "{name} stays {record:#}; log: {}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn until_status(&self, name: &str, status: &str) -> Value {
        self.until(name, |record| record["status"] == status).await
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Ends it with SIGTERM; the exit code.
    pub(crate) async fn stop(mut self) -> Option<i32> {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        self.ended().await
    }

    /// Ends it in order and starts it again in the same directory.
    pub(crate) async fn again(mut self) -> App {
        self.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(self.ended().await, Some(0));
        self.setup.start().await
    }

    /// Waits for its end; the exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let log = self.log();
        let status = status.unwrap_or_else(|_| panic!("it does not end; log: {log}"));
        status.unwrap().code()
    }
}

/// The process behind a record.
#[track_caller]
pub(crate) fn pid(record: &Value) -> i64 {
    let pid = record["pid"].as_i64();
    pid.unwrap_or_else(|| panic!("no process: {record:#}"))
}

/// Waits for a condition that needs no request.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process is there and not a zombie.
pub(crate) fn alive(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next();
    let state = rest.and_then(|rest| rest.trim_start().chars().next());
    matches!(state, Some(state) if !matches!(state, 'Z' | 'X'))
}
