//! Problems of a definition, as data: the log, the API and the console each
//! show them in their own way.

use std::fmt;

use serde::Serialize;

/// The message contains the fix and never repeats a value that could be a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Dotted, as the user wrote it: `env.TOKEN`, `args[2]`. Empty if the
    /// problem concerns the whole text.
    pub field: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Problem {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            server: None,
            field: field.into(),
            message: message.into(),
            line: None,
            column: None,
        }
    }

    pub fn of_server(mut self, server: &str) -> Problem {
        self.server = Some(server.to_owned());
        self
    }

    pub fn at(mut self, (line, column): (u32, u32)) -> Problem {
        self.line = Some(line);
        self.column = Some(column);
        self
    }
}

/// Several problems as one text, a line each.
pub fn in_lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "server {server:?}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}
