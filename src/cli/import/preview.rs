//! A preview of an import.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::ClientServers;
use super::target::ImportTarget;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::terminal::{Terminal, blank};
use config::import::{ImportedServer, is_portway};
use config::view::title;
use config::{ServerName, ServerSpec, masked_config};
use upstream::printable;

/// The options of the import.
pub(super) struct ImportSelection {
    only: BTreeSet<String>,
    rename: BTreeMap<String, String>,
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportVerdict {
    New,
    Replaced,
    Same,
    Clash,
    /// The server is Portway itself.
    Skipped,
    Bad,
}

pub(super) struct ImportRow {
    /// The name in the project.
    pub name: String,
    /// The name in the client's file, if it differs.
    original: Option<String>,
    pub verdict: ImportVerdict,
    pub spec: Option<(ServerName, ServerSpec)>,
    notes: Vec<String>,
    problems: Vec<String>,
    file: String,
}

pub(super) struct Preview {
    rows: Vec<ImportRow>,
    head: String,
    client: &'static str,
    broken: Vec<String>,
}

impl ImportSelection {
    pub(super) fn read(
        only: &[String],
        rename: &[String],
        overwrite: bool,
    ) -> CliResult<ImportSelection> {
        let mut renamed = BTreeMap::new();
        for pair in rename {
            let Some((old, new)) = pair.split_once('=') else {
                let message = format!("--rename: {pair:?} is not OLD=NEW");
                return Err(Failure::usage(message));
            };
            if let Err(message) = ServerName::parse(new) {
                return Err(Failure::usage(format!("--rename: {new:?}: {message}")));
            }
            renamed.insert(old.to_owned(), new.to_owned());
        }
        Ok(ImportSelection {
            only: only.iter().cloned().collect(),
            rename: renamed,
            overwrite,
        })
    }

    /// An unknown name is reported, because it is probably a typing error.
    fn check(&self, found: &[ImportedServer]) -> CliResult<()> {
        let known: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        let asked = self.only.iter().map(|name| ("--only", name));
        let asked = asked.chain(self.rename.keys().map(|name| ("--rename", name)));
        for (flag, name) in asked {
            if !known.contains(&name.as_str()) {
                return Err(Failure::usage(format!(
                    "{flag}: there is no server {name:?}; there are: {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }
}

impl Preview {
    pub(super) fn new(
        reading: ClientServers,
        selection: &ImportSelection,
        target: &ImportTarget,
        base: &str,
    ) -> CliResult<Preview> {
        selection.check(&reading.found)?;
        let files: Vec<String> = reading
            .files
            .iter()
            .map(|f| f.display().to_string())
            .collect();
        let mut rows: Vec<ImportRow> = Vec::new();
        for one in reading.found {
            if !selection.only.is_empty() && !selection.only.contains(&one.name) {
                continue;
            }
            let file = files.get(one.file).cloned().unwrap_or_default();
            let mut row = judge(one, selection, target, base, file);
            if rows
                .iter()
                .any(|other| other.name == row.name && other.verdict != ImportVerdict::Bad)
            {
                row.verdict = ImportVerdict::Bad;
                row.problems = vec!["another server of the list gets this name".to_owned()];
            }
            rows.push(row);
        }
        let head = format!("{}: {}", reading.client.title(), files.join(", "));
        Ok(Preview {
            rows,
            head,
            client: reading.client.name(),
            broken: reading.broken,
        })
    }

    /// The servers to write.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (&ImportRow, &ServerName, &ServerSpec)> {
        self.rows
            .iter()
            .filter(|row| matches!(row.verdict, ImportVerdict::New | ImportVerdict::Replaced))
            .filter_map(|row| row.spec.as_ref().map(|(name, spec)| (row, name, spec)))
    }

    /// Whether every selected server will be imported.
    pub(super) fn is_complete(&self) -> bool {
        let good =
            |row: &ImportRow| !matches!(row.verdict, ImportVerdict::Clash | ImportVerdict::Bad);
        self.broken.is_empty() && self.rows.iter().all(good)
    }

    pub(super) fn question(&self, target: &ImportTarget) -> String {
        let names: Vec<&str> = self.wanted().map(|(row, ..)| row.name.as_str()).collect();
        format!("Write {} into {target}?", names.join(", "))
    }

    pub(super) fn print(&self, out: &mut Terminal) {
        out.line(&printable(&self.head));
        for complaint in &self.broken {
            out.line(&format!("! {}", printable(complaint)));
        }
        if self.rows.is_empty() {
            out.line("  no servers");
        }
        let names: Vec<String> = self.rows.iter().map(|row| printable(&row.name)).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        for (row, name) in self.rows.iter().zip(&names) {
            let (blank, summary) = (blank(name, width), printable(&row.summary()));
            out.line(&format!(
                "{} {name}{blank}  {summary}",
                row.verdict.shown().0
            ));
            for line in row.problems.iter().chain(&row.notes) {
                out.line(&format!("  {:width$}    {}", "", printable(line)));
            }
        }
    }

    pub(super) fn json(&self, in_earnest: bool) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(ImportRow::json).collect();
        json!({
            "client": self.client,
            "dryRun": !in_earnest,
            "servers": rows,
            "problems": self.broken,
        })
    }
}

fn judge(
    one: ImportedServer,
    selection: &ImportSelection,
    target: &ImportTarget,
    base: &str,
    file: String,
) -> ImportRow {
    let new_name = selection.rename.get(&one.name);
    let name = new_name.cloned().unwrap_or_else(|| one.name.clone());
    let mut row = ImportRow {
        original: new_name.map(|_| one.name.clone()),
        name,
        verdict: ImportVerdict::Bad,
        spec: None,
        notes: one.notes,
        problems: Vec::new(),
        file,
    };
    let checked = ServerName::parse(&row.name);
    if let Err(message) = &checked {
        row.problems.push(format!(
            "name: {message}; --rename {:?} helps",
            format!("{}=NEW", one.name)
        ));
    }
    let spec = match one.spec {
        Ok(spec) => spec,
        Err(problems) => {
            row.problems
                .extend(problems.iter().map(ToString::to_string));
            return row;
        }
    };
    let Ok(name) = checked else { return row };
    row.verdict = match target.holds(&name, &spec) {
        _ if is_portway(&spec, base) => ImportVerdict::Skipped,
        None => ImportVerdict::New,
        Some(true) => ImportVerdict::Same,
        Some(false) if selection.overwrite => ImportVerdict::Replaced,
        Some(false) => ImportVerdict::Clash,
    };
    row.spec = Some((name, spec));
    row
}

impl ImportVerdict {
    /// Its sign in the printed list, and its name in JSON.
    fn shown(self) -> (char, &'static str) {
        match self {
            ImportVerdict::New => ('+', "new"),
            ImportVerdict::Replaced => ('~', "replaced"),
            ImportVerdict::Same => ('=', "same"),
            ImportVerdict::Clash => ('!', "clash"),
            ImportVerdict::Skipped => ('-', "skipped"),
            ImportVerdict::Bad => ('x', "bad"),
        }
    }
}

impl ImportRow {
    fn summary(&self) -> String {
        let what = match &self.spec {
            Some((_, spec)) if spec.enabled => title(spec),
            Some((_, spec)) => format!("{} (not enabled)", title(spec)),
            None => String::new(),
        };
        let name = &self.name;
        let text = match self.verdict {
            ImportVerdict::New => what,
            ImportVerdict::Replaced => format!("{what} (replaces what is there)"),
            ImportVerdict::Same => "is there already, the same".to_owned(),
            ImportVerdict::Clash => format!(
                "{what}: another {name:?} is there; --overwrite replaces it, \
                 --rename {:?} keeps both",
                format!("{}=NEW", self.original.as_ref().unwrap_or(name))
            ),
            ImportVerdict::Skipped => "is Portway itself; left out".to_owned(),
            ImportVerdict::Bad => "cannot be imported:".to_owned(),
        };
        match &self.original {
            Some(old) => format!("{text} (was {old:?})"),
            None => text,
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "original": self.original.as_ref().unwrap_or(&self.name),
            "status": self.verdict.shown().1,
            "config": self.spec.as_ref().map(|(_, spec)| masked_config(spec)),
            "file": self.file,
            "notes": self.notes,
            "problems": self.problems,
        })
    }
}
