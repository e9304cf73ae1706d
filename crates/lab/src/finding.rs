//! Findings of `doctor` and `lab`: one line that states a fact and, if there is
//! a problem, one line that states the remedy.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Neither good nor bad.
    Note,
    Ok,
    Warn,
    Bad,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// For scripts: stable, unlike the text.
    pub id: String,
    pub mark: Severity,
    pub found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

impl Finding {
    pub fn new(mark: Severity, id: &str, found: impl Into<String>) -> Finding {
        Finding {
            id: id.to_owned(),
            mark,
            found: found.into(),
            todo: None,
        }
    }

    pub fn ok(id: &str, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Ok, id, found)
    }

    pub fn note(id: &str, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, id, found)
    }

    pub fn warn(id: &str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding::new(Severity::Warn, id, found).with(todo)
    }

    pub fn bad(id: &str, found: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding::new(Severity::Bad, id, found).with(todo)
    }

    /// For scripts: its fields and its section.
    pub fn to_json(&self, section: &str) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        value["section"] = section.into();
        value
    }

    pub fn with(mut self, todo: impl Into<String>) -> Finding {
        self.todo = Some(todo.into());
        self
    }
}

/// The outcome of one check: a [`Finding`] without its id, which the report adds.
pub(crate) struct Verdict {
    pub mark: Severity,
    pub found: String,
    pub todo: Option<String>,
}

impl Verdict {
    fn new(mark: Severity, found: impl Into<String>) -> Verdict {
        let found = found.into();
        let todo = None;
        Verdict { mark, found, todo }
    }

    pub(crate) fn with(mut self, todo: impl Into<String>) -> Verdict {
        self.todo = Some(todo.into());
        self
    }
}

pub(crate) fn ok(found: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Ok, found)
}

pub(crate) fn note(found: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Note, found)
}

pub(crate) fn warn(found: impl Into<String>, todo: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Warn, found).with(todo)
}

pub(crate) fn bad(found: impl Into<String>, todo: impl Into<String>) -> Verdict {
    Verdict::new(Severity::Bad, found).with(todo)
}

/// `1 server`, `2 servers`.
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// Shortens a text to fit into a line of a report.
pub fn short(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
