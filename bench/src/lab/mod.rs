//! The processes of a run: each on its core, ready before it is used, ended
//! when it is no longer needed.

mod nginx;
mod portway;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

pub use self::nginx::{BUFFERED, Nginx};
pub use self::portway::{BenchServers, Portway};
use crate::BenchEra;

pub const TOKEN: &str = "bench-admin-token-0123456789";
/// A program that has not become ready by then will not.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Which core is whose.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Core {
    /// Load and upstream.
    Load = 0,
    Gateway = 1,
}

/// Ended when dropped.
pub struct BenchProcess {
    child: Child,
    name: String,
}

impl BenchProcess {
    pub fn start(core: Core, program: &[String], output: Stdio) -> anyhow::Result<BenchProcess> {
        let name = program.first().context("no program")?.clone();
        let child = Command::new("taskset")
            .args(["-c", &(core as u8).to_string()])
            .args(program)
            .env("PORTWAY_ADMIN_TOKEN", TOKEN)
            .env("PORTWAY_HEALTH_INTERVAL", "1h")
            .env("PORTWAY_MAX_CONNECTIONS", "14000")
            // Lists are of the servers under load alone.
            .env("PORTWAY_SELF_CONTROL", "off")
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(output)
            .spawn()
            .with_context(|| format!("taskset {name}"))?;
        Ok(BenchProcess { child, name })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGTERM, within a limit.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = self.pid().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > PATIENCE {
                self.child.kill()?;
                self.child.wait()?;
                bail!("{} did not end by itself", self.name);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn me() -> anyhow::Result<String> {
    Ok(std::env::current_exe()?.display().to_string())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn until_listening(address: SocketAddr) -> anyhow::Result<()> {
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(start.elapsed() < PATIENCE, "nobody listens on {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// An upstream over HTTP, on the core of the load.
pub struct Upstream {
    pub address: SocketAddr,
    pub process: BenchProcess,
}

impl Upstream {
    pub fn start(era: BenchEra) -> anyhow::Result<Upstream> {
        Upstream::with(era, &[])
    }

    pub fn with_tools(era: BenchEra, tools: usize) -> anyhow::Result<Upstream> {
        Upstream::with(era, &["--tools", &tools.to_string()])
    }

    /// One that answers GET with a stream.
    pub fn with_streams() -> anyhow::Result<Upstream> {
        Upstream::with(BenchEra::Legacy, &["--streams"])
    }

    fn with(era: BenchEra, options: &[&str]) -> anyhow::Result<Upstream> {
        let address = free_address()?;
        let mut program = words(&[
            &me()?,
            "upstream",
            "--listen",
            &address.to_string(),
            "--era",
            era.as_str(),
        ]);
        program.extend(words(options));
        let process = BenchProcess::start(Core::Load, &program, Stdio::null())?;
        until_listening(address)?;
        Ok(Upstream { address, process })
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

/// Seconds of CPU that all threads of a process have had so far.
pub fn cpu(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    // Nanoseconds on the CPU come first.
    let spent = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    spent.sum::<f64>() / 1e9
}

/// Bytes of memory that a process has.
pub fn resident(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}

/// Idle clients are connections of this process, and two each of nginx.
pub fn ensure_descriptors(wanted: usize) -> anyhow::Result<()> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let soft = soft.context("no limit of open files")?;
    let enough = soft == "unlimited" || soft.parse::<usize>()? >= wanted;
    ensure!(
        enough,
        "{soft} files may be open: run ulimit -n {wanted} before"
    );
    Ok(())
}
