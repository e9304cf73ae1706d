//! Small objects written member by member, raw values as they are.

use serde_json::value::RawValue;

use wire::object;

#[derive(Default)]
pub(super) struct ObjectWriter(String);

impl ObjectWriter {
    pub(crate) fn new() -> ObjectWriter {
        ObjectWriter::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `json` must be one JSON value.
    pub(crate) fn json(&mut self, name: &str, json: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.json(name, &quoted(text));
    }

    pub(crate) fn object(&mut self, name: &str, members: &ObjectWriter) {
        self.json(name, &format!("{{{}}}", members.0));
    }

    pub(crate) fn done(self) -> Box<RawValue> {
        RawValue::from_string(format!("{{{}}}", self.0))
            .unwrap_or_else(|_| object::empty().to_owned())
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
