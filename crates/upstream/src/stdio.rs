//! A server as a child process, connected over its stdin and stdout.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lines::{LineReader, OutputLine, printable};
use super::outbox::{LAST_ANSWERS, Outbox};
use super::pipe::{MessageReceiver, Pipe};
use super::process::{self, Exit, Grace, Process};
use super::{
    ConnectOptions, Connection, ConnectionOwner, INBOUND_QUEUE, LogStream, ProcessFacts, Transport,
    UpstreamError, handshake,
};
use config::{EraChoice, Launch, Redactor};
use wire::Era;

/// The limit of one line of stderr; a longer one is split.
const STDERR_LINE: usize = 4 << 10;
/// The number of last lines that an error quotes.
const TAIL_LINES: usize = 8;
/// How long the rest of a dead server's output may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long a server may take to end after a question that has no answer.
const IN_VAIN: Duration = Duration::from_millis(250);

pub(super) async fn connect(
    launch: &Launch,
    options: &ConnectOptions,
    stop: &CancellationToken,
) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    let mut era = match (options.era, options.remembered) {
        (EraChoice::Auto, Some(Era::Legacy)) => EraChoice::Legacy,
        (choice, _) => choice,
    };
    loop {
        let (mut link, tail) = open(launch, options).await?;
        match greet(&mut link, options, era, stop).await {
            Ok(connection) => return Ok((link, connection)),
            Err(error) => {
                // Some legacy servers exit on any request before `initialize`.
                // A server that read the probe and exited gets the legacy
                // handshake; one that exited without reading it is broken.
                let left = matches!(error, UpstreamError::Exited(_));
                let read_it = link.finish().await == Some(0);
                if left && read_it && era == EraChoice::Auto {
                    (options.log)(
                        LogStream::Portway,
                        "exited when asked for its era; started again for the old handshake",
                    );
                    era = EraChoice::Legacy;
                    continue;
                }
                return Err(explained(error, options, &tail));
            }
        }
    }
}

/// Adds the command, and its stderr output, where the error alone does not
/// explain the failure.
fn explained(error: UpstreamError, options: &ConnectOptions, tail: &StderrTail) -> UpstreamError {
    match error {
        UpstreamError::Protocol(_)
        | UpstreamError::Unreachable(_)
        | UpstreamError::TooLarge { .. } => {
            let words = tail.quoted(&options.redactor);
            UpstreamError::Protocol(format!("`{}`: {error}{words}", options.title))
        }
        told => told,
    }
}

async fn greet(
    link: &mut ConnectionOwner,
    options: &ConnectOptions,
    era: EraChoice,
    stop: &CancellationToken,
) -> Result<Connection, UpstreamError> {
    let transport = link.transport.clone();
    let limit = options.limits.connect;
    let hello = async {
        match era {
            EraChoice::Auto => handshake::probe_pipe(&transport, options).await,
            EraChoice::Legacy => handshake::initialize(&transport, options, limit).await,
            EraChoice::Modern => {
                let answer = handshake::discover(&transport, options, limit).await;
                handshake::insist(answer, options)
            }
        }
    };
    let peer = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(UpstreamError::Draining),
        peer = tokio::time::timeout(limit, hello) => match peer {
            Ok(peer) => peer,
            Err(_) => Err(UpstreamError::Timeout { limit }),
        },
    };
    // The exit of a dead server says more than the request that failed with it.
    let peer = match peer {
        Err(UpstreamError::Lost(_)) => Err(link.gone().await),
        Err(UpstreamError::Timeout { limit }) => Err(UpstreamError::Protocol(format!(
            "no answer to the handshake within {}",
            super::error::seconds(&limit)
        ))),
        other => other,
    }?;
    Ok(Connection::new(transport, peer))
}

/// Starts the process and the tasks for its three streams.
async fn open(
    launch: &Launch,
    options: &ConnectOptions,
) -> Result<(ConnectionOwner, StderrTail), UpstreamError> {
    let mut process = spawn(launch, options).await?;
    let facts = ProcessFacts {
        pid: process.pid(),
        containment: process.containment(),
        hides: process.hides(),
        privileges: options.privileges,
        tree: process.tree(),
    };
    let (Some(stdin), Some(stdout), Some(stderr)) = (
        process.stdin.take(),
        process.stdout.take(),
        process.stderr.take(),
    ) else {
        return Err(UpstreamError::Spawn {
            reason: "a stream of the process is missing".into(),
            permanent: false,
        });
    };
    let (outbox, writer) = Outbox::to_process(stdin);
    let (inbound_sender, inbound) = mpsc::channel(INBOUND_QUEUE);
    let (gone_sender, gone) = watch::channel(None);
    let (pipe, receiver) = Pipe::new(outbox, inbound_sender, options);
    let stop = CancellationToken::new();
    let writer_stop = CancellationToken::new();
    let tail = StderrTail::default();

    let keeper = ProcessKeeper {
        process,
        title: options.title.clone(),
        redactor: options.redactor.clone(),
        grace: Grace {
            eof: options.limits.eof_grace,
            term: options.limits.term_grace,
        },
        writer: tokio::spawn(writer.run(writer_stop.clone())),
        writer_stop,
        reader: tokio::spawn(read(stdout, receiver, options.limits.message)),
        stderr: tokio::spawn(drain(stderr, options.clone(), tail.clone())),
        tail: tail.clone(),
        stop: stop.clone(),
        pipe: pipe.clone(),
        gone: gone_sender,
    };
    let link = ConnectionOwner {
        inbound,
        process: Some(facts),
        transport: Arc::new(Transport::Pipe(pipe)),
        gone,
        stop,
        keeper: Some(tokio::spawn(keeper.run())),
    };
    Ok((link, tail))
}

async fn spawn(launch: &Launch, options: &ConnectOptions) -> Result<Process, UpstreamError> {
    let (project, base_env) = (&options.project, &options.base_env);
    let command = process::ProcessCommand::of(launch, project, base_env, options.containment)
        .expect("connect sends only stdio definitions here");
    let command = process::ProcessCommand {
        privileges: options.privileges,
        hidden: options.hidden.clone(),
        instance: options.instance.clone(),
        shim: options.shim.clone(),
        ..command
    };
    process::spawn(&command).await.map_err(|error| {
        // The error names the program, which may come from a variable.
        let reason = format!("`{}` could not be started: {error}", options.title);
        UpstreamError::Spawn {
            permanent: error.permanent(),
            reason: Redactor::new(launch.expanded_values())
                .redact(&reason)
                .into_owned(),
        }
    })
}

/// Owns the process from start to end.
struct ProcessKeeper {
    process: Process,
    title: String,
    redactor: Arc<Redactor>,
    grace: Grace,
    writer: JoinHandle<Option<usize>>,
    writer_stop: CancellationToken,
    reader: JoinHandle<UpstreamError>,
    stderr: JoinHandle<()>,
    tail: StderrTail,
    stop: CancellationToken,
    pipe: Pipe,
    gone: watch::Sender<Option<UpstreamError>>,
}

enum ServerEnd {
    Exit(Exit),
    Output(UpstreamError),
    Asked,
}

impl ProcessKeeper {
    /// Returns how many bytes of our input the server left unread.
    async fn run(mut self) -> Option<usize> {
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => ServerEnd::Asked,
            exit = self.process.exited() => ServerEnd::Exit(exit),
            reason = &mut self.reader => ServerEnd::Output(
                reason.unwrap_or_else(|error| UpstreamError::Lost(error.to_string())),
            ),
        };
        let asked = matches!(end, ServerEnd::Asked);
        let reason = match end {
            ServerEnd::Asked => UpstreamError::Lost("the server was stopped".into()),
            ServerEnd::Exit(exit) => {
                // The last output of the server is read before the reason is set.
                let last = tokio::time::timeout(LAST_WORDS, &mut self.reader).await;
                let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
                let last = last.ok().and_then(Result::ok);
                cause(last).unwrap_or_else(|| UpstreamError::Exited(self.obituary(exit)))
            }
            // The server closed its stdout: usually it exits next, with a reason.
            ServerEnd::Output(UpstreamError::Lost(text)) => {
                match tokio::time::timeout(LAST_WORDS, self.process.exited()).await {
                    Ok(exit) => {
                        let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
                        UpstreamError::Exited(self.obituary(exit))
                    }
                    Err(_) => UpstreamError::Exited(format!("`{}`: {text}", self.title)),
                }
            }
            ServerEnd::Output(reason) => reason,
        };
        self.pipe.pending().fail_all(&reason);
        self.gone.send_replace(Some(reason));
        if asked {
            let _ = tokio::time::timeout(LAST_ANSWERS, self.pipe.questions().answered()).await;
        }
        // The writer holds stdin; the server sees no EOF while the writer lives.
        self.writer_stop.cancel();
        let unread = (&mut self.writer).await.ok().flatten();
        let grace = Grace {
            eof: self.eof().await,
            ..self.grace
        };
        self.process.end(grace).await;
        // No writer is left: the output is there or is arriving.
        if !self.stderr.is_finished() {
            let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
        }
        self.reader.abort();
        self.stderr.abort();
        unread
    }

    /// Gives the server, whose stdin is closed, time to end by itself; returns
    /// the remaining time. A server that asks a question now would wait for an
    /// answer that cannot come, so it gets no more time.
    async fn eof(&mut self) -> Duration {
        let start = Instant::now();
        let asked = async {
            self.pipe.questions().asked().await;
            tokio::time::sleep(IN_VAIN).await;
        };
        tokio::select! {
            biased;
            _ = self.process.exited() => {}
            () = asked => return Duration::ZERO,
            () = tokio::time::sleep(self.grace.eof) => {}
        }
        self.grace.eof.saturating_sub(start.elapsed())
    }

    fn obituary(&self, exit: Exit) -> String {
        let words = match self.tail.quoted(&self.redactor) {
            none if none.is_empty() => "; it wrote nothing to stderr".to_owned(),
            words => words,
        };
        format!("`{}` ended with {exit}{words}", self.title)
    }
}

/// The cause of the process's end, where the reader knows it: a reader that
/// stopped for its own reason closed the pipe, which ended the process.
fn cause(reader: Option<UpstreamError>) -> Option<UpstreamError> {
    reader.filter(|reason| !matches!(reason, UpstreamError::Lost(_)))
}

/// The last lines of a server's stderr, unmodified.
#[derive(Clone, Default)]
struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// A suffix for a sentence; empty if there is nothing to quote.
    fn quoted(&self, redactor: &Redactor) -> String {
        let safe = |line: &String| printable(&redactor.redact(line));
        let lines: Vec<String> = self.0.lock().iter().map(safe).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("; last lines of stderr:\n{}", lines.join("\n")),
        }
    }
}

/// Reads messages until the stream ends or is invalid; returns the reason.
async fn read(
    stdout: impl AsyncRead + Unpin,
    receiver: MessageReceiver,
    limit: usize,
) -> UpstreamError {
    let mut lines = LineReader::new(stdout, limit);
    loop {
        match lines.next().await {
            Ok(Some(OutputLine::Whole(line))) if line.iter().all(u8::is_ascii_whitespace) => {}
            Ok(Some(OutputLine::Whole(line))) => {
                if let Err(reason) = receiver.receive(&line.freeze()) {
                    return reason;
                }
            }
            Ok(Some(OutputLine::TooLong(_))) => return UpstreamError::TooLarge { limit },
            Ok(None) => return UpstreamError::Lost("it closed its stdout".into()),
            Err(error) => return UpstreamError::Lost(error.to_string()),
        }
    }
}

/// Keeps reading stderr (a full pipe would block the server) and keeps its last
/// lines.
async fn drain(stderr: impl AsyncRead + Unpin, options: ConnectOptions, tail: StderrTail) {
    let mut lines = LineReader::new(stderr, STDERR_LINE);
    while let Ok(Some(OutputLine::Whole(line) | OutputLine::TooLong(line))) = lines.next().await {
        let text = String::from_utf8_lossy(&line);
        (options.log)(LogStream::Stderr, &text);
        tail.push(text.into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_what_we_hung_up_for_wins_over_the_exit_that_followed() {
        let too_large = UpstreamError::TooLarge { limit: 8 << 20 };
        assert!(matches!(
            cause(Some(too_large)),
            Some(UpstreamError::TooLarge { .. })
        ));
        let closed = UpstreamError::Lost("it closed its stdout".into());
        assert!(cause(Some(closed)).is_none());
        assert!(cause(None).is_none());
    }
}
