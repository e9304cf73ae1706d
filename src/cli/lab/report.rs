//! What the lab found, for a person and for a program.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::advice::Advice;
use crate::cli::finding::{Finding, Mark, Style, counted};
use crate::cli::out::safe;
use config::Redactor;
use upstream::printable;

/// The order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Eras,
    Capabilities,
    Tools,
    Answers,
    Calls,
    Http,
    Output,
    Cost,
    End,
}

impl Part {
    const ALL: [Part; 9] = [
        Part::Eras,
        Part::Capabilities,
        Part::Tools,
        Part::Answers,
        Part::Calls,
        Part::Http,
        Part::Output,
        Part::Cost,
        Part::End,
    ];

    fn title(self) -> &'static str {
        match self {
            Part::Eras => "Eras",
            Part::Capabilities => "Capabilities",
            Part::Tools => "Tools",
            Part::Answers => "Answers",
            Part::Calls => "Calls",
            Part::Http => "HTTP",
            Part::Output => "Output",
            Part::Cost => "Cost",
            Part::End => "End",
        }
    }
}

pub(super) struct Report {
    pub server: Option<String>,
    /// What was run or reached, without secrets.
    pub title: String,
    pub transport: &'static str,
    findings: Vec<(Part, Finding)>,
    facts: Map<String, Value>,
    /// Whether all was looked at in time.
    pub complete: bool,
    /// Whether it came to a conversation.
    pub spoke: bool,
    pub advice: Advice,
    redactor: Arc<Redactor>,
}

impl Report {
    pub(super) fn new(title: String, transport: &'static str, redactor: Arc<Redactor>) -> Report {
        Report {
            server: None,
            title: redactor.redact(&title).into_owned(),
            transport,
            findings: Vec::new(),
            facts: Map::new(),
            complete: true,
            spoke: false,
            advice: Advice::default(),
            redactor,
        }
    }

    /// A server may repeat its secrets: they stop here.
    pub(super) fn add(&mut self, part: Part, mut finding: Finding) {
        finding.found = self.redactor.redact(&finding.found).into_owned();
        finding.todo = finding
            .todo
            .map(|todo| self.redactor.redact(&todo).into_owned());
        self.findings.push((part, finding));
    }

    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        let mut value = value.into();
        cover(&self.redactor, &mut value);
        self.facts.insert(name.to_owned(), value);
    }

    fn count(&self, mark: Mark) -> usize {
        let of_mark = |(_, finding): &&(Part, Finding)| finding.mark == mark;
        self.findings.iter().filter(of_mark).count()
    }

    /// Nothing that breaks its use.
    pub(super) fn is_fine(&self) -> bool {
        self.count(Mark::Bad) == 0
    }

    /// Settings that do not work are of no use.
    fn advises(&self) -> bool {
        self.spoke || self.advice.remedy
    }

    pub(super) fn as_json(&self) -> String {
        let finding = |(part, finding): &(Part, Finding)| {
            let mut value = serde_json::to_value(finding).unwrap_or_default();
            value["section"] = json!(part.title());
            value
        };
        let report = json!({
            "ok": self.is_fine(),
            "server": self.server,
            "target": self.title,
            "transport": self.transport,
            "complete": self.complete,
            "facts": self.facts,
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "settings": self.advises().then(|| self.advice.fragment()),
            "reasons": self.advice.reasons(),
        });
        safe(&format!("{report:#}\n"))
    }

    pub(super) fn as_text(&self, style: Style) -> String {
        let mut text = style.heading(&format!("{} ({})", self.title, self.transport));
        text.remove(0);
        for part in Part::ALL {
            let mut of_part = self
                .findings
                .iter()
                .filter(|(of, _)| *of == part)
                .peekable();
            if of_part.peek().is_some() {
                text += &style.heading(part.title());
            }
            for (_, finding) in of_part {
                text += &style.line(finding);
            }
        }
        if self.advises() {
            text += &style.heading("Settings for .mcp.json");
            let fragment = format!("{:#}", self.advice.fragment());
            for line in fragment.lines() {
                text += &format!("  {}\n", printable(line));
            }
            for (field, reason) in self.advice.reasons() {
                text += &format!("  {}: {}\n", printable(&field), printable(&reason));
            }
        }
        let verdict = match (self.count(Mark::Bad), self.count(Mark::Warn)) {
            (0, 0) => "fine".to_owned(),
            (0, warnings) => format!("usable; {}", counted(warnings, "warning")),
            (bad, warnings) => format!(
                "{} that {} its use, {}",
                counted(bad, "problem"),
                if bad == 1 { "breaks" } else { "break" },
                counted(warnings, "warning")
            ),
        };
        text + &style.heading(&verdict)
    }
}

fn cover(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| cover(redactor, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cover(redactor, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
