//! What a client says it can do, in the other era's words.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::object::Object;

/// A legacy session's capabilities for the envelope of a modern request.
/// Modern has no core tasks and no change of roots, and spells form
/// elicitation out; what we do not know is passed on.
pub fn to_modern(capabilities: &RawValue) -> Cow<'_, RawValue> {
    let Some(mut object) = Object::read(capabilities) else {
        return Cow::Borrowed(capabilities);
    };
    let mut changed = object.remove("tasks");
    if let Some(mut roots) = object.open("roots").flatten()
        && roots.remove("listChanged")
    {
        object.set_object("roots", roots);
        changed = true;
    }
    if object
        .open("elicitation")
        .flatten()
        .is_some_and(|modes| modes.is_empty())
    {
        object.set_json("elicitation", r#"{"form":{}}"#);
        changed = true;
    }
    if changed {
        Cow::Owned(object.into_raw())
    } else {
        Cow::Borrowed(capabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_capabilities_are_translated() {
        for (legacy, modern) in [
            ("{}", "{}"),
            (r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{}}"#),
            (
                r#"{"roots":{"listChanged":true,"x":1}, "y":2}"#,
                r#"{"roots":{"x":1},"y":2}"#,
            ),
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
            (
                r#"{"elicitation":{ "url":{}}}"#,
                r#"{"elicitation":{ "url":{}}}"#,
            ),
            (
                r#"{"tasks":{"list":{}},"sampling":{"tools":{}}}"#,
                r#"{"sampling":{"tools":{}}}"#,
            ),
            (
                r#"{"extensions":{"a/b":{}},"experimental":{}}"#,
                r#"{"extensions":{"a/b":{}},"experimental":{}}"#,
            ),
            ("[]", "[]"),
        ] {
            let raw = RawValue::from_string(legacy.to_owned()).unwrap();
            assert_eq!(to_modern(&raw).get(), modern);
        }
    }
}
