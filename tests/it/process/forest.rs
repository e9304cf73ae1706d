//! Trees of processes to be felled, and the way to see that they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use config::{Containment, Privileges};
use tokio::io::{AsyncBufReadExt, BufReader};
use upstream::containment::{ContainmentStep, Ladder, ladder};
use upstream::process::{Grace, Process, ProcessCommand, spawn};

/// For what takes milliseconds on an idle machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Long enough for a daemon that beats every 2 ms to show itself.
const LISTEN: Duration = Duration::from_millis(100);

/// Impatient: for servers that will not go by themselves.
pub(crate) const SHORT: Grace = Grace {
    eof: Duration::from_millis(200),
    term: Duration::from_millis(200),
};

pub(crate) fn soak() -> bool {
    std::env::var_os("PORTWAY_SOAK").is_some()
}

/// How often to do something: a few times, or as often as a release asks.
pub(crate) fn rounds(few: u32, soaking: u32) -> u32 {
    if soak() { soaking } else { few }
}

pub(crate) fn shim() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_portway"))
}

/// Cargo builds the examples with the tests, but names only binaries.
pub(crate) fn example(name: &str) -> String {
    let path = shim().parent().unwrap().join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing: cargo build --examples",
        path.display()
    );
    path.to_str().unwrap().into()
}

pub(crate) async fn ladder_here() -> &'static Ladder {
    ladder(shim()).await.unwrap()
}

pub(crate) fn wish(step: ContainmentStep) -> Containment {
    match step {
        ContainmentStep::Namespace => Containment::Namespace,
        ContainmentStep::Cgroup => Containment::Cgroup,
        ContainmentStep::Subreaper => Containment::Subreaper,
        ContainmentStep::Group => Containment::Group,
    }
}

/// One tree: its processes carry its name in their environment.
pub(crate) struct TestForest {
    pub name: String,
    pub dir: tempfile::TempDir,
}

impl TestForest {
    pub(crate) fn new() -> TestForest {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = tempfile::tempdir().unwrap();
        TestForest {
            name: format!("{}-{number}-tree", std::process::id()),
            dir,
        }
    }

    pub(crate) fn heartbeat(&self) -> PathBuf {
        self.dir.path().join("heartbeat")
    }

    pub(crate) fn env(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap();
        vec![("PATH".into(), path), ("TREE".into(), self.name.clone())]
    }

    pub(crate) fn command(
        &self,
        step: ContainmentStep,
        program: &str,
        args: &[&str],
    ) -> ProcessCommand {
        ProcessCommand {
            program: program.into(),
            args: args.iter().map(|arg| arg.to_string()).collect(),
            env: self.env(),
            cwd: self.dir.path().into(),
            containment: wish(step),
            privileges: Privileges::Drop,
            hidden: Vec::new(),
            instance: self.name.clone(),
            shim: shim().into(),
        }
    }

    pub(crate) fn unruly(
        &self,
        step: ContainmentStep,
        kind: &str,
        extra: &[&str],
    ) -> ProcessCommand {
        let heartbeat = self.heartbeat();
        let mut args = vec![kind, heartbeat.to_str().unwrap()];
        args.extend(extra);
        self.command(step, &example("unruly"), &args)
    }

    /// Started, with all its processes up.
    pub(crate) async fn grow(&self, step: ContainmentStep, kind: &str, extra: &[&str]) -> Process {
        let mut process = spawn(&self.unruly(step, kind, extra)).await.unwrap();
        assert_eq!(first_line(&mut process).await, "ready");
        process
    }

    /// The live processes of the tree. Zombies have no environment.
    pub(crate) fn alive(&self) -> Vec<i32> {
        carrying(&format!("TREE={}", self.name))
    }

    /// Neither in the process table nor, for what forks faster than we look,
    /// at its heartbeat.
    pub(crate) fn assert_gone(&self, what: &str) {
        let alive = self.alive();
        assert!(
            alive.is_empty(),
            "{what}: {} survive: {alive:?}",
            alive.len()
        );
        assert!(self.is_silent(), "{what}: the heart goes on");
    }

    fn is_silent(&self) -> bool {
        let beats = || fs::metadata(self.heartbeat()).map_or(0, |file| file.len());
        let before = beats();
        std::thread::sleep(LISTEN);
        beats() == before && self.alive().is_empty()
    }

    /// Waits for the tree to go by itself and says how long that took. One
    /// look does not do: it can miss a comet.
    pub(crate) fn await_gone(&self, start: Instant, what: &str) -> Duration {
        while start.elapsed() < LIMIT {
            let took = start.elapsed();
            if self.alive().is_empty() && self.is_silent() {
                return took;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{what}: survivors: {:?}", self.alive());
    }
}

/// Processes that have in their environment a variable beginning so.
pub(crate) fn carrying(beginning: &str) -> Vec<i32> {
    let names = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    let carries = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(beginning.as_bytes()))
    };
    pids.filter(carries).collect()
}

/// Everything of an instance: servers, helpers, inits.
pub(crate) fn marked(instance: &str) -> Vec<i32> {
    carrying(&format!("PORTWAY_INSTANCE={instance}."))
}

/// The helpers of an instance.
pub(crate) fn helpers(instance: &str) -> Vec<i32> {
    let name = |pid: &i32| fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    marked(instance)
        .into_iter()
        .filter(|pid| name(pid) == b"portway-shim\n")
        .collect()
}

pub(crate) async fn first_line(process: &mut Process) -> String {
    let stdout = process.stdout.as_mut().expect("stdout is still here");
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(LIMIT, lines.next_line())
        .await
        .expect("a line in time");
    line.unwrap().expect("a line")
}

/// Everything a server says on stdout until it closes it.
pub(crate) async fn all_output(process: &mut Process) -> String {
    use tokio::io::AsyncReadExt;
    let mut text = String::new();
    let stdout = process.stdout.as_mut().expect("stdout is still here");
    let read = tokio::time::timeout(LIMIT, stdout.read_to_string(&mut text)).await;
    read.expect("an end in time").unwrap();
    text
}
