//! The server on the bench: started or reached as the fleet would, but spoken
//! to by hand.

use std::time::Duration;

use tokio::time::Instant;

use super::line::{Channel, Line};
use super::pipe::{Outputs, Pipe};
use super::web::{Address, Web, old_sse};
use config::{Launch, LaunchTarget, Redactor, RemoteKind};
use upstream::process::{self, Command, Exit, Grace, Process};

/// For one ordinary question.
pub(super) const STEP: Duration = Duration::from_secs(5);

/// How a server that is not itself under test is ended.
const BRIEF: Grace = Grace {
    eof: Duration::from_secs(2),
    term: Duration::from_secs(1),
};

pub(super) struct Bench {
    pub launch: Launch,
    /// What to run; `None` for a server that is reached.
    pub command: Option<Command>,
    /// What it is called, or would be.
    pub name: String,
    /// For a handshake, from the start of a process.
    pub patience: Duration,
}

/// One copy of it, spoken to.
pub(super) struct Subject {
    pub line: Line,
    pub process: Option<Process>,
    pub outputs: Outputs,
    pub began: Instant,
}

impl Bench {
    pub(super) fn remote(&self) -> Option<(RemoteKind, Result<Address, String>)> {
        match &self.launch.target {
            LaunchTarget::Remote { kind, url, headers } => {
                Some((*kind, Address::new(url, headers)))
            }
            LaunchTarget::Stdio { .. } => None,
        }
    }

    /// Starts the process.
    pub(super) async fn start(&self) -> Result<Subject, String> {
        let began = Instant::now();
        let command = self.command.as_ref().ok_or("there is nothing to start")?;
        let spawned = process::spawn(command).await;
        let mut process = spawned.map_err(|error| {
            let filled_in = Redactor::new(self.launch.expanded_values());
            filled_in.redact(&error.to_string()).into_owned()
        })?;
        let streams = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        );
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err("a stream of the process is missing".into());
        };
        let outputs = Outputs::default();
        let pipe = Pipe::of_process(stdin, stdout, stderr, &outputs);
        Ok(Subject {
            line: Line::new(Channel::Pipe(Box::new(pipe))),
            process: Some(process),
            outputs,
            began,
        })
    }

    pub(super) fn reach(address: Address) -> Subject {
        Subject::remote(Channel::Web(Box::new(Web::new(address))))
    }

    pub(super) async fn reach_old(address: &Address) -> Result<Subject, String> {
        let opened = tokio::time::timeout(STEP, old_sse(address)).await;
        let late = || format!("no event stream within {} s", STEP.as_secs());
        let pipe = opened.map_err(|_| late())??;
        Ok(Subject::remote(Channel::Pipe(Box::new(pipe))))
    }
}

impl Subject {
    fn remote(channel: Channel) -> Subject {
        Subject {
            line: Line::new(channel),
            process: None,
            outputs: Outputs::default(),
            began: Instant::now(),
        }
    }

    /// How the process ended, if it has.
    pub(super) async fn exit(&mut self) -> Option<Exit> {
        let process = self.process.as_mut()?;
        // What it still had to say arrives meanwhile.
        let soon = Duration::from_millis(500);
        tokio::time::timeout(soon, process.exited()).await.ok()
    }

    /// The last lines of stderr, for a sentence.
    pub(super) fn last_words(&self) -> String {
        let output = self.outputs.lock();
        match output.tail.is_empty() {
            true => "; it wrote nothing to stderr".into(),
            false => {
                let lines: Vec<&str> = output.tail.iter().map(String::as_str).collect();
                format!("; last lines of stderr:\n{}", lines.join("\n"))
            }
        }
    }

    /// Ends it with all it started, before the next copy may run: some hold
    /// a lock.
    pub(super) async fn put_away(mut self) {
        if let Channel::Pipe(pipe) = &mut self.line.channel {
            pipe.close();
        }
        if let Some(process) = self.process.take() {
            process.end(BRIEF).await;
        }
    }
}
