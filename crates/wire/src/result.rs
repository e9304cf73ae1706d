//! Results translated between the eras. Only members that the other era
//! cannot read change; the rest passes unchanged.

mod content;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::message::{RpcError, code};
use super::meta::SERVER_INFO;
use super::method;
use super::object::{
    MAX_MEMBERS, Members, Object, find_members, is_object, map_elements, member, parse_part, pick,
    quote, raw, remove_members, set_member, text, unquote,
};
use super::schema::{mentions, needs_wrapping, wrap_output_schema};

/// A result that is not an object, or one too wide to edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result is not an object, or has too many members")]
pub struct BadResult;

/// The `resultType` of a modern result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// Also when absent, as legacy servers leave it.
    Complete,
    InputRequired,
    /// Only with the Tasks extension.
    Task,
    /// An invalid response.
    Unknown,
}

pub fn result_type(result: &str) -> ResultType {
    let [kind] = find_members(result, ["resultType"]);
    match kind.map(unquote) {
        None => ResultType::Complete,
        Some(Some(name)) => match &*name {
            "complete" => ResultType::Complete,
            "input_required" => ResultType::InputRequired,
            "task" => ResultType::Task,
            _ => ResultType::Unknown,
        },
        Some(None) => ResultType::Unknown,
    }
}

/// The time for which a result may be reused, and whether callers share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    pub ttl_ms: u64,
    /// Whether callers with other credentials may share it.
    pub public: bool,
}

impl Freshness {
    pub const NONE: Self = Self {
        ttl_ms: 0,
        public: false,
    };

    /// The freshness of a modern result. Absent, negative or malformed values
    /// give no permission to reuse it.
    pub fn read(result: &RawValue) -> Self {
        let [ttl, scope] = pick(result, ["ttlMs", "cacheScope"]);
        Self {
            ttl_ms: ttl.and_then(|raw| raw.get().parse().ok()).unwrap_or(0),
            public: scope.and_then(text).as_deref() == Some("public"),
        }
    }

    pub fn and(self, other: Self) -> Self {
        Self {
            ttl_ms: self.ttl_ms.min(other.ttl_ms),
            public: self.public && other.public,
        }
    }
}

/// A legacy server's result for a modern client, always marked complete.
/// `result` must be valid JSON.
pub fn to_modern_result(
    method: &str,
    result: &str,
    freshness: Freshness,
    server_info: Option<&RawValue>,
) -> Result<String, BadResult> {
    // Some servers answer null where `{}` is meant.
    let mut object = if result == "null" {
        Object::new()
    } else {
        Object::read_json(result).ok_or(BadResult)?
    };
    object.set_text("resultType", "complete");
    if method::is_cacheable(method) {
        object.set_number("ttlMs", freshness.ttl_ms);
        let scope = if freshness.public {
            "public"
        } else {
            "private"
        };
        object.set_text("cacheScope", scope);
    }
    match method {
        "tools/call" if !object.contains("content") => object.set_json("content", "[]"),
        "tools/list" => {
            map_tools(&mut object, tool_to_modern);
        }
        _ => {}
    }
    if let Some(info) = server_info {
        let mut meta = object.open("_meta").flatten().unwrap_or_default();
        meta.set(SERVER_INFO, info);
        object.set_object("_meta", meta);
    }
    Ok(object.to_json())
}

/// A modern server's complete result for a legacy client that negotiated
/// `version`. If `wrapped`, the tool's output schema was wrapped, so its value
/// must be wrapped too, object or not. `result` must be valid JSON.
pub fn to_legacy_result<'a>(
    method: &str,
    result: &'a str,
    version: &str,
    wrapped: bool,
) -> Result<Cow<'a, str>, BadResult> {
    if stays_in_legacy(method, result, version, wrapped) {
        return Ok(Cow::Borrowed(result));
    }
    let mut object = Object::read_json(result).ok_or(BadResult)?;
    let cacheable = method::is_cacheable(method);
    let mut changed = object.retain(|name| match name {
        "resultType" => false,
        "ttlMs" | "cacheScope" => !cacheable,
        _ => true,
    });
    if let Some(mut meta) = object.open("_meta").flatten()
        && meta.remove(SERVER_INFO)
    {
        changed = true;
        if meta.is_empty() {
            object.remove("_meta");
        } else {
            object.set_object("_meta", meta);
        }
    }
    match method {
        "tools/list" => changed |= map_tools(&mut object, tool_to_legacy),
        "tools/call" => changed |= content::call_to_legacy(&mut object, version, wrapped),
        "prompts/get" => changed |= content::prompt_to_legacy(&mut object, version),
        _ => {}
    }
    Ok(if changed {
        Cow::Owned(object.to_json())
    } else {
        Cow::Borrowed(result)
    })
}

/// Whether a result is one of a legacy server, as most are for a legacy client.
/// Cheap and one-sided: false means that it has to be looked at.
fn stays_in_legacy(method: &str, result: &str, version: &str, wrapped: bool) -> bool {
    if !matches!(
        method,
        "tools/call" | "resources/read" | "completion/complete"
    ) {
        return false;
    }
    let (mut members, mut contents) = (0, 0);
    let plain = Members::of(result).is_some_and(|mut all| {
        all.all(|(name, value)| {
            members += 1;
            match &*name.decoded() {
                "content" => contents += 1,
                "resultType" | "ttlMs" | "cacheScope" | "_meta" => return false,
                "structuredContent" => return value.starts_with('{') && !wrapped,
                _ => {}
            }
            members <= MAX_MEMBERS
        })
    });
    let knows_content = method != "tools/call" || (contents == 1 && content::knows_all(version));
    plain && knows_content
}

/// Returns true if any tool changed.
fn map_tools(object: &mut Object<'_>, map: impl Fn(&RawValue) -> Cow<'_, RawValue>) -> bool {
    let mapped = object.get("tools").map(|tools| {
        map_elements(tools, |tool| match parse_part(tool).map(&map) {
            Some(Cow::Owned(tool)) => Cow::Owned(Box::<str>::from(tool).into()),
            _ => Cow::Borrowed(tool),
        })
    });
    match mapped {
        Some(Cow::Owned(tools)) => object.set_json("tools", tools),
        _ => return false,
    }
    true
}

/// A tool as modern clients know it: `execution` was 2025-11-25 only.
pub fn tool_to_modern(tool: &RawValue) -> Cow<'_, RawValue> {
    if !mentions(tool.get(), "execution") {
        return Cow::Borrowed(tool);
    }
    remove_members(tool, &["execution"])
}

/// A tool as legacy clients know it: with an output schema of an object.
pub fn tool_to_legacy(tool: &RawValue) -> Cow<'_, RawValue> {
    if !mentions(tool.get(), "outputSchema") {
        return Cow::Borrowed(tool);
    }
    match member(tool, "outputSchema") {
        Some(schema) if needs_wrapping(schema) => {
            let wrapped = wrap_output_schema(schema);
            Cow::Owned(set_member(tool, "outputSchema", &wrapped))
        }
        _ => Cow::Borrowed(tool),
    }
}

/// A legacy server's error for a modern client, which must not see codes of the
/// legacy era. `uri` is the requested resource, if any.
/// [`code::URL_ELICITATION`] is not an error there but a request for input,
/// which the bridge handles.
pub fn error_to_modern(error: RpcError, uri: Option<&str>) -> RpcError {
    if error.code != code::RESOURCE_NOT_FOUND {
        return error;
    }
    let named = |data: &RawValue| member(data, "uri").is_some();
    let data = match (error.data, uri.map(|uri| raw(quote(uri)))) {
        (Some(data), Some(uri)) if is_object(&data) && !named(&data) => {
            Some(set_member(&data, "uri", &uri))
        }
        (Some(data), None) => Some(data),
        (Some(data), Some(_)) if named(&data) => Some(data),
        (_, uri) => uri.map(|uri| raw(format!(r#"{{"uri":{}}}"#, uri.get()))),
    };
    RpcError {
        code: code::INVALID_PARAMS,
        message: error.message,
        data,
    }
}

/// A modern server's error for a legacy client. Codes about the hop between
/// Portway and the server mean nothing to that client.
pub fn error_to_legacy(method: &str, error: RpcError) -> RpcError {
    let data = |name| error.data.as_deref().and_then(|data| member(data, name));
    match error.code {
        code::INVALID_PARAMS if method == "resources/read" && data("uri").is_some() => RpcError {
            code: code::RESOURCE_NOT_FOUND,
            ..error
        },
        code::MISSING_CAPABILITY => {
            let needed = data("requiredCapabilities").filter(|raw| is_object(raw));
            let needed = needed.map_or("{}", RawValue::get);
            let message = format!("the server needs client capabilities {needed}: {error}");
            RpcError::new(code::INTERNAL, message)
        }
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION => {
            RpcError::new(code::INTERNAL, error.message)
        }
        _ => error,
    }
}
