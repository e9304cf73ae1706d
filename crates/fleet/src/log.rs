//! The recent log lines of one server: stderr, protocol remarks, Portway's own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::Serialize;

use super::history::epoch_millis;
use config::Redactor;
use upstream::{LogStream, printable};

const LINES: usize = 1000;
const BYTES: usize = 256 << 10;
const LINE: usize = 4 << 10;

/// A bounded ring that drops the oldest lines first. Every line is made safe to
/// show: secrets of the definition redacted, control characters escaped.
#[derive(Default)]
pub struct LogRing(Mutex<LogBuffer>);

#[derive(Default)]
struct LogBuffer {
    redactor: Arc<Redactor>,
    next: u64,
    bytes: usize,
    lines: VecDeque<LogLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LogLine {
    /// Counts up from 0 for each server, without gaps.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub at: u64,
    pub stream: LogStream,
    pub text: String,
}

impl LogRing {
    /// Sets the secrets to redact from now on.
    pub fn hide(&self, redactor: Arc<Redactor>) {
        self.0.lock().redactor = redactor;
    }

    /// Makes a server's text of any number of lines safe to show.
    pub fn clean(&self, text: &str) -> String {
        let redactor = self.0.lock().redactor.clone();
        let text = redactor.redact(text);
        let lines: Vec<String> = text.split('\n').map(printable).collect();
        lines.join("\n")
    }

    pub fn push(&self, stream: LogStream, text: &str) {
        let at = epoch_millis(SystemTime::now());
        let mut text = self.clean(text);
        text.truncate(text.floor_char_boundary(LINE));
        let mut inner = self.0.lock();
        let seq = inner.next;
        inner.next += 1;
        inner.bytes += text.len();
        inner.lines.push_back(LogLine {
            seq,
            at,
            stream,
            text,
        });
        while inner.lines.len() > LINES || inner.bytes > BYTES {
            let Some(old) = inner.lines.pop_front() else {
                break;
            };
            inner.bytes -= old.text.len();
        }
    }

    /// The last `limit` lines with a number of at least `from`.
    pub fn read(&self, from: u64, limit: usize) -> Vec<LogLine> {
        let inner = self.0.lock();
        let fresh = inner.lines.iter().filter(|line| line.seq >= from);
        let skip = fresh.clone().count().saturating_sub(limit);
        fresh.skip(skip).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a12_keeps_the_newest_within_its_bounds() {
        let ring = LogRing::default();
        for n in 0..5000 {
            ring.push(LogStream::Stderr, &format!("line {n}"));
        }
        let lines = ring.read(0, usize::MAX);
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines.last().unwrap().text, "line 4999");
        assert_eq!(ring.read(4990, 5)[0].seq, 4995);
        ring.push(LogStream::Stderr, &"é".repeat(BYTES));
        let held: usize = ring.read(0, usize::MAX).iter().map(|l| l.text.len()).sum();
        assert!(held <= BYTES);
    }

    #[test]
    fn a12_what_is_kept_is_safe_to_show() {
        let ring = LogRing::default();
        ring.hide(Arc::new(Redactor::new(["s3cret-value"])));
        ring.push(LogStream::Protocol, "a \u{1b}[31m s3cret-value\nand more");
        let text = &ring.read(0, 1)[0].text;
        assert_eq!(text, "a \\u001b[31m ***\nand more");
    }
}
