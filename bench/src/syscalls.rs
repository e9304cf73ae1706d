//! The system calls of a gateway per call, counted by strace in runs of their
//! own: the difference of two runs that differ only in the number of calls.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::lab::PATIENCE;
use crate::series::Series;

const FEW: u64 = 300;
const MANY: u64 = 1300;

/// `None` for a series without a gateway.
pub fn per_call(series: &Series) -> anyhow::Result<Option<f64>> {
    let Some(pid) = series.gateway else {
        return Ok(None);
    };
    let few = counted(series, pid, FEW)?;
    let many = counted(series, pid, MANY)?;
    Ok(Some((many - few) / (MANY - FEW) as f64))
}

fn counted(series: &Series, pid: u32, calls: u64) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let summary = dir.path().join("summary");
    let mut strace = Command::new("strace")
        .args(["-f", "-c", "-qq", "-p", &pid.to_string(), "-o"])
        .arg(&summary)
        .stdin(Stdio::null())
        .spawn()
        .context("strace")?;
    let outcome = until_attached(&mut strace, pid)
        .and_then(|()| series.load("calls", &calls.to_string()).map(drop));
    // At SIGINT strace detaches and writes its summary.
    Command::new("kill")
        .args(["-INT", &strace.id().to_string()])
        .status()?;
    strace.wait()?;
    outcome?;
    let text = std::fs::read_to_string(summary)?;
    let total = text.lines().find(|line| line.ends_with(" total"));
    let count = total.and_then(|line| line.split_whitespace().nth(3));
    Ok(count.context("strace gave no total")?.parse()?)
}

fn until_attached(strace: &mut Child, pid: u32) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let mut tasks = std::fs::read_dir(format!("/proc/{pid}/task"))?;
        let traced = tasks.all(|task| {
            task.and_then(|task| std::fs::read_to_string(task.path().join("status")))
                .is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
        });
        if traced {
            return Ok(());
        }
        ensure!(
            strace.try_wait()?.is_none() && start.elapsed() < PATIENCE,
            "strace cannot attach to process {pid}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
