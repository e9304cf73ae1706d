//! Questions to legacy clients, as their revision spells them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ability::{Abilities, is_url};
use super::listening::SessionFeeds;
use super::parked::PATIENCE;
use super::session::{ClientQuestion, Session};
use fleet::Fleet;
use upstream::ServerRequest;
use wire::era::legacy_at_least;
use wire::object::{member, set_member};
use wire::{Era, RpcError, code};

/// Passes the questions of servers outside any call on from now on. A server
/// that serves one legacy session alone asks that session's client, on the
/// session's own stream; the questions of any other server are refused, because
/// the client is unknown.
pub(super) fn attend(fleet: &Fleet, feeds: &SessionFeeds) {
    let feeds = feeds.clone();
    fleet.attend(Box::new(move |session: Arc<str>, request| {
        // Dropping the question refuses it: a client without an open stream
        // cannot receive it.
        if let Some(session) = feeds.session(&session)
            && session.own().is_read()
        {
            ask(&session, request);
        }
    }));
}

fn ask(session: &Arc<Session>, request: ServerRequest) {
    let (method, params) = (&request.method, request.params.as_deref());
    let abilities = Abilities::read(&session.capabilities);
    let posed = pose(session, abilities, method, params, Era::Legacy);
    let Some(ClientQuestion {
        message, answer, ..
    }) = posed
    else {
        return;
    };
    session.send(message);
    let ended = session.ended().clone();
    tokio::spawn(async move {
        let answer = tokio::select! {
            answer = tokio::time::timeout(PATIENCE, answer) => answer,
            () = ended.cancelled() => return,
        };
        let silent = || RpcError::new(code::INTERNAL, "the client did not answer");
        match answer {
            Ok(Ok(answer)) => request.answer(answer),
            _ => request.answer(Err(silent())),
        }
    });
}

/// Registers a server's question to a legacy client; `None` if the client does
/// not support it.
pub(super) fn pose(
    session: &Session,
    abilities: Abilities,
    method: &str,
    params: Option<&RawValue>,
    server: Era,
) -> Option<ClientQuestion> {
    if abilities.lacks(method, params).is_some() {
        return None;
    }
    let params = for_legacy(method, params, session.version, server)?;
    Some(session.ask(method, params.as_deref()))
}

/// The params of a question for a client of `version`; `None` if the client's
/// revision cannot express it.
fn for_legacy<'a>(
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
