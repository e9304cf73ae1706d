//! `.portway.json`: named filters over tools (SPEC D7), and the servers that
//! users may bind (SPEC E2). A file of Portway alone, since other tools read
//! `.mcp.json` too.
//!
//! Both restrict clients, so an invalid filter is unusable and never allows
//! more than a valid one.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use serde::{Deserialize, Serialize};

use super::check::unknown_field;
use super::fields::{FieldReader, quoted};
use super::globs;
use super::problem::Problem;
use super::tree::{self, LineIndex, repeated};

const FILTERS: &str = "filters";
const DEFAULT: &str = "default";
const USER_SERVERS: &str = "userServers";
const OF_FILE: &[&str] = &["$schema", FILTERS, DEFAULT, USER_SERVERS];
const OF_FILTER: &[&str] = &["allow", "deny", "description"];
const LONGEST_PATTERN: usize = 256;
pub(crate) const MOST_PATTERNS: usize = 1000;

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    pub named: BTreeMap<String, Result<Filter, Vec<Problem>>>,
    /// The filter for requests that name none.
    pub default: Option<String>,
    /// The servers that users may bind: globs over their names. `None` leaves
    /// it to the setting.
    pub user_servers: Option<Vec<String>>,
    /// Problems of no filter in particular.
    pub problems: Vec<Problem>,
    /// Set if the file exists and has never been readable.
    pub unreadable: Option<Problem>,
}

/// Globs over `server:tool`, with `*` and `?`. `deny` wins over `allow`; an
/// empty `allow` allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    #[serde(default)]
    pub allow: Vec<String>,
    #[serde(default)]
    pub deny: Vec<String>,
}

/// The reason that a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("unknown filter {0:?}")]
    Unknown(String),
    #[error("filter {0:?} cannot be used: {1}")]
    Broken(String, String),
    #[error("the filters cannot be read: {0}")]
    Unreadable(Problem),
}

impl Filters {
    /// The named filter, or the default one; `None` if everything is visible.
    pub fn find(&self, name: Option<&str>) -> Result<Option<&Filter>, FilterError> {
        if let Some(problem) = &self.unreadable {
            return Err(FilterError::Unreadable(problem.clone()));
        }
        let Some(name) = name.or(self.default.as_deref()) else {
            return Ok(None);
        };
        match self.named.get(name) {
            Some(Ok(filter)) => Ok(Some(filter)),
            Some(Err(problems)) => {
                let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(FilterError::Broken(name.to_owned(), words.join("; ")))
            }
            None => Err(FilterError::Unknown(name.to_owned())),
        }
    }

    /// The problems of the file and of every filter.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        let of_filters = self
            .named
            .values()
            .filter_map(|filter| filter.as_ref().err());
        self.problems.iter().chain(of_filters.flatten())
    }
}

/// Reads the file. Fails only if it is unusable as a whole.
pub fn parse_filters(text: &str) -> Result<Filters, Problem> {
    let text = tree::without_bom(text);
    let root = &tree::object(text)?;
    let places = LineIndex::new(text);
    let mut fields = FieldReader::new(root, &places);
    if !fields.problems.is_empty() {
        return Err(fields.problems.swap_remove(0));
    }
    unknown(&mut fields, OF_FILE);
    let named = match fields.get(FILTERS) {
        None => BTreeMap::new(),
        Some(Value::Object(section)) => filters(section, &places),
        Some(other) => return Err(places.wrong_kind(FILTERS, "an object of filters", other)),
    };
    let default = match fields.get(DEFAULT) {
        None => None,
        Some(Value::StringLit(name)) => {
            let name = name.value.to_string();
            if !named.contains_key(&name) {
                fields.missing(DEFAULT, &format!("unknown filter {}", quoted(&name)));
            }
            Some(name)
        }
        Some(other) => return Err(places.wrong_kind(DEFAULT, "the name of a filter", other)),
    };
    let user_servers = match fields.get(USER_SERVERS) {
        None => None,
        Some(list @ Value::Array(_)) => {
            let known = fields.problems.len();
            let servers = fields.strings(USER_SERVERS, list);
            for (at, server) in servers.iter().enumerate() {
                if let Err(message) = globs::check_server(server) {
                    fields.problem_at(&format!("{USER_SERVERS}[{at}]"), message, list.start());
                }
            }
            let good = fields.problems.len() == known;
            Some(if good { servers } else { Vec::new() })
        }
        Some(other) => return Err(places.wrong_kind(USER_SERVERS, "a list of servers", other)),
    };
    Ok(Filters {
        named,
        default,
        user_servers,
        problems: fields.problems,
        unreadable: None,
    })
}

fn filters(
    section: &Object<'_>,
    places: &LineIndex<'_>,
) -> BTreeMap<String, Result<Filter, Vec<Problem>>> {
    let twice = repeated(section);
    let mut named = BTreeMap::new();
    for member in &section.properties {
        let name = member.name.as_str();
        let path = format!("{FILTERS}.{name}");
        let again = twice.iter().find(|(other, _)| *other == name);
        let filter = match (&member.value, again) {
            (_, Some((_, offset))) => Err(vec![places.twice(&path, *offset)]),
            (Value::Object(object), None) => filter(object, places, &path),
            (other, None) => Err(vec![places.wrong_kind(&path, "an object", other)]),
        };
        named.insert(name.to_owned(), filter);
    }
    named
}

fn filter(object: &Object<'_>, places: &LineIndex<'_>, path: &str) -> Result<Filter, Vec<Problem>> {
    let mut fields = FieldReader::new(object, places);
    unknown(&mut fields, OF_FILTER);
    let filter = Filter {
        allow: patterns(&mut fields, "allow"),
        deny: patterns(&mut fields, "deny"),
    };
    if fields.problems.is_empty() {
        return Ok(filter);
    }
    let inside = |problem: Problem| Problem {
        field: format!("{path}.{}", problem.field),
        ..problem
    };
    Err(fields.problems.into_iter().map(inside).collect())
}

fn patterns(fields: &mut FieldReader<'_, '_>, field: &str) -> Vec<String> {
    let Some(value) = fields.get(field) else {
        return Vec::new();
    };
    let patterns = fields.strings(field, value);
    if patterns.len() > MOST_PATTERNS {
        let message = format!("has more than {MOST_PATTERNS} patterns");
        fields.problem_at(field, message, value.start());
    }
    for (at, pattern) in patterns.iter().enumerate() {
        if let Err(message) = check(pattern) {
            fields.problem_at(&format!("{field}[{at}]"), message, value.start());
        }
    }
    patterns
}

/// Checks a pattern of a filter.
pub fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(format!("is longer than {LONGEST_PATTERN} bytes"));
    }
    if !pattern.contains([':', '*']) {
        let pattern = quoted(pattern);
        return Err(format!(
            "{pattern} matches nothing; write server:tool, and * for any part of either"
        ));
    }
    Ok(())
}

fn unknown(fields: &mut FieldReader<'_, '_>, known: &[&'static str]) {
    for member in &fields.object.properties {
        let name = member.name.as_str();
        if known.contains(&name) {
            continue;
        }
        let message = unknown_field(name, known.iter().copied());
        fields.problem_at(name, message, member.start());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d7_filters_are_read_with_comments() {
        let filters = parse_filters(
            r#"{
                // for the reviewers
                "filters": {
                    "read": {"allow": ["fs:*", "*:get_?"], "deny": ["*:delete*"]},
                    "all": {},
                },
                "default": "read"
            }"#,
        )
        .unwrap();
        let read = filters.find(Some("read")).unwrap().unwrap();
        assert_eq!(read.allow, ["fs:*", "*:get_?"]);
        assert_eq!(read.deny, ["*:delete*"]);
        assert_eq!(filters.find(None), filters.find(Some("read")));
        assert_eq!(filters.find(Some("all")).unwrap(), Some(&Filter::default()));
        assert_eq!(filters.all_problems().count(), 0);
        let none = parse_filters("{}").unwrap();
        assert_eq!(none.find(None), Ok(None));
        assert_eq!(none.find(Some("x")), Err(FilterError::Unknown("x".into())));
    }

    #[test]
    fn d7_what_is_wrong_with_a_filter_names_the_field_and_opens_nothing() {
        for (text, field) in [
            (r#"{"filters":{"a":{"alow":["x:y"]}}}"#, "filters.a.alow"),
            (r#"{"filters":{"a":{"allow":"x:y"}}}"#, "filters.a.allow"),
            (
                r#"{"filters":{"a":{"allow":["x:y", 1]}}}"#,
                "filters.a.allow[1]",
            ),
            (
                r#"{"filters":{"a":{"deny":["x:y","fs"]}}}"#,
                "filters.a.deny[1]",
            ),
            (
                r#"{"filters":{"a":{"deny":[],"deny":["*"]}}}"#,
                "filters.a.deny",
            ),
            (r#"{"filters":{"a":[]}}"#, "filters.a"),
            (r#"{"filters":{"a":{},"a":{}}}"#, "filters.a"),
        ] {
            let filters = parse_filters(text).unwrap();
            let problem = filters.all_problems().next().unwrap();
            assert_eq!(problem.field, field, "{text}");
            assert!(problem.line.is_some());
            let found = filters.find(Some("a"));
            assert!(matches!(found, Err(FilterError::Broken(..))), "{text}");
        }
        let dangling = parse_filters(r#"{"default":"x"}"#).unwrap();
        assert!(dangling.find(None).is_err());
        assert_eq!(dangling.all_problems().next().unwrap().field, "default");
        let typo = parse_filters(r#"{"filter":{}}"#).unwrap();
        assert!(typo.problems[0].message.contains("\"filters\""));
    }

    #[test]
    fn e2_servers_for_users_are_a_list_and_never_wider_than_written() {
        let servers = |text: &str| parse_filters(text).map(|filters| filters.user_servers);
        assert_eq!(servers("{}"), Ok(None));
        let some = servers(r#"{"userServers":["fs","gh-*"]}"#);
        assert_eq!(some, Ok(Some(vec!["fs".into(), "gh-*".into()])));
        for bad in [r#"["*",1]"#, r#"["*","fs:*"]"#, r#"["*",""]"#] {
            let text = format!(r#"{{"userServers":{bad}}}"#);
            assert_eq!(servers(&text), Ok(Some(Vec::new())), "{bad}");
            assert_eq!(parse_filters(&text).unwrap().problems.len(), 1);
        }
        assert!(servers(r#"{"userServers":"*"}"#).is_err());
    }

    #[test]
    fn d7_a_file_that_says_nothing_is_an_error() {
        for text in [
            "",
            "[]",
            "{",
            r#"{"filters":[]}"#,
            r#"{"default":1}"#,
            r#"{"default":"a","default":"b"}"#,
        ] {
            assert!(parse_filters(text).is_err(), "{text}");
        }
    }
}
