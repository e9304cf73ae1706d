//! Tables that another application made under one of our names: found by
//! reading the catalog, which locks nothing and changes nothing.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::PgConnection;

use super::super::StoreErrorKind;
use super::fault::DbResult;
use super::namespace::{Namespace, companion};

/// A table as the first migration makes it. Later migrations or the owner of
/// the database may add columns to it.
struct CatalogTable {
    name: &'static str,
    /// Each with its type, as the migration writes them.
    columns: &'static str,
    /// A name that no other application would use.
    constraint: &'static str,
}

const TABLES: &[CatalogTable] = &[
    CatalogTable {
        name: "mcp",
        columns: "id bigint, user_id text, name text, status boolean, key_digest bytea, \
                  key_hint text, extra json",
        constraint: "mcp_key",
    },
    CatalogTable {
        name: "mcp_v2",
        columns: "id bigint, user_id text, name text, status boolean, key_digest bytea, \
                  key_hint text, exposed_resources text[], exposed_prompts text[]",
        constraint: "mcp_v2_key",
    },
    CatalogTable {
        name: "tool",
        columns: "id bigint, user_id text, name text, description text, server text, tool text",
        constraint: "tool_of_user",
    },
    CatalogTable {
        name: "mcp_binding",
        columns: "id bigint, mcp_id bigint, tool_id bigint, user_id text, tool_name text, \
                  status boolean",
        constraint: "mcp_binding_once",
    },
    CatalogTable {
        name: "mcp_server",
        columns: "id uuid, seq bigint, name text, run boolean",
        constraint: "mcp_server_name",
    },
    CatalogTable {
        name: "mcp_server_definition",
        columns: "name text, definition json",
        constraint: "mcp_server_definition_name_length",
    },
    CatalogTable {
        name: "mcp_idempotency",
        columns: "key bytea, body bytea, made bigint, created_at timestamp with time zone",
        constraint: "mcp_idempotency_key_is_a_digest",
    },
];

/// Indexes share the tables' name space.
const INDEXES: &[&str] = &[
    "mcp_by_user",
    "mcp_key",
    "mcp_v2_by_user",
    "mcp_v2_key",
    "mcp_v2_of_user",
    "tool_by_user",
    "tool_named",
    "tool_of_user",
    "mcp_binding_by_tool",
    "mcp_binding_name",
    "mcp_binding_once",
    "mcp_server_name",
    "mcp_idempotency_by_age",
];

const FIRST: i64 = 20_261_116_000_000;

/// A relation in the catalog.
struct Relation {
    kind: String,
    columns: HashSet<String>,
    constraints: Vec<String>,
    /// The table of an index.
    indexed: Option<String>,
}

/// Relations that conflict with our tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CatalogFindings {
    /// Each name with the kind of its relation.
    taken: Vec<(String, String)>,
    /// Tables of ours that were changed, each with its problem.
    changed: Vec<(String, String)>,
    /// A schema that is free.
    proposal: Option<String>,
    /// Whether all of our tables exist.
    pub(super) complete: bool,
}

impl CatalogFindings {
    /// The error that stops the start, if there is a conflict.
    pub(super) fn refusal(&self) -> Result<(), StoreErrorKind> {
        let Some((name, why)) = self.taken.first() else {
            return self.altered();
        };
        let mut text = format!("{name} is not Portway's ({why})");
        for (name, why) in &self.taken[1..] {
            text += &format!(", nor is {name} ({why})");
        }
        text += "; nothing was changed. ";
        text += &match &self.proposal {
            Some(schema) => format!("Set SUPABASE_DB_SCHEMA={schema}"),
            None => "Set SUPABASE_DB_SCHEMA".to_owned(),
        };
        text += " to keep Portway's tables in a schema of their own";
        let taken = self.taken.iter();
        let mut tables = taken.filter_map(|(name, _)| name.strip_prefix("the table "));
        if let Some(table) = tables.find(|name| name.ends_with(".mcp")) {
            text += &format!(", then bring its records along with portway migrate --from {table}");
        }
        Err(StoreErrorKind::Setup(text))
    }

    /// Proposes no other schema, which would hide the records in our own tables.
    fn altered(&self) -> Result<(), StoreErrorKind> {
        let Some((name, why)) = self.changed.first() else {
            return Ok(());
        };
        let mut text = format!("{name} was changed after Portway made it ({why})");
        for (name, why) in &self.changed[1..] {
            text += &format!(", and so was {name} ({why})");
        }
        text += "; change it back (see supabase/migrations). Nothing was changed by this start";
        Err(StoreErrorKind::Setup(text))
    }
}

pub(super) async fn look(
    connection: &mut PgConnection,
    namespace: &Namespace,
) -> DbResult<CatalogFindings> {
    let relations = relations(connection, namespace.schema()).await?;
    let ledger = ledger(connection, namespace).await?;
    let made_by_us = ledger == Ledger::Applied;
    let mut found = CatalogFindings::default();
    let mut ours = HashSet::new();
    for table in TABLES {
        let Some(relation) = relations.get(table.name) else {
            continue;
        };
        let mismatch = table.mismatch(relation, made_by_us);
        let marked = table.is_marked(relation);
        if marked || mismatch.is_none() {
            ours.insert(table.name);
        }
        if let Some(why) = mismatch {
            let name = format!("the table {}.{}", namespace.schema(), table.name);
            let problems = if marked {
                &mut found.changed
            } else {
                &mut found.taken
            };
            problems.push((name, why));
        }
    }
    for index in INDEXES {
        let Some(relation) = relations.get(*index) else {
            continue;
        };
        let table = relation.indexed.as_deref();
        if !table.is_some_and(|table| ours.contains(table)) {
            let name = format!("the relation {}.{index}", namespace.schema());
            found
                .taken
                .push((name, "an index of Portway's has this name".into()));
        }
    }
    for name in types(connection, namespace.schema()).await? {
        let name = format!("the type {}.{name}", namespace.schema());
        found
            .taken
            .push((name, "a table of Portway's has this name".into()));
    }
    found.complete = ours.len() == TABLES.len();
    let untouched = ledger == Ledger::Missing && !found.complete;
    if ledger == Ledger::Foreign || untouched && !is_empty(connection, namespace.internal()).await?
    {
        let name = format!("the schema {}", namespace.internal());
        found.taken.push((name, "it holds other things".into()));
    }
    if !found.taken.is_empty() {
        found.proposal = proposal(connection).await?;
    }
    Ok(found)
}

impl CatalogTable {
    /// Why the table is not ours. Without the ledger, which the Supabase CLI
    /// does not keep, the constraint decides.
    fn mismatch(&self, found: &Relation, made_by_us: bool) -> Option<String> {
        if !matches!(found.kind.as_str(), "r" | "p") {
            return Some("it is no table".into());
        }
        let mut columns = self.columns.split(", ");
        let missing = columns.find(|column| !found.columns.contains(*column));
        if let Some((name, kind)) = missing.and_then(|column| column.split_once(' ')) {
            return Some(format!("it has no column {name} of type {kind}"));
        }
        let ours = made_by_us || self.is_marked(found);
        (!ours).then(|| format!("it has no constraint {}", self.constraint))
    }

    fn is_marked(&self, found: &Relation) -> bool {
        found.constraints.iter().any(|it| it == self.constraint)
    }
}

async fn relations(
    connection: &mut PgConnection,
    schema: &str,
) -> DbResult<HashMap<String, Relation>> {
    type Row = (String, String, Vec<String>, Vec<String>, Option<String>);
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "select c.relname::text, c.relkind::text, \
         array(select a.attname || ' ' || format_type(a.atttypid, null) from pg_attribute a \
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), \
         array(select k.conname::text from pg_constraint k where k.conrelid = c.oid), \
         (select t.relname::text from pg_index i join pg_class t on t.oid = i.indrelid \
             where i.indexrelid = c.oid) \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = $1 and (c.relname = any($2) or c.relname = any($3))",
    )
    .bind(schema)
    .bind(names)
    .bind(INDEXES)
    .fetch_all(connection)
    .await?;
    let each = rows
        .into_iter()
        .map(|(name, kind, columns, constraints, indexed)| {
            let relation = Relation {
                kind,
                columns: columns.into_iter().collect(),
                constraints,
                indexed,
            };
            (name, relation)
        });
    Ok(each.collect())
}

/// Types with the names of our tables that belong to no table.
async fn types(connection: &mut PgConnection, schema: &str) -> DbResult<Vec<String>> {
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let found = sqlx::query_scalar(
        "select t.typname::text from pg_type t join pg_namespace n on n.oid = t.typnamespace \
         where n.nspname = $1 and t.typname = any($2) and t.typrelid = 0 order by 1",
    )
    .bind(schema)
    .bind(names)
    .fetch_all(connection)
    .await?;
    Ok(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ledger {
    Missing,
    /// Exists, but this user cannot read it, or it lacks the first migration.
    Other,
    Applied,
    /// A table of this name that is not a ledger.
    Foreign,
}

async fn ledger(connection: &mut PgConnection, namespace: &Namespace) -> DbResult<Ledger> {
    let found: Option<(bool, bool)> = sqlx::query_as(
        "select (select count(*) = 2 from pg_attribute a where a.attrelid = c.oid \
             and (a.attname, format_type(a.atttypid, null)) \
             in (('version', 'bigint'), ('checksum', 'bytea'))), \
         has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select') \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = $1 and c.relname = 'migrations'",
    )
    .bind(namespace.internal())
    .fetch_optional(&mut *connection)
    .await?;
    match found {
        None => Ok(Ledger::Missing),
        Some((false, _)) => Ok(Ledger::Foreign),
        Some((true, false)) => Ok(Ledger::Other),
        Some((true, true)) => {
            let sql = format!(
                "select exists (select 1 from {} where version = $1 and success)",
                namespace.ledger()
            );
            let applied: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .bind(FIRST)
                .fetch_one(connection)
                .await?;
            Ok(if applied {
                Ledger::Applied
            } else {
                Ledger::Other
            })
        }
    }
}

/// Whether nothing depends on the schema, and it has no rights that the first
/// migration would revoke. Rights of other roles are fine: an administrator may
/// have made the schema for us.
async fn is_empty(connection: &mut PgConnection, schema: &str) -> DbResult<bool> {
    let empty = sqlx::query_scalar(
        "select not exists (select 1 from pg_namespace n join pg_depend d \
             on d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid \
             where n.nspname = $1) \
         and not exists (select 1 from pg_namespace n, aclexplode(n.nspacl) acl \
             join pg_roles r on r.oid = acl.grantee \
             where n.nspname = $1 and r.rolname in ('anon', 'authenticated'))",
    )
    .bind(schema)
    .fetch_one(connection)
    .await?;
    Ok(empty)
}

/// The first of a few names that is free together with its companion.
async fn proposal(connection: &mut PgConnection) -> DbResult<Option<String>> {
    let numbered = (2..10).map(|n| format!("portway_{n}"));
    let mut candidates = std::iter::once("portway".to_owned()).chain(numbered);
    let there: Vec<String> =
        sqlx::query_scalar("select nspname::text from pg_namespace where nspname like 'portway%'")
            .fetch_all(connection)
            .await?;
    let free = |name: &String| !there.contains(name) && !there.contains(&companion(name));
    Ok(candidates.find(free))
}
