//! The schemas that hold Portway's tables, functions and migrations.

use config::DatabaseSchema;

/// With the tables in `public`, functions and migrations are in `portway`; with
/// tables elsewhere they are in a companion of that schema, so that two
/// Portways share a database without sharing anything in it.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    schema: DatabaseSchema,
    /// A plain identifier that equals no keyword, so it needs no quotes.
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

    /// The schema of the functions and the ledger of migrations.
    pub(super) fn internal(&self) -> &str {
        &self.internal
    }

    pub(super) fn ledger(&self) -> String {
        format!("{}.migrations", self.internal)
    }

    /// The channel of the notifications.
    pub(super) fn channel(&self) -> &str {
        &self.internal
    }

    /// A statement after which plain table names mean our tables, and no
    /// temporary table takes precedence.
    pub(super) fn search_path(&self) -> String {
        format!("set search_path = \"{}\", pg_temp", self.schema())
    }

    /// Adapts a migration to this namespace. Migrations are written for
    /// `public` and `portway`, as the Supabase CLI applies them. The setting
    /// `portway.origin` belongs to a session, not to a schema.
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

/// The suffix of a companion's name.
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
