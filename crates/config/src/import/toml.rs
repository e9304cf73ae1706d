//! TOML as JSON: the same values, read by the same code.

use serde_json::{Map, Value};
use toml_edit::{Document, Item, TableLike};

use super::super::problem::Problem;
use super::super::tree::LineIndex;

/// The parser's message shows the line it means, which may hold a secret: it is
/// left out.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, Problem> {
    let document = Document::parse(text).map_err(|error| {
        let problem = Problem::new("", "not TOML");
        match error.span() {
            Some(span) => problem.at(LineIndex::new(text).of(span.start.min(text.len()))),
            None => problem,
        }
    })?;
    Ok(object(document.as_table()))
}

fn json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return object(table).into();
    }
    match item {
        Item::Value(value) => plain(value),
        Item::ArrayOfTables(list) => list.iter().map(object).map(Value::from).collect(),
        _ => Value::Null,
    }
}

fn object<T: TableLike + ?Sized>(table: &T) -> Map<String, Value> {
    let member = |(key, item): (&str, &Item)| (key.to_owned(), json(item));
    table.iter().map(member).collect()
}

fn plain(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(truth) => (*truth.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(list) => list.iter().map(plain).collect(),
        Toml::InlineTable(table) => object(table).into(),
    }
}
