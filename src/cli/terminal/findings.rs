//! Reports of `doctor` and `lab`: findings in sections, with a fix for each.

use super::{Terminal, Tint, blank};
use lab::{Finding, Severity};
use upstream::printable;

/// The width of the column of ids in a report.
const COLUMN: usize = 22;

fn sign(severity: Severity) -> (&'static str, Tint) {
    match severity {
        Severity::Note => ("·", Tint::Faint),
        Severity::Ok => ("✓", Tint::Good),
        Severity::Warn => ("!", Tint::Busy),
        Severity::Bad => ("✗", Tint::Bad),
    }
}

impl Terminal {
    pub(in crate::cli) fn heading(&mut self, text: &str) {
        let text = self.paint(Tint::Strong, &printable(text));
        self.line(&text);
    }

    /// Prints one section of a report, unless it is empty.
    pub(in crate::cli) fn section<'f>(
        &mut self,
        title: &str,
        findings: impl IntoIterator<Item = &'f Finding>,
    ) {
        let findings = findings.into_iter().map(|finding| self.finding(finding));
        let text: String = findings.collect();
        if !text.is_empty() {
            self.line("");
            self.heading(title);
            self.write(text.as_bytes());
        }
    }

    fn finding(&self, finding: &Finding) -> String {
        let (sign, tint) = sign(finding.mark);
        let sign = self.paint(tint, sign);
        let mut lines = finding.found.lines();
        let first = printable(lines.next().unwrap_or_default());
        let id = printable(&finding.id);
        let blank = blank(&id, COLUMN);
        let mut text = format!("{sign} {id}{blank} {first}\n");
        let indent = " ".repeat(COLUMN + 3);
        for line in lines {
            text += &format!("{indent}{}\n", printable(line));
        }
        for line in finding.todo.iter().flat_map(|todo| todo.lines()) {
            let line = self.paint(Tint::Advice, &printable(line));
            text += &format!("{indent}→ {line}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_a_finding_is_a_line_and_what_to_do_another() {
        let finding = Finding::warn("port", "taken\u{1b}[31m\nby somebody", "use another");
        let text = Terminal::plain().finding(&finding);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "! port                   taken\\u001b[31m");
        assert_eq!(lines[1].trim(), "by somebody");
        assert_eq!(lines[2].trim(), "→ use another");
        assert!(Severity::Bad > Severity::Warn && Severity::Warn > Severity::Ok);
    }
}
