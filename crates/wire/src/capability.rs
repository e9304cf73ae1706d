//! Client capabilities, translated between the eras.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::method::TASKS;
use super::object::Object;
use super::schema::mentions;

/// Client capabilities without the Tasks extension, which Portway does not
/// relay: a server that sees it may answer with a task.
pub fn forwardable(capabilities: &RawValue) -> Cow<'_, RawValue> {
    if mentions(capabilities.get(), TASKS)
        && let Some(mut object) = Object::read(capabilities)
        && drop_tasks(&mut object)
    {
        return Cow::Owned(object.into_raw());
    }
    Cow::Borrowed(capabilities)
}

fn drop_tasks(capabilities: &mut Object<'_>) -> bool {
    let extensions = capabilities.open("extensions").flatten();
    let Some(mut extensions) = extensions else {
        return false;
    };
    let had = extensions.remove(TASKS);
    if had {
        capabilities.set_object("extensions", extensions);
    }
    had
}

/// A legacy session's capabilities for the envelope of a modern request.
/// Modern has no core tasks and no change of roots, and spells form
/// elicitation out; unknown capabilities are passed on.
pub fn to_modern(capabilities: &RawValue) -> Cow<'_, RawValue> {
    let Some(mut object) = Object::read(capabilities) else {
        return Cow::Borrowed(capabilities);
    };
    let mut changed = object.remove("tasks") | drop_tasks(&mut object);
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
    fn i2_what_we_do_not_carry_is_not_promised() {
        for (said, told) in [
            ("{}", "{}"),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{"x":1.0}},"roots":{}}"#,
                r#"{"extensions":{"a/b":{"x":1.0}},"roots":{}}"#,
            ),
            (
                r#"{"experimental":{"io.modelcontextprotocol/tasks":{}}}"#,
                r#"{"experimental":{"io.modelcontextprotocol/tasks":{}}}"#,
            ),
        ] {
            let raw = RawValue::from_string(said.to_owned()).unwrap();
            assert_eq!(forwardable(&raw).get(), told);
        }
    }

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
