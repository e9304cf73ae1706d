//! The one shape of an error response (SPEC G3):
//! `{"error":{"code":"NOT_FOUND","message":"…","details":…}}`.
//!
//! The client's message and the log's cause are different fields: a cause never
//! leaves the process.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

/// The kind of an error; scripts branch on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    Conflict,
    QuotaExceeded,
    PayloadTooLarge,
    UriTooLong,
    UnsupportedMediaType,
    ValidationError,
    TooManyRequests,
    HeadersTooLarge,
    Internal,
    BadGateway,
    Unavailable,
    Timeout,
    StorageFull,
}

impl Code {
    pub fn status(self) -> StatusCode {
        match self {
            Code::BadRequest => StatusCode::BAD_REQUEST,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::Forbidden => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Code::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Code::Conflict | Code::QuotaExceeded => StatusCode::CONFLICT,
            Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::UriTooLong => StatusCode::URI_TOO_LONG,
            Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::ValidationError => StatusCode::UNPROCESSABLE_ENTITY,
            Code::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Code::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Code::BadGateway => StatusCode::BAD_GATEWAY,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// One invalid field: an item of `details`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

impl FieldProblem {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> FieldProblem {
        FieldProblem {
            field: field.into(),
            message: message.into(),
        }
    }
}

#[derive(Debug)]
pub struct ApiError {
    code: Code,
    message: Cow<'static, str>,
    details: Option<Value>,
    cause: Option<ErrorCause>,
}

/// The cause of an error, for the log alone. The response's extensions carry it
/// to the guard, which logs it once, with the request it belongs to.
#[derive(Clone, Debug)]
pub(super) struct ErrorCause(Arc<str>);

impl ErrorCause {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

type ErrorText = Cow<'static, str>;

impl ApiError {
    pub fn new(code: Code, message: impl Into<ErrorText>) -> ApiError {
        ApiError {
            code,
            message: message.into(),
            details: None,
            cause: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::BadRequest, message)
    }

    pub(crate) fn unauthorized(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::Unauthorized, message)
    }

    pub fn forbidden(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::Forbidden, message)
    }

    pub(crate) fn not_found(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::NotFound, message)
    }

    pub fn conflict(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::Conflict, message)
    }

    /// 422, with each wrong field in `details` and the first one in the message.
    pub(crate) fn validation(problems: Vec<FieldProblem>) -> ApiError {
        let message = match problems.as_slice() {
            [] => "the request is not valid".to_owned(),
            [FieldProblem { field, message }] => format!("{field}: {message}"),
            [FieldProblem { field, message }, rest @ ..] => {
                format!("{field}: {message} (and {} more)", rest.len())
            }
        };
        ApiError::new(Code::ValidationError, message).with_details(json!(problems))
    }

    /// 422 for one field.
    pub(crate) fn invalid_field(field: &str, message: impl Into<String>) -> ApiError {
        ApiError::validation(vec![FieldProblem::new(field, message)])
    }

    pub fn unavailable(message: impl Into<ErrorText>) -> ApiError {
        ApiError::new(Code::Unavailable, message)
    }

    /// 500. The client learns nothing more; `cause` goes to the log.
    pub fn internal(cause: impl std::fmt::Display) -> ApiError {
        ApiError::new(Code::Internal, "internal error in Portway; see its log").with_cause(cause)
    }

    /// Names the field of the error in `details`, as [`ApiError::validation`]
    /// does: clients need not search the message.
    pub(crate) fn with_field(self, field: &str) -> ApiError {
        let problem = FieldProblem::new(field, &*self.message);
        self.with_details(json!([problem]))
    }

    pub(crate) fn with_details(mut self, details: Value) -> ApiError {
        self.details = Some(details);
        self
    }

    /// The cause for the log; never part of the response.
    pub(crate) fn with_cause(mut self, cause: impl std::fmt::Display) -> ApiError {
        self.cause = Some(ErrorCause(cause.to_string().into()));
        self
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(details) = self.details {
            error["details"] = details;
        }
        let mut response = (self.code.status(), Json(json!({"error": error}))).into_response();
        let extra = match self.code {
            Code::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Code::Unavailable => Some((header::RETRY_AFTER, "1")),
            Code::TooManyRequests => Some((header::RETRY_AFTER, "3")),
            // The rest of the request is not worth reading.
            Code::PayloadTooLarge | Code::RequestTimeout => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(cause);
        }
        response
    }
}

/// Runs work that blocks the thread, such as reading a file.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(ApiError::internal)
}

pub(super) fn nothing_there() -> ApiError {
    ApiError::not_found("there is nothing at this path")
}

pub(super) async fn no_such_method(method: http::Method) -> ApiError {
    ApiError::new(
        Code::MethodNotAllowed,
        format!("{method} is not possible at this path"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body_of(error: ApiError) -> (StatusCode, Value) {
        let response = error.into_response();
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn g3_the_answer_has_code_message_and_details_but_no_cause() {
        let error = ApiError::conflict("a server named `a` exists")
            .with_details(serde_json::json!({"name": "a"}))
            .with_cause("constraint server_name_key");
        let (status, body) = body_of(error).await;
        assert_eq!(status, 409);
        assert_eq!(
            body,
            serde_json::json!({"error": {
                "code": "CONFLICT",
                "message": "a server named `a` exists",
                "details": {"name": "a"},
            }})
        );
    }

    #[tokio::test]
    async fn g3_a_validation_error_lists_the_fields() {
        let problems = vec![
            FieldProblem::new("name", "must not be empty"),
            FieldProblem::new("url", "is no URL"),
        ];
        let (status, body) = body_of(ApiError::validation(problems)).await;
        assert_eq!(status, 422);
        assert_eq!(body["error"]["code"], "VALIDATION_ERROR");
        assert_eq!(
            body["error"]["message"],
            "name: must not be empty (and 1 more)"
        );
        assert_eq!(body["error"]["details"][1]["field"], "url");
    }

    #[tokio::test]
    async fn g3_an_internal_error_says_nothing_of_its_cause() {
        let (status, body) = body_of(ApiError::internal("secret/path: EIO")).await;
        assert_eq!(status, 500);
        assert!(!body.to_string().contains("secret"));
    }
}
