//! The system calls that one call takes, counted with ptrace: of one client that
//! waits for each answer, in a program with one worker thread, so that the
//! count depends neither on the number of cores nor on their load.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::json;
use tokio::net::TcpStream;

use crate::app::{App, PATIENCE, fixture, setup};
use crate::idle::{META, connect, exchange};
use crate::needs;
use crate::remote;

/// The calls of one batch. The least of several batches counts, because timers
/// and other work of the machine only add to it.
const CALLS: u64 = 100;
const BATCHES: usize = 5;
/// The most system calls per call, with a margin of about a third. Lower them
/// when a call needs fewer.
const MOST_OVER_HTTP: f64 = 9.5;
const MOST_OVER_STDIO: f64 = 9.5;

#[tokio::test(flavor = "multi_thread")]
async fn t_a_call_takes_no_more_system_calls_than_it_did() {
    let remote = remote::fixture(&["--http", "0"]).await;
    let servers = json!({
        "remote": {"type": "http", "url": remote.url},
        "pipe": {"command": fixture()},
    });
    let app = setup()
        .mcp(json!({"mcpServers": servers}))
        .env("TOKIO_WORKER_THREADS", "1")
        .start()
        .await;
    for server in ["remote", "pipe"] {
        app.until_status(server, "connected").await;
    }
    let mut client = connect(&app).await;
    // The first calls open connections.
    calls(&mut client, "remote", 20).await;
    calls(&mut client, "pipe", 20).await;
    let traced = TracedProgram::attach(&app);
    if !needs::has(traced.is_ok(), "ptrace") {
        return;
    }
    let traced = traced.unwrap();
    let over_http = traced.count(&mut client, "remote").await;
    let over_stdio = traced.count(&mut client, "pipe").await;
    traced.ending.store(true, Ordering::Relaxed);
    // The tracer sees the end at the next system call.
    tokio::time::timeout(PATIENCE, async {
        while !traced.tracer.is_finished() {
            calls(&mut client, "pipe", 1).await;
        }
    })
    .await
    .expect("the tracer ends");
    println!("system calls per call: {over_http:.2} over HTTP, {over_stdio:.2} over stdio");
    assert!(over_http <= MOST_OVER_HTTP, "{over_http:.2} over HTTP");
    assert!(over_stdio <= MOST_OVER_STDIO, "{over_stdio:.2} over stdio");
    // Fewer than a read and a write at each side: not all were counted.
    assert!(over_http >= 4.0 && over_stdio >= 4.0);
}

async fn calls(client: &mut TcpStream, server: &str, count: u64) {
    let headers = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: mcp_{server}_echo\r\n"
    );
    for number in 0..count {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp_{server}_echo","arguments":{{"text":"call {number}."}},"_meta":{META}}}}}"#
        );
        let answer = format!("call {number}.");
        exchange(client, &headers, &body, answer.as_bytes()).await;
    }
}

/// A running program whose system calls are counted until its tracer ends.
struct TracedProgram {
    /// Entries into system calls and returns from them.
    stops: Arc<AtomicU64>,
    ending: Arc<AtomicBool>,
    tracer: JoinHandle<()>,
}

impl TracedProgram {
    fn attach(app: &App) -> Result<TracedProgram, Errno> {
        let (stops, ending) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (attached, outcome) = std::sync::mpsc::channel();
        let program = app.pid();
        let tracer = {
            let (stops, ending) = (stops.clone(), ending.clone());
            // All requests to a traced thread must come from the thread that
            // traces it. When that thread ends, the program runs on untraced.
            std::thread::spawn(move || {
                let seized = seize(program);
                let is_seized = seized.is_ok();
                attached.send(seized).expect("the test waits for it");
                if is_seized {
                    follow(&stops, &ending);
                }
            })
        };
        outcome.recv().expect("the tracer answers")?;
        Ok(TracedProgram {
            stops,
            ending,
            tracer,
        })
    }

    /// System calls per call to one server.
    async fn count(&self, client: &mut TcpStream, server: &str) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..BATCHES {
            let before = self.stops.load(Ordering::Relaxed);
            calls(client, server, CALLS).await;
            let stops = self.stops.load(Ordering::Relaxed) - before;
            least = least.min(stops as f64 / 2.0 / CALLS as f64);
        }
        least
    }
}

/// Traces all threads of a program, and those that it starts later.
fn seize(program: i32) -> Result<(), Errno> {
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    let mut known = HashSet::new();
    loop {
        let threads = std::fs::read_dir(format!("/proc/{program}/task")).unwrap();
        let names = threads.map(|thread| thread.unwrap().file_name());
        let ids = names.map(|name| name.to_str().unwrap().parse::<i32>().unwrap());
        let new: Vec<i32> = ids.filter(|id| !known.contains(id)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for id in new {
            known.insert(id);
            match ptrace::seize(Pid::from_raw(id), options) {
                Ok(()) => ptrace::interrupt(Pid::from_raw(id))?,
                // It has ended, or was traced from its start.
                Err(Errno::ESRCH) => {}
                Err(Errno::EPERM) if known.len() > 1 => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Lets the traced threads run from one stop to the next.
fn follow(stops: &AtomicU64, ending: &AtomicBool) {
    // Only what this thread traces: other tests wait for their own children.
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    while !ending.load(Ordering::Relaxed) {
        let (thread, signal) = match waitpid(None, Some(flags)) {
            Ok(WaitStatus::PtraceSyscall(thread)) => {
                stops.fetch_add(1, Ordering::Relaxed);
                (thread, None)
            }
            Ok(WaitStatus::PtraceEvent(thread, ..)) => (thread, None),
            Ok(WaitStatus::Stopped(thread, signal)) => (thread, Some(signal)),
            Ok(_) | Err(Errno::EINTR) => continue,
            // The program has ended.
            Err(Errno::ECHILD) => return,
            Err(error) => panic!("waiting for the program: {error}"),
        };
        match ptrace::syscall(thread, signal) {
            // It was killed meanwhile.
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => panic!("continuing the program: {error}"),
        }
    }
}
