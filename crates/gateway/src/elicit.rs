//! Questions to legacy clients as their revision spells them.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ability::is_url;
use wire::Era;
use wire::era::legacy_at_least;
use wire::object::{member, set_member};

/// The params of a question for a client of `version`; `None` if the client's
/// revision cannot express it.
pub(super) fn for_legacy<'a>(
    method: &str,
    params: Option<&'a RawValue>,
    version: &str,
    server: Era,
) -> Option<Option<Cow<'a, RawValue>>> {
    let (Some(params), "elicitation/create") = (params, method) else {
        return Some(params.map(Cow::Borrowed));
    };
    if legacy_at_least(version, "2025-11-25") {
        // Modern servers do not number their pages; this revision requires it.
        if server == Era::Modern
            && is_url(Some(params))
            && member(params, "elicitationId").is_none()
        {
            let id = format!("\"{}\"", uuid::Uuid::new_v4());
            let id = RawValue::from_string(id).ok()?;
            return Some(Some(Cow::Owned(set_member(params, "elicitationId", &id))));
        }
        return Some(Some(Cow::Borrowed(params)));
    }
    if is_url(Some(params)) {
        return None;
    }
    // 2025-06-18: one mode only, and choices as `enum` with `enumNames`.
    let mut question: Map<String, Value> = serde_json::from_str(params.get()).ok()?;
    question.shift_remove("mode");
    let fields = question
        .get_mut("requestedSchema")
        .and_then(|schema| schema.get_mut("properties"))
        .and_then(Value::as_object_mut);
    for (_, field) in fields.into_iter().flatten() {
        let field = field.as_object_mut()?;
        if field.get("type").is_some_and(|kind| kind == "array") {
            return None;
        }
        plain_choices(field);
        if field.get("type").is_none_or(|kind| kind != "boolean") {
            field.shift_remove("default");
        }
    }
    let plain = serde_json::value::to_raw_value(&question).ok()?;
    Some(Some(Cow::Owned(plain)))
}

fn plain_choices(field: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = field.shift_remove("oneOf") else {
        return;
    };
    let part = |name: &str| -> Vec<Value> {
        let of = |choice: &Value| choice.get(name).cloned().unwrap_or(Value::Null);
        choices.iter().map(of).collect()
    };
    field.insert("enum".into(), part("const").into());
    field.insert("enumNames".into(), part("title").into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(params: &str, version: &str) -> Option<String> {
        let params = RawValue::from_string(params.into()).unwrap();
        let spelled = for_legacy("elicitation/create", Some(&params), version, Era::Modern);
        spelled.map(|params| params.unwrap().get().to_owned())
    }

    #[test]
    fn i2_titled_choices_become_names_for_2025_06_18() {
        let got = spelled(
            r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]}}}}"#,
            "2025-06-18",
        );
        assert_eq!(
            got.unwrap(),
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"]}}}}"#
        );
        let many = r#"{"message":"m","requestedSchema":{"properties":{"a":{"type":"array"}}}}"#;
        assert_eq!(spelled(many, "2025-06-18"), None);
        assert_eq!(
            spelled(r#"{"mode":"url","url":"https://x"}"#, "2025-06-18"),
            None
        );
    }

    #[test]
    fn i2_pages_get_the_number_that_2025_11_25_wants() {
        let got = spelled(r#"{"mode":"url","url":"https://x"}"#, "2025-11-25").unwrap();
        assert!(got.contains("elicitationId"), "{got}");
        let form = r#"{"mode":"form","message":"m"}"#;
        assert_eq!(spelled(form, "2025-11-25").unwrap(), form);
    }
}
