//! The questions of a legacy server as a modern client gets them: under keys
//! that describe them, and matched with answers that came with the request.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ability::is_url;
use super::members::ObjectWriter;
use upstream::{Notification, ServerRequest};
use wire::object::{each_member, member, remove_members, text};
use wire::{RpcError, code};

/// Open questions by their keys.
pub(super) type Questions = IndexMap<String, ServerRequest>;

const KEY: usize = 64;

/// A key for a question, unique within this call.
pub(super) fn key(request: &ServerRequest, asked: &Questions, count: u32) -> String {
    let params = request.params.as_deref();
    let name = match request.method.as_str() {
        "elicitation/create" if is_url(params) => "user_page".to_owned(),
        "elicitation/create" => format!("user_{}", first_field(params).unwrap_or("answer".into())),
        "sampling/createMessage" => "model_answer".to_owned(),
        "roots/list" => "client_roots".to_owned(),
        _ => "answer".to_owned(),
    };
    if asked.contains_key(&name) {
        return format!("{name}_{count}");
    }
    name
}

/// The first field of a form, in the characters that a key may have.
fn first_field(params: Option<&RawValue>) -> Option<String> {
    let fields = member(member(params?, "requestedSchema")?, "properties")?;
    let mut first = None;
    each_member(fields, |name, _| {
        first.get_or_insert_with(|| name.decoded().into_owned());
    });
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = first?.chars().filter(fits).take(KEY).collect();
    (!name.is_empty()).then_some(name)
}

/// All of them as `inputRequests`.
pub(super) fn input_requests(asked: &Questions) -> Box<RawValue> {
    let mut all = ObjectWriter::new();
    for (key, request) in asked {
        let params = request.params.as_deref().map(|params| {
            // Modern clients do not know these members.
            remove_members(params, &["_meta", "task", "elicitationId"])
        });
        let params = params.as_deref().map_or("{}", RawValue::get);
        let mut one = ObjectWriter::new();
        one.text("method", &request.method);
        one.json("params", params);
        all.object(key, &one);
    }
    all.done()
}

/// Whether a server cancels a question.
pub(super) fn withdraws(note: &Notification) -> bool {
    note.method == "notifications/cancelled"
}

/// Whether the cancelled question has this id.
pub(super) fn is_about(note: &Notification, id: &RawValue) -> bool {
    let given_up = note
        .params
        .as_deref()
        .and_then(|all| member(all, "requestId"));
    given_up.is_some_and(|given_up| given_up.get() == id.get())
}

/// The pages that a server of 2025-11-25 wants opened first; `None` where it
/// names none.
pub(super) fn pages(error: &RpcError) -> Option<Vec<&RawValue>> {
    let pages = member(error.data.as_deref()?, "elicitations")?;
    let pages: Vec<&RawValue> = serde_json::from_str(pages.get()).ok()?;
    (error.code == code::URL_ELICITATION && !pages.is_empty()).then_some(pages)
}

#[derive(Deserialize)]
struct Form<'a> {
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
    #[serde(default)]
    required: Vec<String>,
}

/// Whether a result that came before the question answers it. The result's key
/// is no help: the question had none yet.
pub(super) fn answers(result: &RawValue, request: &ServerRequest) -> bool {
    let has = |name| member(result, name).is_some();
    match request.method.as_str() {
        "elicitation/create" => match member(result, "action").and_then(text).as_deref() {
            Some("accept") => accepted(result, request.params.as_deref()),
            Some("decline" | "cancel") => true,
            _ => false,
        },
        "sampling/createMessage" => has("role") && has("content") && has("model"),
        "roots/list" => has("roots"),
        _ => false,
    }
}

fn accepted(result: &RawValue, params: Option<&RawValue>) -> bool {
    let schema = params.and_then(|params| member(params, "requestedSchema"));
    let Some(schema) = schema else {
        return is_url(params);
    };
    let (Ok(form), Some(content)) = (
        serde_json::from_str::<Form<'_>>(schema.get()),
        member(result, "content"),
    ) else {
        return false;
    };
    let known = |name: &str| {
        let properties = form.properties;
        properties.is_some_and(|properties| member(properties, name).is_some())
    };
    let mut fits = true;
    each_member(content, |name, _| fits &= known(&name.decoded()));
    fits && form
        .required
        .iter()
        .all(|name| member(content, name).is_some())
}
