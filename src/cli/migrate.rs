//! `portway migrate`: the records of the API before entries, or those of
//! another application, become entries with the same keys (SPEC E9).

mod adopt;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::BAD_USE;
use crate::app;
use config::settings::{ServeOptions, Settings, StorageType};
use store::{Instance, MigratedInstance, StoreError, StoreErrorKind, StoredRecords, ToolRecord};
use upstream::printable;

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Read the records from a table or a JSON file of another application, which stays as it is
    /// [default: Portway's own old records]
    #[arg(long, value_name = "TABLE|FILE")]
    from: Option<String>,
    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Directory of the project [default: the working directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Where state is kept [default: data in the project] [env: PORTWAY_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The text to print, and whether every record was migrated.
struct Outcome {
    text: String,
    complete: bool,
}

/// Exits with 1 when nothing could be done, and nothing has been then; also
/// when some records were refused.
pub(super) fn main(args: &MigrateArgs, environment: &BTreeMap<String, String>) -> ExitCode {
    let complain = |error: anyhow::Error| {
        let _ = writeln!(std::io::stderr(), "portway: {error:#}");
    };
    let settings = match settings(args, environment) {
        Ok(settings) => settings,
        Err(error) => {
            complain(error);
            return ExitCode::from(BAD_USE);
        }
    };
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(args, &settings)));
    match outcome {
        Ok(outcome) => {
            let _ = std::io::stdout().write_all(outcome.text.as_bytes());
            match outcome.complete {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn settings(
    args: &MigrateArgs,
    environment: &BTreeMap<String, String>,
) -> anyhow::Result<Settings> {
    let options = ServeOptions {
        project: args.project.clone(),
        data_dir: args.data_dir.clone(),
        ..ServeOptions::default()
    };
    let cwd = std::env::current_dir().context("the working directory cannot be read")?;
    let settings = Settings::load(options, environment, cwd)?;
    super::serve::log_to_stderr(&settings)?;
    let data = &settings.data_dir;
    // Opening the store would make one, and then there is nothing to migrate.
    if args.from.is_none() && settings.storage == StorageType::Json && !data.is_dir() {
        anyhow::bail!("--data-dir: there is no directory {}", data.display());
    }
    if args.dry_run {
        // As a migration would refuse it, without taking it into use.
        let objections = store::objections(&settings);
        anyhow::ensure!(
            objections.is_empty(),
            "{} cannot be used: {}",
            data.display(),
            objections.join("; ")
        );
        return Ok(settings);
    }
    for note in store::claim(&settings)? {
        tracing::warn!("{note}");
    }
    Ok(settings)
}

/// One record: what it was and what it is, or would be.
#[derive(Serialize)]
struct Row {
    mcp_instance_id: String,
    name: String,
    /// The entry's; none before there is one.
    id: Option<i64>,
    tools: usize,
}

impl From<MigratedInstance> for Row {
    fn from(migrated: MigratedInstance) -> Row {
        Row {
            mcp_instance_id: migrated.instance.to_string(),
            name: migrated.name,
            id: Some(migrated.entry.0),
            tools: migrated.tools,
        }
    }
}

async fn run(args: &MigrateArgs, settings: &Settings) -> anyhow::Result<Outcome> {
    if let Some(from) = &args.from {
        return adopt::run(from, args.dry_run, args.json, settings).await;
    }
    let rows: Vec<Row> = match args.dry_run {
        true => {
            let contents = store::stored_records(settings).await;
            foreseen(&contents.map_err(|error| in_use(error.into()))?)
        }
        false => {
            let store = app::open_store(settings).await.map_err(in_use)?;
            let migrated = store.migrate_instances().await?;
            migrated.into_iter().map(Row::from).collect()
        }
    };
    let text = match args.json {
        true => printed(&serde_json::json!({"dry_run": args.dry_run, "migrated": rows}))?,
        false => table(&rows, args.dry_run),
    };
    Ok(Outcome {
        text,
        complete: true,
    })
}

fn printed(report: &impl Serialize) -> anyhow::Result<String> {
    Ok(super::terminal::safe(&serde_json::to_string_pretty(report)?) + "\n")
}

fn in_use(error: anyhow::Error) -> anyhow::Error {
    let kind = error.downcast_ref().map(|error: &StoreError| &error.kind);
    match kind {
        Some(StoreErrorKind::Locked { .. }) => anyhow::anyhow!("{error}: stop it first"),
        _ => error,
    }
}

fn table(rows: &[Row], dry_run: bool) -> String {
    let count = rows.len();
    self::rows(rows)
        + &match (count, dry_run) {
            (0, _) => "nothing to migrate\n".to_owned(),
            (_, true) => format!("{count} to migrate; nothing has been changed\n"),
            (_, false) => format!("{count} migrated; their keys stay as they are\n"),
        }
}

fn rows(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names: Vec<String> = rows.iter().map(|row| printable(&row.name)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let width = longest.unwrap_or(0).max("name".len());
    let mut text = format!(
        "{:>8}  {:width$}     {:>8}  tools\n",
        "old id", "name", "entry"
    );
    for (row, name) in rows.iter().zip(names) {
        let entry = row.id.map_or_else(|| "new".to_owned(), |id| id.to_string());
        let (old, tools) = (printable(&row.mcp_instance_id), row.tools);
        text += &format!("{old:>8}  {name:width$}  -> {entry:>8}  {tools}\n");
    }
    text
}

/// The result that a migration of our own old records would have.
fn foreseen(contents: &StoredRecords) -> Vec<Row> {
    let row = |instance: &Instance| Row {
        mcp_instance_id: instance.id.to_string(),
        name: instance.name.clone(),
        id: None,
        tools: bindable(instance, &contents.tools),
    };
    contents.instances.iter().map(row).collect()
}

/// Of two with one name, an entry has one.
fn bindable(instance: &Instance, known: &[ToolRecord]) -> usize {
    let name = |(server, tool): (&str, &str)| {
        let record = known.iter().find(|record| {
            record.owner == instance.owner && record.server == server && record.tool == tool
        });
        record.map_or_else(|| tool.to_owned(), |record| record.name.clone())
    };
    let names: BTreeSet<String> = instance.registered().into_iter().map(name).collect();
    names.len()
}
