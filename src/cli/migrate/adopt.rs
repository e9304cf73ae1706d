//! `portway migrate --from`: turns records of another application, in a table
//! or a file, into entries with the same keys. The source is only read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::{MigrateArgs, MigratedRow, bindable, in_use, stored};
use crate::app;
use crate::cli::terminal::Terminal;
use config::settings::Settings;
use store::{Adoption, EntryId, ForeignRecord, Instance, MigratedInstance, Store, StoredRecords};
use upstream::printable;

/// Records per batch; a batch is written completely or not at all.
const AT_ONCE: usize = 200;

/// The limit for an identifier of PostgreSQL.
const LONGEST_NAME: usize = 63;

/// The location of the records.
#[derive(Debug, PartialEq, Eq)]
enum RecordSource {
    File(PathBuf),
    Table { schema: String, table: String },
}

impl RecordSource {
    /// A file, if the text names one or cannot be a table.
    fn parse(text: &str) -> anyhow::Result<RecordSource> {
        let path = Path::new(text);
        if path.is_file() || text.contains('/') || text.ends_with(".json") {
            return Ok(RecordSource::File(path.to_owned()));
        }
        let (schema, table) = text.split_once('.').unwrap_or(("public", text));
        let fits = |name: &str| (1..=LONGEST_NAME).contains(&name.len());
        if !fits(schema) || !fits(table) || table.contains('.') {
            anyhow::bail!("--from: neither a file nor a table such as public.mcp");
        }
        Ok(RecordSource::Table {
            schema: schema.to_owned(),
            table: table.to_owned(),
        })
    }

    async fn read(&self, settings: &Settings) -> anyhow::Result<Vec<ForeignRecord>> {
        match self {
            RecordSource::File(path) => Ok(store::foreign_file(path)?),
            RecordSource::Table { schema, table } => {
                let url = settings.supabase_db_url.as_ref();
                let url = url.context("--from: a table needs SUPABASE_DB_URL")?;
                Ok(store::foreign_table(url, schema, table).await?)
            }
        }
    }
}

/// The result for all records, or the expected one in a dry run.
#[derive(Serialize)]
struct AdoptionReport<'a> {
    dry_run: bool,
    from: &'a str,
    migrated: Vec<MigratedRow>,
    /// Records that already are entries.
    known: Vec<MigratedRow>,
    refused: Vec<RecordRemark>,
    warnings: Vec<RecordRemark>,
}

/// A record, and a remark about it.
#[derive(Serialize)]
struct RecordRemark {
    /// Its position in the source, from 1.
    record: usize,
    mcp_instance_id: Option<String>,
    name: Option<String>,
    reason: String,
}

impl RecordRemark {
    fn new(record: &ForeignRecord, reason: String) -> RecordRemark {
        RecordRemark {
            record: record.number,
            mcp_instance_id: record.id.clone(),
            name: record.name.clone(),
            reason,
        }
    }
}

/// Returns whether every record was adopted.
pub(super) async fn run(
    from: &str,
    args: &MigrateArgs,
    settings: &Settings,
    out: &mut Terminal,
) -> anyhow::Result<bool> {
    let records = RecordSource::parse(from)?.read(settings).await?;
    let adopted = if args.dry_run {
        foreseen(&stored(settings).await?, &records)
    } else {
        let store = app::open_store(settings).await.map_err(in_use)?;
        adopt(&store, &records).await?
    };
    let report = AdoptionReport::new(from, args.dry_run, &records, adopted);
    if args.json {
        out.json(&serde_json::to_value(&report)?);
    } else {
        report.print(out);
    }
    Ok(report.refused.is_empty())
}

/// The usable records; of two with the same key, only the first.
fn usable(records: &[ForeignRecord]) -> Vec<Result<&Instance, String>> {
    let mut keys = HashMap::new();
    let read = records.iter().map(|record| {
        let instance = record.read.as_ref().map_err(Clone::clone)?;
        let first = *keys.entry(instance.key.digest).or_insert(record.number);
        if first != record.number {
            return Err(format!("its key is that of record {first}, too"));
        }
        Ok(instance)
    });
    read.collect()
}

fn foreseen(contents: &StoredRecords, records: &[ForeignRecord]) -> Vec<Adoption> {
    let outcome = |read: Result<&Instance, String>| match read {
        Err(reason) => Adoption::Refused(reason),
        Ok(instance) => match contents.keys.get(&instance.key.digest) {
            Some(holder) => holder.outcome(instance),
            None => Adoption::Made(MigratedInstance {
                instance: instance.id,
                // There is no id before the entry is created.
                entry: EntryId(0),
                name: instance.name.clone(),
                tools: bindable(instance, &contents.tools),
            }),
        },
    };
    usable(records).into_iter().map(outcome).collect()
}

async fn adopt(store: &Store, records: &[ForeignRecord]) -> anyhow::Result<Vec<Adoption>> {
    let usable = usable(records);
    let instances: Vec<Instance> = usable.iter().flatten().copied().cloned().collect();
    let mut made = Vec::with_capacity(instances.len());
    for some in instances.chunks(AT_ONCE) {
        made.extend(store.adopt(some).await?);
    }
    let mut made = made.into_iter();
    let outcome = |read: Result<&Instance, String>| match read {
        Ok(_) => made.next().unwrap_or(Adoption::Refused(String::new())),
        Err(reason) => Adoption::Refused(reason),
    };
    Ok(usable.into_iter().map(outcome).collect())
}

impl<'a> AdoptionReport<'a> {
    fn new(
        from: &'a str,
        dry_run: bool,
        records: &[ForeignRecord],
        adopted: Vec<Adoption>,
    ) -> AdoptionReport<'a> {
        let mut report = AdoptionReport {
            dry_run,
            from,
            migrated: Vec::new(),
            known: Vec::new(),
            refused: Vec::new(),
            warnings: Vec::new(),
        };
        for (record, adopted) in records.iter().zip(adopted) {
            let row = |entry: Option<i64>, tools: usize| MigratedRow {
                mcp_instance_id: record.id.clone().unwrap_or_default(),
                name: record.name.clone().unwrap_or_default(),
                id: entry,
                tools,
            };
            match adopted {
                Adoption::Made(made) => {
                    let entry = (!dry_run).then_some(made.entry.0);
                    report.migrated.push(row(entry, made.tools));
                    let warning = record.warning.clone();
                    let warning = warning.map(|text| RecordRemark::new(record, text));
                    report.warnings.extend(warning);
                }
                Adoption::Known(id) => report.known.push(row(Some(id.0), 0)),
                Adoption::Refused(reason) => {
                    report.refused.push(RecordRemark::new(record, reason));
                }
            }
        }
        report
    }

    fn print(&self, out: &mut Terminal) {
        super::print_rows(&self.migrated, out);
        for (what, each) in [("refused", &self.refused), ("warning", &self.warnings)] {
            for one in each {
                let name = one.name.as_deref().unwrap_or_default();
                let id = one.mcp_instance_id.as_deref().unwrap_or("-");
                out.line(&format!(
                    "{what}: record {} (id {}, name {:?}): {}",
                    one.record,
                    printable(id),
                    printable(name),
                    one.reason
                ));
            }
        }
        let (made, known, refused) = (self.migrated.len(), self.known.len(), self.refused.len());
        let others = format!("{known} already there, {refused} refused");
        out.line(&if self.dry_run {
            format!("{made} to migrate, {others}; nothing has been changed")
        } else {
            let keys = "their keys stay as they are";
            format!(
                "{made} migrated, {others}; {keys}, and so does {}",
                self.from
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e9_a_source_is_a_file_or_a_table() {
        let table = |schema: &str, table: &str| RecordSource::Table {
            schema: schema.into(),
            table: table.into(),
        };
        assert_eq!(RecordSource::parse("mcp").unwrap(), table("public", "mcp"));
        assert_eq!(RecordSource::parse("app.mcp").unwrap(), table("app", "mcp"));
        for file in ["./mcp", "data/mcp_instances.json", "gone.json"] {
            assert_eq!(
                RecordSource::parse(file).unwrap(),
                RecordSource::File(file.into())
            );
        }
        for bad in ["", ".", "a.", ".b", "a.b.c", &"x".repeat(64)] {
            assert!(RecordSource::parse(bad).is_err(), "{bad}");
        }
    }
}
