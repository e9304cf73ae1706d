//! Lines to and from a process, or messages of the old HTTP+SSE: one ordered
//! channel for everything.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::unix::pipe::Sender;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::line::{Cancelled, Log, Question, Reply, Said, answer, cancellation};
use super::web::Poster;
use upstream::{Lines, OutputLine};

const LINE_LIMIT: usize = 8 << 20;
const STDERR_LINE: usize = 4 << 10;
const INBOX: usize = 256;
/// For a server that does not read.
const WRITE: Duration = Duration::from_secs(5);
/// The last lines of stderr that a report quotes.
const TAIL: usize = 8;
const FIRST_NOISE: usize = 200;

/// What a process wrote besides its messages.
#[derive(Default)]
pub(super) struct Output {
    pub messages: usize,
    pub noise: usize,
    pub first_noise: Option<String>,
    /// A line longer than Portway reads.
    pub giant: bool,
    pub stderr_bytes: usize,
    pub stderr_lines: usize,
    pub tail: VecDeque<String>,
}

pub(super) type Outputs = Arc<Mutex<Output>>;

enum Writer {
    Stdin(Sender),
    Post(Box<Poster>),
    Closed,
}

pub(super) struct Pipe {
    writer: Writer,
    inbox: mpsc::Receiver<Value>,
    pub log: Log,
    answered: HashSet<String>,
    /// What the server asked when no answer could reach it any more.
    pub unanswered: Vec<String>,
}

impl Pipe {
    pub(super) fn of_process(
        stdin: Sender,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stderr: impl AsyncRead + Unpin + Send + 'static,
        outputs: &Outputs,
    ) -> Pipe {
        let (sender, inbox) = mpsc::channel(INBOX);
        tokio::spawn(read(stdout, sender, outputs.clone()));
        tokio::spawn(drain(stderr, outputs.clone()));
        Pipe::new(Writer::Stdin(stdin), inbox)
    }

    pub(super) fn of_stream(poster: Poster, inbox: mpsc::Receiver<Value>) -> Pipe {
        Pipe::new(Writer::Post(Box::new(poster)), inbox)
    }

    fn new(writer: Writer, inbox: mpsc::Receiver<Value>) -> Pipe {
        Pipe {
            writer,
            inbox,
            log: Log::default(),
            answered: HashSet::new(),
            unanswered: Vec::new(),
        }
    }

    pub(super) async fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        if let Writer::Post(poster) = &self.writer {
            poster.post(line).await;
            return;
        }
        line.push('\n');
        self.send_raw(line.as_bytes()).await;
    }

    /// Bytes as they are; only a process takes them.
    pub(super) async fn send_raw(&mut self, bytes: &[u8]) {
        if let Writer::Stdin(stdin) = &mut self.writer {
            // One that does not read, or is gone, does not answer either.
            let _ = timeout(WRITE, stdin.write_all(bytes)).await;
        }
    }

    /// The end of the input, for the server to see.
    pub(super) fn close(&mut self) {
        self.writer = Writer::Closed;
    }

    pub(super) async fn ask_all(&mut self, questions: &[Question], limit: Duration) -> Vec<Reply> {
        let began = Instant::now();
        for question in questions {
            self.send(&request(question)).await;
        }
        let mut open: HashMap<String, usize> = questions
            .iter()
            .enumerate()
            .map(|(at, question)| (question.id.to_string(), at))
            .collect();
        let silent = Reply {
            said: Said::Silent(limit),
            took: limit,
        };
        let mut replies = vec![silent; questions.len()];
        let deadline = began + limit;
        while !open.is_empty() {
            let message = match timeout_at(deadline, self.inbox.recv()).await {
                Ok(Some(message)) => message,
                Ok(None) => {
                    for at in open.into_values() {
                        replies[at] = Reply {
                            said: Said::Gone("it ended the connection".into()),
                            took: began.elapsed(),
                        };
                    }
                    break;
                }
                Err(_) => break,
            };
            if let Some(at) = echoed(&message, questions) {
                open.remove(&message["id"].to_string());
                replies[at] = Reply {
                    said: Said::Echo,
                    took: began.elapsed(),
                };
                continue;
            }
            let Some(response) = self.sort(message).await else {
                continue;
            };
            let id = response["id"].to_string();
            match open.remove(&id) {
                Some(at) => {
                    self.answered.insert(id);
                    replies[at] = Reply {
                        said: Said::of(&response),
                        took: began.elapsed(),
                    };
                }
                None => self.stray(&response["id"], &id),
            }
        }
        replies
    }

    fn stray(&mut self, id: &Value, text: &str) {
        match self.answered.contains(text) {
            true => self.log.again(id),
            false => self.log.stray(id),
        }
    }

    /// Answers what it asks until it has asked nothing for so long.
    pub(super) async fn settle(&mut self, quiet: Duration, limit: Duration) {
        let deadline = Instant::now() + limit;
        while let Ok(Some(message)) =
            timeout_at(deadline.min(Instant::now() + quiet), self.inbox.recv()).await
        {
            if let Some(response) = self.sort(message).await {
                let id = response["id"].to_string();
                self.stray(&response["id"], &id);
            }
            if Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Everything but responses is dealt with here.
    async fn sort(&mut self, message: Value) -> Option<Value> {
        if message.get("method").is_none() {
            return Some(message);
        }
        if message.get("id").is_none() {
            self.log.note(&message);
            return None;
        }
        if message["method"] != "ping" {
            self.log.ask(&message);
        }
        if let Writer::Closed = self.writer
            && self.unanswered.len() < TAIL
        {
            let method = message["method"].as_str().unwrap_or_default();
            self.unanswered.push(method.to_owned());
        }
        self.send(&answer(&message)).await;
        None
    }

    pub(super) async fn listen(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Ok(Some(message)) = timeout_at(deadline, self.inbox.recv()).await {
            if let Some(response) = self.sort(message).await {
                let id = response["id"].to_string();
                self.stray(&response["id"], &id);
            }
        }
    }

    pub(super) async fn ask_and_cancel(
        &mut self,
        question: &Question,
        after: Duration,
        rest: Duration,
    ) -> Cancelled {
        self.send(&request(question)).await;
        if self.response_to(&question.id, after).await.is_some() {
            return Cancelled::TooLate;
        }
        self.send(&cancellation(&question.id)).await;
        let began = Instant::now();
        match self.response_to(&question.id, rest).await {
            Some(said) => Cancelled::Answered(said, began.elapsed()),
            None => Cancelled::Silent,
        }
    }

    async fn response_to(&mut self, id: &Value, limit: Duration) -> Option<Said> {
        let deadline = Instant::now() + limit;
        loop {
            let message = timeout_at(deadline, self.inbox.recv()).await.ok()??;
            if let Some(response) = self.sort(message).await {
                if response["id"] == *id {
                    self.answered.insert(id.to_string());
                    return Some(Said::of(&response));
                }
                let text = response["id"].to_string();
                self.stray(&response["id"], &text);
            }
        }
    }
}

pub(super) fn request(question: &Question) -> Value {
    let Question { id, method, params } = question;
    match params.is_null() {
        true => json!({"jsonrpc": "2.0", "id": id, "method": method}),
        false => json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
    }
}

/// Which question came back as it went, as from `cat`.
fn echoed(message: &Value, questions: &[Question]) -> Option<usize> {
    message.get("method")?;
    questions.iter().position(|one| request(one) == *message)
}

/// Whether this is a message of JSON-RPC at all.
pub(super) fn is_message(value: &Value) -> bool {
    let body = ["method", "result", "error"];
    value["jsonrpc"] == "2.0" && body.iter().any(|name| value.get(name).is_some())
}

async fn read(stdout: impl AsyncRead + Unpin, inbox: mpsc::Sender<Value>, outputs: Outputs) {
    let mut lines = Lines::new(stdout, LINE_LIMIT);
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
async fn drain(stderr: impl AsyncRead + Unpin, outputs: Outputs) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
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
