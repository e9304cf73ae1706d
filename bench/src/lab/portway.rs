//! Portway, and the file with its servers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

use super::{BenchProcess, Core, PATIENCE, TOKEN, Upstream, me, words};
use crate::BenchEra;
use crate::blocking::BlockingClient;

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
    pub fn stdio(self, name: &str, era: BenchEra) -> anyhow::Result<BenchServers> {
        self.stdio_with(name, era, &[])
    }

    pub fn stdio_with(
        mut self,
        name: &str,
        era: BenchEra,
        options: &[&str],
    ) -> anyhow::Result<BenchServers> {
        let me = me()?;
        let mut args = vec!["-c", "0", &me, "upstream", "--era", era.as_str()];
        args.extend(options);
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
        let portway = Portway::spawn(tempfile::tempdir()?, binary, servers, wrapper)?;
        portway.until_settled()?;
        Ok(portway)
    }

    /// Starts it in a directory, and waits until it listens.
    pub fn spawn(
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
            "--data-dir",
            &project.path().join("data").display().to_string(),
        ]));
        let mut process = BenchProcess::start(Core::Gateway, &program, Stdio::piped())?;
        let stdout = process.child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line)?;
        // A pipe that is not read would fill up.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = line
            .trim_end()
            .strip_prefix("portway listening on http://")
            .with_context(|| format!("Portway's first line is {line:?}"))?
            .to_owned();
        Ok(Portway {
            address,
            process,
            _project: project,
        })
    }

    pub fn until_settled(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut client = self.client(TOKEN)?;
        while client.request("GET", "/readyz", "")?.0 != 200 {
            ensure!(start.elapsed() < PATIENCE, "its servers do not settle");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn client(&self, token: &str) -> anyhow::Result<BlockingClient> {
        BlockingClient::connect(&self.address, token)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}
