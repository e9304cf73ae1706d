//! A channel of lines to and from a process, or of messages of the old
//! HTTP+SSE: both are one ordered stream for everything.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::dialog::{CancelOutcome, MessageLog, Reaction, TimedReaction, answer, cancellation};
use crate::http;
use upstream::{Endpoint, LineReader, OutputLine};

const LINE_LIMIT: usize = 8 << 20;
const STDERR_LINE: usize = 4 << 10;
const INBOX: usize = 256;
/// The time limit of a write to a server that does not read.
const WRITE: Duration = Duration::from_secs(5);
/// The last lines of stderr that a report quotes.
const TAIL: usize = 8;
const FIRST_NOISE: usize = 200;

/// The output of a process besides its messages.
#[derive(Default)]
pub(crate) struct ProcessOutput {
    pub messages: usize,
    pub noise: usize,
    pub first_noise: Option<String>,
    /// Set if a line was longer than Portway reads.
    pub giant: bool,
    pub stderr_bytes: usize,
    pub stderr_lines: usize,
    pub tail: VecDeque<String>,
}

pub(crate) type SharedOutput = Arc<Mutex<ProcessOutput>>;

enum PipeWriter {
    Stdin(Sender),
    Post(Box<Endpoint>),
    Closed,
}

pub(crate) struct PipeChannel {
    writer: PipeWriter,
    inbox: mpsc::Receiver<Value>,
    pub log: MessageLog,
    answered: HashSet<String>,
    /// Requests of the server when no response could reach it any more.
    pub unanswered: Vec<String>,
}

impl PipeChannel {
    pub(crate) fn of_process(
        stdin: Sender,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stderr: impl AsyncRead + Unpin + Send + 'static,
        outputs: &SharedOutput,
    ) -> PipeChannel {
        let (sender, inbox) = mpsc::channel(INBOX);
        tokio::spawn(read(stdout, sender, outputs.clone()));
        tokio::spawn(drain(stderr, outputs.clone()));
        PipeChannel::new(PipeWriter::Stdin(stdin), inbox)
    }

    pub(crate) fn of_stream(endpoint: Endpoint, inbox: mpsc::Receiver<Value>) -> PipeChannel {
        PipeChannel::new(PipeWriter::Post(Box::new(endpoint)), inbox)
    }

    fn new(writer: PipeWriter, inbox: mpsc::Receiver<Value>) -> PipeChannel {
        PipeChannel {
            writer,
            inbox,
            log: MessageLog::default(),
            answered: HashSet::new(),
            unanswered: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        if let PipeWriter::Post(endpoint) = &self.writer {
            let headers = [("content-type", "application/json".to_owned())];
            return http::post(endpoint, &headers, line).await;
        }
        line.push('\n');
        self.send_raw(line.as_bytes()).await;
    }

    /// Sends bytes unchanged; only to a process.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        if let PipeWriter::Stdin(stdin) = &mut self.writer {
            // A server that does not read, or has ended, does not respond either.
            let _ = timeout(WRITE, stdin.write_all(bytes)).await;
        }
    }

    /// Whether the server has closed its output.
    pub(crate) fn has_ended(&self) -> bool {
        self.inbox.is_closed() && self.inbox.is_empty()
    }

    /// Ends the input of the server.
    pub(crate) fn close(&mut self) {
        self.writer = PipeWriter::Closed;
    }

    pub(crate) async fn ask_all(
        &mut self,
        requests: &[Value],
        limit: Duration,
    ) -> Vec<TimedReaction> {
        let began = Instant::now();
        for request in requests {
            self.send(request).await;
        }
        let mut open: HashMap<String, usize> = requests
            .iter()
            .enumerate()
            .map(|(at, request)| (request["id"].to_string(), at))
            .collect();
        let mut replies = vec![TimedReaction::silent(limit); requests.len()];
        let timed = |reaction| TimedReaction {
            reaction,
            took: began.elapsed(),
        };
        let deadline = began + limit;
        while !open.is_empty() {
            let message = match timeout_at(deadline, self.inbox.recv()).await {
                Ok(Some(message)) => message,
                Ok(None) => {
                    for at in open.into_values() {
                        replies[at] = timed(Reaction::Gone("it ended the connection".into()));
                    }
                    break;
                }
                Err(_) => break,
            };
            if let Some(at) = echoed(&message, requests) {
                open.remove(&message["id"].to_string());
                replies[at] = timed(Reaction::Echo);
                continue;
            }
            let Some(response) = self.sort(message).await else {
                continue;
            };
            let id = response["id"].to_string();
            match open.remove(&id) {
                Some(at) => {
                    self.answered.insert(id);
                    replies[at] = timed(Reaction::of(&response));
                }
                None => self.stray(&response),
            }
        }
        replies
    }

    fn stray(&mut self, response: &Value) {
        let id = &response["id"];
        if self.answered.contains(&id.to_string()) {
            self.log.again(id);
        } else {
            self.log.stray(id);
        }
    }

    /// Responds to requests of the server until none has come for `quiet`.
    pub(crate) async fn settle(&mut self, quiet: Duration, limit: Duration) {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && self.receive(deadline.min(Instant::now() + quiet)).await
        {
        }
    }

    /// Handles the next message; `false` if none comes.
    async fn receive(&mut self, deadline: Instant) -> bool {
        let Ok(Some(message)) = timeout_at(deadline, self.inbox.recv()).await else {
            return false;
        };
        if let Some(response) = self.sort(message).await {
            self.stray(&response);
        }
        true
    }

    /// Handles all messages but responses, which it returns.
    async fn sort(&mut self, message: Value) -> Option<Value> {
        if message.get("method").is_none() {
            return Some(message);
        }
        if message.get("id").is_none() {
            self.log.notification(&message);
            return None;
        }
        if message["method"] != "ping" {
            self.log.request(&message);
        }
        if let PipeWriter::Closed = self.writer
            && self.unanswered.len() < TAIL
        {
            let method = message["method"].as_str().unwrap_or_default();
            self.unanswered.push(method.to_owned());
        }
        self.send(&answer(&message)).await;
        None
    }

    pub(crate) async fn listen(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while self.receive(deadline).await {}
    }

    pub(crate) async fn ask_and_cancel(
        &mut self,
        request: &Value,
        after: Duration,
        rest: Duration,
    ) -> CancelOutcome {
        self.send(request).await;
        if self.response_to(&request["id"], after).await.is_some() {
            return CancelOutcome::TooLate;
        }
        self.send(&cancellation(&request["id"])).await;
        let began = Instant::now();
        match self.response_to(&request["id"], rest).await {
            Some(reaction) => CancelOutcome::Answered(reaction, began.elapsed()),
            None => CancelOutcome::Silent,
        }
    }

    async fn response_to(&mut self, id: &Value, limit: Duration) -> Option<Reaction> {
        let deadline = Instant::now() + limit;
        loop {
            let message = timeout_at(deadline, self.inbox.recv()).await.ok()??;
            if let Some(response) = self.sort(message).await {
                if response["id"] == *id {
                    self.answered.insert(id.to_string());
                    return Some(Reaction::of(&response));
                }
                self.stray(&response);
            }
        }
    }
}

/// The request that came back unchanged, as from `cat`.
fn echoed(message: &Value, requests: &[Value]) -> Option<usize> {
    message.get("method")?;
    requests.iter().position(|one| one == message)
}

/// Whether this is a JSON-RPC message at all.
pub(crate) fn is_message(value: &Value) -> bool {
    let body = ["method", "result", "error"];
    value["jsonrpc"] == "2.0" && body.iter().any(|name| value.get(name).is_some())
}

async fn read(stdout: impl AsyncRead + Unpin, inbox: mpsc::Sender<Value>, outputs: SharedOutput) {
    let mut lines = LineReader::new(stdout, LINE_LIMIT);
    loop {
        let line = match lines.next().await {
            Ok(Some(OutputLine::Whole(line))) => line,
            Ok(Some(OutputLine::TooLong(_))) => {
                outputs.lock().giant = true;
                return;
            }
            Ok(None) | Err(_) => return,
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(message) if is_message(&message) => {
                outputs.lock().messages += 1;
                if inbox.send(message).await.is_err() {
                    return;
                }
            }
            _ => {
                let mut output = outputs.lock();
                output.noise += 1;
                if output.first_noise.is_none() {
                    let text = String::from_utf8_lossy(&line);
                    output.first_noise = Some(text.chars().take(FIRST_NOISE).collect());
                }
            }
        }
    }
}

/// Keeps stderr flowing, or a full pipe would block the server.
async fn drain(stderr: impl AsyncRead + Unpin, outputs: SharedOutput) {
    let mut lines = LineReader::new(stderr, STDERR_LINE);
    while let Ok(Some(OutputLine::Whole(line) | OutputLine::TooLong(line))) = lines.next().await {
        let mut output = outputs.lock();
        output.stderr_bytes += line.len() + 1;
        output.stderr_lines += 1;
        if output.tail.len() == TAIL {
            output.tail.pop_front();
        }
        output
            .tail
            .push_back(String::from_utf8_lossy(&line).into_owned());
    }
}
