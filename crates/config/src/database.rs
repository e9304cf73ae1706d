//! The database schema that holds the tables (SPEC F1).

/// The longest name whose companion schema still fits PostgreSQL's 63 bytes.
const LONGEST: usize = 48;

/// A schema's name: lower case, so that it means the same quoted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseSchema(String);

impl Default for DatabaseSchema {
    fn default() -> DatabaseSchema {
        DatabaseSchema("public".to_owned())
    }
}

impl DatabaseSchema {
    pub fn parse(text: &str) -> Result<DatabaseSchema, String> {
        let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !first || !text.chars().all(rest) || text.len() > LONGEST {
            return Err(format!(
                "must be the name of a schema: 1 to {LONGEST} characters a-z, 0-9 and _, \
                 the first not a digit"
            ));
        }
        if text.starts_with("pg_") || text == "information_schema" {
            return Err("is a schema of PostgreSQL itself; choose another".into());
        }
        Ok(DatabaseSchema(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_default(&self) -> bool {
        self.0 == "public"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_a_schema_is_a_plain_identifier() {
        for good in ["public", "portway", "_x1", "user", &"a".repeat(48)] {
            assert_eq!(DatabaseSchema::parse(good).unwrap().as_str(), good);
        }
        let bad = [
            "",
            "1a",
            "Public",
            "a-b",
            "a.b",
            "a\"; drop table x; --",
            "pg_temp",
            "information_schema",
            "ä",
            &"a".repeat(49),
        ];
        for bad in bad {
            assert!(DatabaseSchema::parse(bad).is_err(), "{bad:?}");
        }
    }
}
