//! Starts or connects to the server as the fleet does; the lab then exchanges
//! single messages with it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;
use url::Url;

use crate::dialog::{Channel, Dialog};
use crate::http::{HttpChannel, old_sse};
use crate::pipe::{PipeChannel, SharedOutput};
use config::{Launch, LaunchTarget, Redactor, RemoteKind};
use upstream::process::{self, Exit, Grace, Process, ProcessCommand};
use upstream::{Endpoint, LogSink, UpstreamError};

/// The time limit of one ordinary request.
pub(crate) const STEP: Duration = Duration::from_secs(5);

/// The grace for ending a server whose end is not under test.
const BRIEF: Grace = Grace {
    eof: Duration::from_secs(2),
    term: Duration::from_secs(1),
};

pub(crate) struct Launcher {
    pub launch: Launch,
    /// The command to run; `None` for a server that is reached over HTTP.
    pub command: Option<ProcessCommand>,
    /// The capabilities that the lab announces as a client.
    pub capabilities: Arc<RawValue>,
    pub redactor: Arc<Redactor>,
    /// The limit from the start of a process to the end of its handshake.
    pub handshake_limit: Duration,
}

/// One running copy of the server, with its dialog.
pub(crate) struct ServerCopy {
    pub dialog: Dialog,
    pub process: Option<Process>,
    pub outputs: SharedOutput,
    pub began: Instant,
}

impl Launcher {
    pub(crate) fn remote(&self) -> Option<(RemoteKind, &Url, Result<Endpoint, UpstreamError>)> {
        let LaunchTarget::Remote { kind, url, headers } = &self.launch.target else {
            return None;
        };
        let log: LogSink = Arc::new(|_, _| {});
        let endpoint = Endpoint::new(url, headers, &log, self.redactor.clone());
        Some((*kind, url, endpoint))
    }

    pub(crate) async fn start(&self) -> Result<ServerCopy, String> {
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
        let outputs = SharedOutput::default();
        let pipe = PipeChannel::of_process(stdin, stdout, stderr, &outputs);
        Ok(ServerCopy {
            process: Some(process),
            outputs,
            began,
            ..self.connected(Channel::Pipe(Box::new(pipe)))
        })
    }

    pub(crate) fn reach(&self, endpoint: &Endpoint) -> ServerCopy {
        let channel = HttpChannel::new(endpoint.clone());
        self.connected(Channel::Http(Box::new(channel)))
    }

    pub(crate) async fn reach_old_sse(&self, endpoint: &Endpoint) -> Option<ServerCopy> {
        let opened = tokio::time::timeout(STEP, old_sse(endpoint)).await;
        let pipe = opened.ok()?.ok()?;
        Some(self.connected(Channel::Pipe(Box::new(pipe))))
    }

    fn connected(&self, channel: Channel) -> ServerCopy {
        ServerCopy {
            dialog: Dialog::new(channel, self.capabilities.clone()),
            process: None,
            outputs: SharedOutput::default(),
            began: Instant::now(),
        }
    }
}

impl ServerCopy {
    /// How the process ended, if it has ended.
    pub(crate) async fn exit(&mut self) -> Option<Exit> {
        let process = self.process.as_mut()?;
        // Its last output arrives meanwhile.
        let soon = Duration::from_millis(500);
        tokio::time::timeout(soon, process.exited()).await.ok()
    }

    /// The last lines of stderr, to append to a sentence.
    pub(crate) fn last_words(&self) -> String {
        let output = self.outputs.lock();
        if output.tail.is_empty() {
            return "; it wrote nothing to stderr".into();
        }
        let lines: Vec<&str> = output.tail.iter().map(String::as_str).collect();
        format!("; last lines of stderr:\n{}", lines.join("\n"))
    }

    /// Ends it with all processes it started, before the next copy starts: some
    /// servers hold a lock.
    pub(crate) async fn end(mut self) {
        if let Channel::Pipe(pipe) = &mut self.dialog.channel {
            pipe.close();
        }
        if let Some(process) = self.process.take() {
            process.end(BRIEF).await;
        }
    }
}
