//! Extractors for the path and the query of a request, with errors in our own
//! shape.

use axum::extract::{FromRequestParts, Path as AxumPath, Query as AxumQuery};
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The one parameter of a path, or all of them.
pub(crate) struct Path<T = String>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError> {
        match AxumPath::from_request_parts(parts, state).await {
            Ok(AxumPath(parameters)) => Ok(Path(parameters)),
            Err(_) => Err(ApiError::bad_request("the path is not UTF-8 text")),
        }
    }
}

/// The parameters after the `?`.
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, ApiError> {
        match AxumQuery::try_from_uri(&parts.uri) {
            Ok(AxumQuery(query)) => Ok(Query(query)),
            Err(rejection) => {
                let text = rejection.body_text();
                let (field, message) = described(&text);
                Err(ApiError::invalid_field(field, message))
            }
        }
    }
}

/// `Failed to deserialize query string: limit: invalid digit found in string`.
fn described(text: &str) -> (&str, &str) {
    let text = text
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(text);
    text.split_once(": ").unwrap_or(("query", text))
}
