//! The processes of a run: each on its core, ready before it is used, ended
//! when it is no longer needed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};

use crate::BenchEra;

pub const TOKEN: &str = "bench-admin-token-0123456789";
/// A program that has not become ready by then will not.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// The status that `GET path` gives.
fn get(address: &str, path: &str) -> anyhow::Result<u16> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    crate::exchange::status(&answer)
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

    /// One with many tools, whose list comes to about so many bytes.
    pub fn with_tools(era: BenchEra, tools: usize, bytes: usize) -> anyhow::Result<Upstream> {
        let (count, each) = (tools.to_string(), (bytes / tools).to_string());
        Upstream::with(era, &["--tools", &count, "--tool-bytes", &each])
    }

    /// One whose calls take so many microseconds of work.
    pub fn working(era: BenchEra, work: f64) -> anyhow::Result<Upstream> {
        Upstream::with(era, &["--work", &work.to_string()])
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

/// The largest file of the console that was built into Portway: its path
/// there, and its size.
pub fn largest_asset() -> anyhow::Result<(String, usize)> {
    const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui/dist/assets");
    let mut largest = None;
    for entry in std::fs::read_dir(BUILT).context("no console was built: make console")? {
        let entry = entry?;
        // A compressed asset has no plain form, and ends with its plain size.
        let name = entry.file_name().display().to_string();
        if let Some(plain) = name.strip_suffix(".gz") {
            let packed = std::fs::read(entry.path())?;
            let size = packed
                .last_chunk()
                .map_or(0, |size| u32::from_le_bytes(*size));
            largest = largest.max(Some((size, plain.to_owned())));
        }
    }
    let (size, name) = largest.context("the console has no files: make console")?;
    Ok((format!("/assets/{name}"), size as usize))
}

/// `.mcp.json` of a run.
#[derive(Default)]
pub struct BenchServers(Map<String, Value>);

impl BenchServers {
    pub fn http(mut self, name: &str, upstream: &Upstream) -> BenchServers {
        self.0
            .insert(name.into(), json!({"type": "http", "url": upstream.url()}));
        self
    }

    /// Over stdio; back on the core of the load.
    pub fn stdio(mut self, name: &str, era: BenchEra) -> anyhow::Result<BenchServers> {
        let args = ["-c", "0", &me()?, "upstream", "--era", era.as_str()];
        self.0
            .insert(name.into(), json!({"command": "taskset", "args": args}));
        Ok(self)
    }
}

pub struct Portway {
    pub address: String,
    pub process: BenchProcess,
    _project: tempfile::TempDir,
}

impl Portway {
    /// Starts it with `wrapper` around it, and waits until its servers have
    /// settled.
    pub fn start(
        binary: &Path,
        servers: BenchServers,
        wrapper: &[String],
    ) -> anyhow::Result<Portway> {
        Portway::start_in(tempfile::tempdir()?, binary, servers, wrapper)
    }

    /// The same in a folder that has something in it.
    pub fn start_in(
        project: tempfile::TempDir,
        binary: &Path,
        servers: BenchServers,
        wrapper: &[String],
    ) -> anyhow::Result<Portway> {
        let config = json!({"mcpServers": servers.0});
        std::fs::write(project.path().join(".mcp.json"), config.to_string())?;
        let mut program = wrapper.to_vec();
        program.extend(words(&[
            &binary.display().to_string(),
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--project",
            &project.path().display().to_string(),
        ]));
        let start = Instant::now();
        let mut process = BenchProcess::start(Core::Gateway, &program, Stdio::piped())?;
        let stdout = process.child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line)?;
        eprintln!("Portway listens after {:?}", start.elapsed());
        // What it says later must go somewhere.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = line
            .trim_end()
            .strip_prefix("portway listening on http://")
            .with_context(|| format!("it said {line:?}"))?
            .to_owned();
        let start = Instant::now();
        while get(&address, "/readyz")? != 200 {
            ensure!(start.elapsed() < PATIENCE, "its servers do not settle");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Portway {
            address,
            process,
            _project: project,
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// nginx as a plain reverse proxy with one worker: a port per upstream.
pub struct Nginx {
    pub addresses: Vec<SocketAddr>,
    process: BenchProcess,
    _dir: tempfile::TempDir,
}

impl Nginx {
    pub fn start(binary: &str, upstreams: &[&Upstream]) -> anyhow::Result<Nginx> {
        let dir = tempfile::tempdir()?;
        let mut addresses = Vec::new();
        let mut servers = String::new();
        for (number, upstream) in upstreams.iter().enumerate() {
            let address = free_address()?;
            servers += &format!(
                "upstream u{number} {{ server {}; keepalive 64; }}\n\
                 server {{ listen {address}; location / {{ proxy_pass http://u{number}; \
                 proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n",
                upstream.address
            );
            addresses.push(address);
        }
        let at = dir.path().display();
        let text = format!(
            "worker_processes 1;\ndaemon off;\npid {at}/pid;\nerror_log {at}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{\naccess_log off;\nkeepalive_requests 100000000;\n\
             client_body_temp_path {at}/b;\nproxy_temp_path {at}/p;\nfastcgi_temp_path {at}/f;\n\
             uwsgi_temp_path {at}/u;\nscgi_temp_path {at}/s;\n{servers}}}\n"
        );
        let config = dir.path().join("nginx.conf");
        std::fs::write(&config, text)?;
        let program = words(&[
            binary,
            "-c",
            &config.display().to_string(),
            "-e",
            &dir.path().join("error.log").display().to_string(),
        ]);
        let process = BenchProcess::start(Core::Gateway, &program, Stdio::null())?;
        for address in &addresses {
            until_listening(*address)?;
        }
        Ok(Nginx {
            addresses,
            process,
            _dir: dir,
        })
    }

    /// The process that does the work.
    pub fn worker(&self) -> anyhow::Result<u32> {
        let pid = self.process.pid();
        let start = Instant::now();
        loop {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
            if let Some(worker) = children.split_whitespace().next() {
                return Ok(worker.parse()?);
            }
            ensure!(start.elapsed() < PATIENCE, "nginx has no worker");
            std::thread::sleep(Duration::from_millis(10));
        }
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
