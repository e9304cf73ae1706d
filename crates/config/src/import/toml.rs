//! TOML as JSON: the same values, read by the same code.

use serde_json::{Map, Value};
use toml_edit::{Item, TableLike};

pub(super) fn json(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return object(table).into();
    }
    match item {
        Item::Value(value) => plain(value),
        Item::ArrayOfTables(list) => list.iter().map(object).map(Value::from).collect(),
        _ => Value::Null,
    }
}

pub(crate) fn object<T: TableLike + ?Sized>(table: &T) -> Map<String, Value> {
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
