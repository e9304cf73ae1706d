//! `portway migrate`: the records of the API before entries, or those of
//! another application, become entries with the same keys (SPEC E9).

mod adopt;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Environment;
use super::failure::{CommandResult, Failure};
use super::remote::RemoteArgs;
use super::terminal::{Table, Terminal};
use crate::app;
use config::settings::{Settings, StorageType};
use store::{Instance, MigratedInstance, StoreError, StoreErrorKind, StoredRecords, ToolRecord};

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
    /// Directory for state [default: data in the project] [env: PORTWAY_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Exits with 1 when the migration failed and changed nothing; also when some
/// records were refused.
pub(super) async fn main(args: &MigrateArgs, environment: &Environment) -> CommandResult {
    let settings = settings(args, environment).map_err(|error| Failure::usage(in_full(error)))?;
    let mut out = Terminal::new(environment);
    let complete = run(args, &settings, &mut out).await;
    let complete = complete.map_err(|error| Failure::other(in_full(error)))?;
    out.done(complete)
}

fn in_full(error: anyhow::Error) -> String {
    format!("{error:#}")
}

fn settings(args: &MigrateArgs, environment: &Environment) -> anyhow::Result<Settings> {
    let remote = RemoteArgs {
        project: args.project.clone(),
        data_dir: args.data_dir.clone(),
        url: None,
    };
    let settings = remote.settings(environment)?;
    super::serve::log_to_stderr(&settings)?;
    let data = &settings.data_dir;
    // Opening the store would create one, and then nothing is left to migrate.
    if args.from.is_none() && settings.storage == StorageType::Json && !data.is_dir() {
        anyhow::bail!("--data-dir: there is no directory {}", data.display());
    }
    if args.dry_run {
        // Finds the errors of a migration without claiming the directory.
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

/// One record before and after the migration.
#[derive(Serialize)]
struct MigratedRow {
    mcp_instance_id: String,
    name: String,
    /// The entry's id; `None` before the entry exists.
    id: Option<i64>,
    tools: usize,
}

/// Returns whether every record was migrated.
async fn run(args: &MigrateArgs, settings: &Settings, out: &mut Terminal) -> anyhow::Result<bool> {
    if let Some(from) = &args.from {
        return adopt::run(from, args, settings, out).await;
    }
    let rows = if args.dry_run {
        foreseen(&stored(settings).await?)
    } else {
        let store = app::open_store(settings).await.map_err(in_use)?;
        let migrated = store.migrate_instances().await?.into_iter();
        let row = |migrated: MigratedInstance| MigratedRow {
            mcp_instance_id: migrated.instance.to_string(),
            name: migrated.name,
            id: Some(migrated.entry.0),
            tools: migrated.tools,
        };
        migrated.map(row).collect()
    };
    if args.json {
        out.json(&serde_json::json!({"dry_run": args.dry_run, "migrated": rows}));
        return Ok(true);
    }
    print_rows(&rows, out);
    out.line(&match (rows.len(), args.dry_run) {
        (0, _) => "nothing to migrate".to_owned(),
        (count, true) => format!("{count} to migrate; nothing has been changed"),
        (count, false) => format!("{count} migrated; their keys stay as they are"),
    });
    Ok(true)
}

/// The records, for a dry run.
async fn stored(settings: &Settings) -> anyhow::Result<StoredRecords> {
    let records = store::stored_records(settings).await;
    records.map_err(|error| in_use(error.into()))
}

fn in_use(error: anyhow::Error) -> anyhow::Error {
    let kind = error.downcast_ref().map(|error: &StoreError| &error.kind);
    match kind {
        Some(StoreErrorKind::Locked { .. }) => anyhow::anyhow!("{error}: stop it first"),
        _ => error,
    }
}

fn print_rows(rows: &[MigratedRow], out: &mut Terminal) {
    if rows.is_empty() {
        return;
    }
    let mut table = Table::new(["old id", "name", "entry", "tools"]);
    for row in rows {
        let entry = row.id.map_or_else(|| "new".to_owned(), |id| id.to_string());
        table.row([
            row.mcp_instance_id.as_str().into(),
            row.name.as_str().into(),
            entry.into(),
            row.tools.to_string().into(),
        ]);
    }
    table.print(out);
}

/// The expected result of a migration of Portway's own old records.
fn foreseen(contents: &StoredRecords) -> Vec<MigratedRow> {
    let row = |instance: &Instance| MigratedRow {
        mcp_instance_id: instance.id.to_string(),
        name: instance.name.clone(),
        id: None,
        tools: bindable(instance, &contents.tools),
    };
    contents.instances.iter().map(row).collect()
}

/// The number of tools an entry can have: tools with equal names count once.
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
