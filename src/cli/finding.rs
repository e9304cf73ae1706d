//! What `doctor` and `lab` find: one line of what is so and, where it is not
//! well, one line of what to do.

use std::borrow::Cow;
use std::io::IsTerminal;

use serde::Serialize;

use upstream::printable;

/// The names in a report stand in a column of this width.
const COLUMN: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Mark {
    /// Neither good nor bad.
    Note,
    Ok,
    Warn,
    Bad,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Note => "·",
            Mark::Ok => "✓",
            Mark::Warn => "!",
            Mark::Bad => "✗",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Mark::Note => "2",
            Mark::Ok => "32",
            Mark::Warn => "33",
            Mark::Bad => "31",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    /// For scripts: stable, unlike the words.
    pub id: String,
    pub mark: Mark,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

impl Finding {
    pub(super) fn new(mark: Mark, id: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding {
            id: id.into(),
            mark,
            found: found.into(),
            todo: None,
        }
    }

    pub(super) fn ok(id: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding::new(Mark::Ok, id, found)
    }

    pub(super) fn note(id: impl Into<String>, found: impl Into<String>) -> Finding {
        Finding::new(Mark::Note, id, found)
    }

    pub(super) fn warn(
        id: impl Into<String>,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Finding {
        Finding::new(Mark::Warn, id, found).with(todo)
    }

    pub(super) fn bad(
        id: impl Into<String>,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Finding {
        Finding::new(Mark::Bad, id, found).with(todo)
    }

    pub(super) fn with(mut self, todo: impl Into<String>) -> Finding {
        self.todo = Some(todo.into());
        self
    }
}

/// How findings look on the output there is.
#[derive(Clone, Copy)]
pub(super) struct Style {
    colours: bool,
}

impl Style {
    /// Colours for a person at a terminal who has not asked for none.
    pub(super) fn of_stdout(no_color: Option<&String>) -> Style {
        let wanted = no_color.is_none_or(String::is_empty);
        Style {
            colours: wanted && std::io::stdout().is_terminal(),
        }
    }

    #[cfg(test)]
    pub(super) fn plain() -> Style {
        Style { colours: false }
    }

    pub(super) fn heading(self, text: &str) -> String {
        format!("\n{}\n", self.painted("1", &printable(text)))
    }

    pub(super) fn line(self, finding: &Finding) -> String {
        let sign = self.painted(finding.mark.colour(), finding.mark.sign());
        let mut lines = finding.found.lines();
        let first = printable(lines.next().unwrap_or_default());
        let id = printable(&finding.id);
        let mut text = format!("{sign} {id:COLUMN$} {first}\n");
        let indent = " ".repeat(COLUMN + 3);
        for line in lines {
            text += &format!("{indent}{}\n", printable(line));
        }
        for line in finding.todo.iter().flat_map(|todo| todo.lines()) {
            let line = self.painted("36", &printable(line));
            text += &format!("{indent}→ {line}\n");
        }
        text
    }

    fn painted(self, colour: &str, text: &str) -> String {
        match self.colours {
            true => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// `1 server`, `2 servers`.
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// No longer than a line of a report should be.
pub(super) fn short(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_finding_is_a_line_and_what_to_do_another() {
        let finding = Finding::warn("port", "taken\u{1b}[31m\nby somebody", "use another");
        let text = Style::plain().line(&finding);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "! port                   taken\\u001b[31m");
        assert_eq!(lines[1].trim(), "by somebody");
        assert_eq!(lines[2].trim(), "→ use another");
        assert!(Mark::Bad > Mark::Warn && Mark::Warn > Mark::Ok);
    }

    #[test]
    fn k7_long_text_is_cut_between_characters() {
        assert_eq!(short("äöü", 3), "äöü");
        assert_eq!(short("äöüß", 3), "äöü…");
        assert_eq!(
            (counted(1, "tool"), counted(2, "tool")),
            ("1 tool".into(), "2 tools".into())
        );
    }
}
