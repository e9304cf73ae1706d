//! One series: one way to load one program, run once per round.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::BenchEra;
use crate::figures::{Figures, Spread};
use crate::lab::{self, Upstream};

pub struct Series {
    pub name: &'static str,
    /// The arguments of `load`.
    args: Vec<String>,
    pub gateway: Option<u32>,
    upstream: Option<u32>,
}

impl Series {
    pub fn new(name: &'static str, url: &str, era: BenchEra, connections: usize) -> Series {
        let connections = connections.to_string();
        let args = [
            "--url",
            url,
            "--era",
            era.as_str(),
            "--connections",
            &connections,
        ];
        Series {
            name,
            args: args.map(ToOwned::to_owned).into(),
            gateway: None,
            upstream: None,
        }
    }

    pub fn with(mut self, name: &str, value: &str) -> Series {
        self.args.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    pub fn through(mut self, pid: u32) -> Series {
        self.gateway = Some(pid);
        self
    }

    pub fn to(mut self, upstream: &Upstream) -> Series {
        self.upstream = Some(upstream.process.pid());
        self
    }

    pub fn run(&self, seconds: f64) -> anyhow::Result<Run> {
        let spent = || {
            let spent = |pid: Option<u32>| pid.map_or(0.0, lab::cpu);
            (spent(self.gateway), spent(self.upstream))
        };
        let before = spent();
        let figures = self.load("seconds", &seconds.to_string())?;
        let after = spent();
        let calls = figures.all_calls as f64 / 1e6;
        let own = figures.spent * 1e6 / figures.calls as f64;
        Ok(Run {
            gateway: (after.0 - before.0) / calls,
            ends: own + (after.1 - before.1) / calls,
            figures,
        })
    }

    /// Runs the load on its core, with one more option.
    pub fn load(&self, option: &str, value: &str) -> anyhow::Result<Figures> {
        let output = Command::new("taskset")
            .args(["-c", &(lab::Core::Load as u8).to_string()])
            .arg(std::env::current_exe()?)
            .arg("load")
            .args(&self.args)
            .args([&format!("--{option}"), value])
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {errors}", self.name);
        serde_json::from_slice(&output.stdout).context(self.name)
    }
}

/// One run of one series; times on the CPU are microseconds per call.
pub struct Run {
    pub figures: Figures,
    pub gateway: f64,
    /// The load and the upstream, which share a core. The process of a server
    /// over stdio is not counted.
    pub ends: f64,
}

/// All runs, and the system calls of the gateway, by the name of their series.
#[derive(Default)]
pub struct Results {
    runs: BTreeMap<&'static str, Vec<Run>>,
    pub system_calls: BTreeMap<&'static str, f64>,
}

impl Results {
    pub fn add(&mut self, name: &'static str, run: Run) {
        self.runs.entry(name).or_default().push(run);
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.runs.keys().copied()
    }

    fn of(&self, name: &str) -> &[Run] {
        self.runs.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn spread(&self, name: &str, value: impl Fn(&Run) -> f64) -> Spread {
        Spread::of(self.of(name).iter().map(value))
    }

    /// The relation of two series, round by round.
    pub fn compare(&self, one: &str, other: &str, with: impl Fn(&Run, &Run) -> f64) -> Spread {
        let pairs = self.of(one).iter().zip(self.of(other));
        Spread::of(pairs.map(|(one, other)| with(one, other)))
    }
}
