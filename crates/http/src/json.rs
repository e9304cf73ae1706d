//! Parses a request's JSON: bounded, and with errors that name the position.

use std::error::Error;
use std::io;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use http_body_util::{BodyExt, LengthLimitError};
use serde::de::DeserializeOwned;

use super::error::{ApiError, Code};

/// The limit on the nesting of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 64;

/// A handler's argument: the request's body as `T`, or an error that names the
/// wrong field or position.
#[derive(Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Json<T>, ApiError> {
        let bytes = read_body(request.into_body()).await?;
        parse(&bytes).map(Json)
    }
}

/// A handler's argument: the bytes of the body, which the guard has bounded.
pub(super) struct JsonBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<JsonBody, ApiError> {
        read_body(request.into_body()).await.map(JsonBody)
    }
}

/// Reads the whole body. The guard has bounded it.
pub(crate) async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>>,
{
    match body.collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(unreadable(&*error.into())),
    }
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    match bytes.trim_ascii_start().first() {
        None => return Err(ApiError::bad_request("the request needs a JSON body")),
        // serde would accept an array for a struct, field by field.
        Some(b'[') => return Err(ApiError::invalid_field("body", "must be an object")),
        Some(_) => {}
    }
    check_depth(bytes)?;
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        describe(field, error.inner())
    })?;
    reader.end().map_err(|error| describe(".".into(), &error))?;
    Ok(value)
}

pub(crate) fn check_depth(body: &[u8]) -> Result<(), ApiError> {
    if depth_within(body, MAX_DEPTH) {
        return Ok(());
    }
    let text = format!("the body is nested more than {MAX_DEPTH} levels deep");
    Err(ApiError::bad_request(text))
}

/// Whether brackets outside strings nest at most `limit` deep. A scan, so that
/// a deeply nested body is refused before anything is built from it.
pub(crate) fn depth_within(bytes: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in bytes {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > limit {
                    return false;
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

fn describe(field: String, error: &serde_json::Error) -> ApiError {
    if !error.is_data() {
        return ApiError::bad_request(format!(
            "the body is not JSON: {}",
            without_values(&error.to_string())
        ));
    }
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = without_values(text.strip_suffix(&place).unwrap_or(&text));
    // The text names a missing or unknown field, the path does not.
    let named = text.split('`').nth(1).filter(|_| {
        ["missing field", "unknown field", "duplicate field"]
            .iter()
            .any(|m| text.starts_with(m))
    });
    let field = match (named, field.as_str()) {
        (Some(name), ".") => name.to_owned(),
        (Some(name), path) if path == name || path.ends_with(&format!(".{name}")) => {
            path.to_owned()
        }
        (Some(name), path) => format!("{path}.{name}"),
        (None, ".") => "body".to_owned(),
        (None, path) => path.to_owned(),
    };
    ApiError::invalid_field(&field, message)
}

/// Removes the value that serde quotes, which may be a password, and the names
/// of our types, which mean nothing to the client.
fn without_values(text: &str) -> String {
    let Some((found, expected)) = text.rsplit_once(", expected ") else {
        return text.to_owned();
    };
    let is_ours = expected.starts_with("struct ");
    let expected = if is_ours { "an object" } else { expected };
    if found.starts_with("unknown variant ") {
        return format!("is not one of the known values, expected {expected}");
    }
    let wrong = found
        .strip_prefix("invalid type: ")
        .or(found.strip_prefix("invalid value: "));
    match wrong.and_then(|wrong| wrong.split(' ').next()) {
        Some(kind) => format!("expected {expected}, not {kind}"),
        None => text.to_owned(),
    }
}

fn unreadable(error: &(dyn Error + 'static)) -> ApiError {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return too_large();
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::TimedOut => {
                    ApiError::new(Code::RequestTimeout, "the body took too long to arrive")
                }
                io::ErrorKind::InvalidData => {
                    ApiError::bad_request("the chunked body is malformed")
                }
                _ => ApiError::bad_request("the body ended early"),
            };
        }
        next = error.source();
    }
    ApiError::bad_request("the body ended early")
}

pub(super) fn too_large() -> ApiError {
    ApiError::new(
        Code::PayloadTooLarge,
        "the body is too large (PORTWAY_MAX_BODY)",
    )
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ServerBody {
        #[expect(dead_code, reason = "only parsed")]
        name: String,
        #[expect(dead_code, reason = "only parsed")]
        #[serde(default)]
        env: std::collections::HashMap<String, String>,
        #[expect(dead_code, reason = "only parsed")]
        #[serde(default)]
        kind: TransportBody,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum TransportBody {
        #[default]
        Local,
    }

    fn fails(body: &str) -> (u16, String) {
        let error = parse::<ServerBody>(body.as_bytes()).unwrap_err();
        (error.code().status().as_u16(), error.message().to_owned())
    }

    #[test]
    fn g3_a_bad_body_names_the_field() {
        let table = [
            (r#"{}"#, "name: missing field `name`"),
            (r#"{"name":5}"#, "name: expected a string, not integer"),
            (
                r#"{"name":"a","env":{"K":["hunter2"]}}"#,
                "env.K: expected a string, not sequence",
            ),
            (
                r#"{"name":"a","env":"hunter2, expected x"}"#,
                "env: expected a map, not string",
            ),
            (r#"["a"]"#, "body: must be an object"),
            (r#"null"#, "body: expected an object, not null"),
        ];
        for (body, message) in table {
            let (status, text) = fails(body);
            assert_eq!(status, 422, "{body}");
            assert!(text.starts_with(message), "{body}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
        let (_, text) = fails(r#"{"name":"a","colour":1}"#);
        assert!(text.starts_with("colour: unknown field"), "{text}");
        let (_, text) = fails(r#"{"name":"a","kind":"hunter2"}"#);
        assert!(
            text.starts_with("kind: is not one of") && !text.contains("hunter2"),
            "{text}"
        );
        let (_, text) = fails(r#"{"name":"a","name":"b"}"#);
        assert!(text.contains("duplicate field `name`"), "{text}");
    }

    #[test]
    fn g3_what_is_not_json_is_400_with_the_position() {
        for body in ["{", "{\"name\":\"a\"} x", "nope", "{\"name\":\"\u{1}\"}"] {
            let (status, text) = fails(body);
            assert_eq!(status, 400, "{body}");
            assert!(text.contains("line 1 column"), "{text}");
        }
        assert_eq!(fails("  ").1, "the request needs a JSON body");
    }

    #[test]
    fn t_f1_depth_is_bounded_before_parsing() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(depth_within(nested(64).as_bytes(), 64));
        assert!(!depth_within(nested(65).as_bytes(), 64));
        assert!(depth_within(
            format!(r#"["{}\"["]"#, "[".repeat(99)).as_bytes(),
            2
        ));
        let (status, text) = fails(&"{\"a\":".repeat(100_000));
        assert_eq!(status, 400);
        assert!(text.contains("64 levels"), "{text}");
    }
}
