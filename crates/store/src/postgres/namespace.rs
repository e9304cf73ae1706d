//! The schemas in which Portway's tables, functions and migrations are.

use config::DatabaseSchema;

/// With the tables in `public`, functions and migrations are in `portway`;
/// with tables elsewhere they are in a companion of that schema, so that two
/// Portways share a database without sharing anything in it.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    schema: DatabaseSchema,
    /// A plain identifier that no keyword equals: needs no quotes.
    internal: String,
}

impl Namespace {
    pub(super) fn new(schema: &DatabaseSchema) -> Namespace {
        let internal = if schema.is_default() {
            "portway".to_owned()
        } else {
            companion(schema.as_str())
        };
        Namespace {
            schema: schema.clone(),
            internal,
        }
    }

    pub(super) fn schema(&self) -> &str {
        self.schema.as_str()
    }

    /// Holds functions and the ledger of migrations.
    pub(super) fn internal(&self) -> &str {
        &self.internal
    }

    pub(super) fn ledger(&self) -> String {
        format!("{}.migrations", self.internal)
    }

    /// On which changes are announced.
    pub(super) fn channel(&self) -> &str {
        &self.internal
    }

    /// A statement after which plain table names mean ours, and no temporary
    /// table stands before one.
    pub(super) fn search_path(&self) -> String {
        format!("set search_path = \"{}\", pg_temp", self.schema())
    }

    /// A migration, which is written for `public` and `portway` as the
    /// Supabase CLI applies it, for this one. The setting `portway.origin`
    /// is a session's, not a schema's.
    pub(super) fn adapt(&self, sql: &str) -> String {
        let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.schema.is_default() {
            return sql.to_owned();
        }
        let mut adapted = String::with_capacity(sql.len());
        let mut rest = sql;
        while let Some(start) = rest.find(part_of_word) {
            let (before, from_word) = rest.split_at(start);
            let end = from_word.find(|c| !part_of_word(c));
            let (word, after) = from_word.split_at(end.unwrap_or(from_word.len()));
            adapted += before;
            match word {
                "public" if after.starts_with('.') => {
                    adapted += &format!("\"{}\"", self.schema());
                }
                "portway" if !after.starts_with(".origin") => adapted += &self.internal,
                word => adapted += word,
            }
            rest = after;
        }
        adapted + rest
    }
}

/// How the name of a companion ends.
pub(super) const COMPANION: &str = "_internal";

pub(super) fn companion(schema: &str) -> String {
    format!("{schema}{COMPANION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_migrations_are_adapted_to_another_schema() {
        let namespace = |text: &str| Namespace::new(&DatabaseSchema::parse(text).unwrap());
        let sql = "alter table public.mcp x; perform portway.say('a'); pg_notify('portway', \
                   current_setting('portway.origin')); trigger portway_came; from public;";
        assert_eq!(namespace("public").adapt(sql), sql);
        assert_eq!(
            namespace("user").adapt(sql),
            "alter table \"user\".mcp x; perform user_internal.say('a'); \
             pg_notify('user_internal', current_setting('portway.origin')); \
             trigger portway_came; from public;"
        );
    }
}
