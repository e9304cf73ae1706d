//! The progress of a call: one line on stderr that each update overwrites.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::terminal::{clip, in_one_line, note};

/// Updates more often than this are not readable.
const PAUSE: Duration = Duration::from_millis(50);
const USUAL_WIDTH: usize = 80;

pub(super) struct ProgressLine {
    terminal: bool,
    drawn: Option<Instant>,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine {
            terminal: std::io::stderr().is_terminal(),
            drawn: None,
        }
    }

    pub(super) fn show(&mut self, params: &Value) {
        let soon = self.drawn.is_some_and(|drawn| drawn.elapsed() < PAUSE);
        if !self.terminal || soon {
            return;
        }
        let width = terminal_size::terminal_size_of(std::io::stderr());
        let width = width.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0));
        // On some terminals, text in the last column wraps to the next line.
        let text = clip(&told(params), width.saturating_sub(1));
        let _ = write!(std::io::stderr(), "\r\u{1b}[K{text}");
        self.drawn = Some(Instant::now());
    }

    pub(super) fn log(&mut self, params: &Value) {
        self.clear();
        let level = params["level"].as_str().unwrap_or("info");
        let logger = match params["logger"].as_str() {
            Some(logger) => format!(" {logger}"),
            None => String::new(),
        };
        let data = super::arguments::plain(&params["data"]);
        note(&format!("[{level}{logger}] {data}"));
    }

    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            wipe();
        }
    }
}

/// Clears the progress line, so that another line can be written there.
pub(super) fn wipe() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\u{1b}[K");
    }
}

fn told(params: &Value) -> String {
    let number = |name: &str| params[name].as_f64();
    let count = match (number("progress"), number("total")) {
        (Some(done), Some(total)) if total > 0.0 => {
            format!("{:3.0}%", (done / total * 100.0).clamp(0.0, 100.0))
        }
        (Some(done), _) => format!("{done}"),
        (None, _) => "…".into(),
    };
    let message = params["message"].as_str().unwrap_or_default();
    in_one_line(&format!("{count}  {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn k7_progress_is_a_share_or_a_count() {
        for (params, line) in [
            (
                json!({"progress": 1, "total": 4, "message": "one"}),
                "25%  one",
            ),
            (json!({"progress": 9, "total": 3}), "100%"),
            (
                json!({"progress": 7, "message": "a\u{1b}[2J\nb"}),
                "7  a\\u001b[2J | b",
            ),
            (json!({"progress": 1, "total": 0}), "1"),
            (json!({}), "…"),
        ] {
            assert_eq!(told(&params), line);
        }
    }
}
