//! The report of the lab, for a person and for a program.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::advice::Advice;
use crate::finding::{Finding, Severity, Verdict};
use config::Redactor;

/// The sections, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
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

impl Section {
    pub const ALL: [Section; 9] = [
        Section::Eras,
        Section::Capabilities,
        Section::Tools,
        Section::Answers,
        Section::Calls,
        Section::Http,
        Section::Output,
        Section::Cost,
        Section::End,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Section::Eras => "Eras",
            Section::Capabilities => "Capabilities",
            Section::Tools => "Tools",
            Section::Answers => "Answers",
            Section::Calls => "Calls",
            Section::Http => "HTTP",
            Section::Output => "Output",
            Section::Cost => "Cost",
            Section::End => "End",
        }
    }
}

pub struct LabReport {
    pub(crate) server: Option<String>,
    /// The command or URL under test, without secrets.
    pub title: String,
    pub transport: &'static str,
    findings: Vec<(Section, Finding)>,
    facts: Map<String, Value>,
    /// Whether all checks finished in time.
    pub(crate) complete: bool,
    /// Whether a handshake succeeded.
    pub(crate) spoke: bool,
    pub(crate) advice: Advice,
    redactor: Arc<Redactor>,
}

impl LabReport {
    pub(crate) fn new(
        title: String,
        transport: &'static str,
        redactor: Arc<Redactor>,
        advice: Advice,
    ) -> LabReport {
        LabReport {
            server: None,
            title: redactor.redact(&title).into_owned(),
            transport,
            findings: Vec::new(),
            facts: Map::new(),
            complete: true,
            spoke: false,
            advice,
            redactor,
        }
    }

    /// Redacts secrets, which a server may repeat.
    pub(crate) fn add(&mut self, section: Section, id: impl Into<String>, verdict: Verdict) {
        let redacted = |text: String| self.redactor.redact(&text).into_owned();
        let finding = Finding {
            id: id.into(),
            mark: verdict.mark,
            found: redacted(verdict.found),
            todo: verdict.todo.map(redacted),
        };
        self.findings.push((section, finding));
    }

    pub(crate) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        let mut value = value.into();
        cover(&self.redactor, &mut value);
        self.facts.insert(name.to_owned(), value);
    }

    /// The findings of one section, in the order in which they were added.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &Finding> {
        let of_section = self.findings.iter().filter(move |(of, _)| *of == section);
        of_section.map(|(_, finding)| finding)
    }

    pub fn count(&self, mark: Severity) -> usize {
        let of_mark = |(_, finding): &&(Section, Finding)| finding.mark == mark;
        self.findings.iter().filter(of_mark).count()
    }

    /// Whether no finding prevents its use.
    pub fn is_fine(&self) -> bool {
        self.count(Severity::Bad) == 0
    }

    /// Settings for `.mcp.json` and the reason for each; none if they would not
    /// work either.
    pub fn settings(&self) -> Option<(Value, IndexMap<String, String>)> {
        let useful = self.spoke || self.advice.remedy;
        useful.then(|| (self.advice.fragment(), self.advice.reasons()))
    }

    pub fn to_json(&self) -> Value {
        let finding = |(section, finding): &(Section, Finding)| finding.to_json(section.title());
        json!({
            "ok": self.is_fine(),
            "server": self.server,
            "target": self.title,
            "transport": self.transport,
            "complete": self.complete,
            "facts": self.facts,
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "settings": self.settings().map(|(settings, _)| settings),
            "reasons": self.advice.reasons(),
        })
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
