//! The output of commands: the only place that knows whether stdout is a
//! terminal, how wide it is and whether it may be coloured (`NO_COLOR`). Lays
//! out tables and reports, and makes text from servers safe.

mod findings;
mod table;

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::Value;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
pub(super) use table::{Cell, Table, blank, clip, clip_inside, in_one_line};
use upstream::printable;

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tint {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Busy,
    Bad,
    Advice,
}

impl Tint {
    fn code(self) -> &'static str {
        match self {
            Tint::Plain => "",
            Tint::Strong => "1",
            Tint::Faint => "2",
            Tint::Good => "32",
            Tint::Busy => "33",
            Tint::Bad => "31",
            Tint::Advice => "36",
        }
    }

    /// The tint of a server's status.
    pub(super) fn of_status(status: &str) -> Tint {
        match status {
            "connected" => Tint::Good,
            "connecting" => Tint::Busy,
            "error" => Tint::Bad,
            _ => Tint::Faint,
        }
    }
}

/// Stdout. When its reader has closed it (`| head`), nothing more is written
/// and the command continues.
pub(super) struct Terminal {
    terminal: bool,
    coloured: bool,
    columns: usize,
    closed: bool,
    fault: Option<std::io::Error>,
}

impl Terminal {
    pub(super) fn new(environment: &Environment) -> Terminal {
        let terminal = std::io::stdout().is_terminal();
        Terminal {
            terminal,
            columns: columns(environment),
            coloured: terminal && wants_colour(environment),
            closed: false,
            fault: None,
        }
    }

    /// Neither a terminal nor coloured.
    #[cfg(test)]
    pub(super) fn plain() -> Terminal {
        Terminal {
            terminal: false,
            coloured: false,
            columns: 80,
            closed: false,
            fault: None,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The maximum columns of a line; `None` for a file or a pipe.
    pub(super) fn width(&self) -> Option<usize> {
        self.terminal
            .then(|| columns_of(std::io::stdout()).unwrap_or(self.columns))
    }

    pub(super) fn paint(&self, tint: Tint, text: &str) -> String {
        match tint {
            Tint::Plain => text.to_owned(),
            _ if !self.coloured || text.is_empty() => text.to_owned(),
            tint => format!("\u{1b}[{}m{text}\u{1b}[0m", tint.code()),
        }
    }

    /// Prints one line; the text must be safe to show.
    pub(super) fn line(&mut self, text: &str) {
        self.write(format!("{text}\n").as_bytes());
    }

    /// Prints a value behind its label, which takes `width` columns; further
    /// lines of the value stand below the first. An empty value is left out.
    pub(super) fn field(&mut self, width: usize, label: &str, value: &str) {
        if !value.is_empty() {
            let label = self.paint(Tint::Strong, &format!("{label:width$}"));
            let value = value.replace('\n', &format!("\n{:width$}", ""));
            self.line(&(label + &value));
        }
    }

    /// Prints an answer as JSON, or the line that says the same to a person.
    pub(super) fn answer(&mut self, json: bool, value: &Value, line: &str) {
        if json {
            self.json(value)
        } else {
            self.line(line)
        }
    }

    pub(super) fn json(&mut self, value: &Value) {
        self.line(&safe(&format!("{value:#}")));
    }

    /// Prints JSON on a line of its own.
    pub(super) fn json_line(&mut self, json: &str) {
        self.line(&printable(json));
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.closed || self.fault.is_some() {
            return;
        }
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.fault = Some(error),
            Ok(()) => {}
        }
    }

    /// Whether stdout is still open. A command that waits for more output would
    /// not notice otherwise.
    pub(super) fn is_read(&self) -> bool {
        !self.closed && self.fault.is_none() && !hung_up()
    }

    /// The exit code of a command: 0 if it succeeded, else 1.
    pub(super) fn done(self, succeeded: bool) -> CommandResult {
        match self.fault {
            Some(error) => Err(Failure::other(format!("cannot write to stdout: {error}"))),
            None => Ok(ExitCode::from(u8::from(!succeeded))),
        }
    }
}

fn hung_up() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let polled = poll(&mut watched, PollTimeout::ZERO);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    polled.is_ok() && watched[0].revents().is_some_and(|now| now.intersects(gone))
}

/// The width that a terminal reports.
pub(super) fn columns_of(output: impl std::os::fd::AsFd) -> Option<usize> {
    let size = terminal_size::terminal_size_of(output);
    let columns = size.map(|(width, _)| usize::from(width.0));
    columns.filter(|columns| *columns > 0)
}

/// The width of a terminal that does not report it.
fn columns(environment: &Environment) -> usize {
    let said = environment
        .get("COLUMNS")
        .and_then(|text| text.parse().ok());
    said.filter(|columns| *columns > 0).unwrap_or(80)
}

fn wants_colour(environment: &Environment) -> bool {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Text of several lines, none of which controls a terminal. JSON stays valid:
/// only characters inside its strings are escaped, in JSON's own form.
pub(super) fn safe(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Prints a note to stderr; text from a server or a file cannot control the
/// terminal.
pub(super) fn note(text: &str) {
    for line in text.lines() {
        let _ = writeln!(std::io::stderr(), "portway: {}", printable(line));
    }
}

/// Whether a user can answer questions.
pub(super) fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks before something is lost. Without a terminal `--yes` is required.
pub(super) fn confirm(question: &str, yes: bool) -> CliResult<bool> {
    if yes {
        return Ok(true);
    }
    if !is_attended() {
        return Err(Failure::usage(format!(
            "{question} There is no terminal to ask on: say --yes if you mean it"
        )));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{} [y/N] ", printable(question));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::other(format!("cannot read the answer: {error}")))?;
    Ok(matches!(
        answer.trim().to_lowercase().as_str(),
        "y" | "yes" | "是"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn k7_colours_are_left_out_where_asked() {
        let env = |pairs: &[(&str, &str)]| {
            let owned = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            wants_colour(&owned.collect())
        };
        assert!(env(&[]));
        assert!(env(&[("NO_COLOR", ""), ("TERM", "xterm")]));
        assert!(!env(&[("NO_COLOR", "1")]));
        assert!(!env(&[("TERM", "dumb")]));
    }

    #[test]
    fn k7_a_terminal_of_unknown_width_has_80_columns_or_what_is_said() {
        let env = |text: &str| columns(&[("COLUMNS".to_owned(), text.to_owned())].into());
        assert_eq!(columns(&BTreeMap::new()), 80);
        assert_eq!([env("120"), env("0"), env("wide")], [120, 80, 80]);
    }

    #[test]
    fn k7_safe_json_is_the_same_json() {
        let value = serde_json::json!({"a": "\u{1b}[31m\u{9b}\u{202e}\u{7f}ok"});
        let text = safe(&format!("{value:#}"));
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
        assert!(!text.contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
