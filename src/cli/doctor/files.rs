//! Checks the configuration files of all layers, as `portway check` does.

use std::collections::BTreeSet;

use crate::cli::Environment;
use crate::cli::files::{complaint, sources};
use config::ServerSpec;
use config::settings::Settings;
use fleet::registry::{LoadedSources, SourceReport};
use lab::{Finding, Severity, counted};

pub(super) struct FileFindings {
    pub findings: Vec<Finding>,
    /// The servers in force with a valid definition.
    pub servers: Vec<(String, ServerSpec)>,
}

pub(super) fn examine(settings: &Settings, environment: &Environment) -> FileFindings {
    let files = sources(settings.project.clone(), environment);
    let loaded = files.load_now(&LoadedSources::default());
    let mut reports = files.reports(&loaded);
    reports.extend(files.filters_report());
    FileFindings {
        findings: findings(&reports, settings),
        servers: loaded.usable(),
    }
}

fn findings(reports: &[SourceReport], settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut paths = BTreeSet::new();
    let (mut servers, mut broken) = (0, false);
    for report in reports {
        // A file may hold more than one layer; its error is reported once.
        let first = paths.insert(&report.path);
        servers += report.servers.len();
        if let Some(problem) = report.error.as_ref().filter(|_| first) {
            broken = true;
            let todo = "until then nothing of it is in force; a running Portway keeps what it \
                        last read";
            findings.push(Finding::bad("file", complaint(&report.path, problem), todo));
        }
        let of_servers = report.servers.iter().flat_map(|server| &server.problems);
        for problem in report.problems.iter().chain(of_servers) {
            let found = complaint(&report.path, problem);
            let todo = "fix the line; `portway check` checks it again";
            findings.push(Finding::bad("definition", found, todo));
        }
        for server in &report.servers {
            if let Some(winner) = &server.shadowed_by {
                let found = format!("{:?} of {} is not in force", server.name, report.path);
                let todo = format!("{winner} has one of the same name, which wins: rename one");
                findings.push(Finding::warn("shadowed", found, todo));
            }
        }
    }
    if paths.is_empty() {
        let found = format!("none in {}", settings.project.display());
        let todo = "write an .mcp.json or let `portway import` do it; \
                    once `portway` runs, `portway add` does too";
        return vec![Finding::note("files", found).with(todo)];
    }
    let files: Vec<String> = paths.into_iter().cloned().collect();
    let found = format!("{}: {}", counted(servers, "definition"), files.join(", "));
    let mark = if broken { Severity::Note } else { Severity::Ok };
    findings.insert(0, Finding::new(mark, "files", found));
    findings
}
