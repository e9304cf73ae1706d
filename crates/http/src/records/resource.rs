//! The operations that all records share: list, show, create, change and
//! delete. A record implements its differences in [`RestRecord`].

use axum::Json;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::answers::Items;
use super::bodies::{BodyFields, JsonBody};
use super::idempotency::{CreateRequest, IdempotencyKey};
use super::targets::Targets;
use super::{Paging, RecordsApi};
use crate::Principal;
use crate::error::{ApiError, FieldProblem};
use crate::extract::{Path, Query};
use store::{
    ApiKey, Creation, Idempotency, KeyDigest, Listing, OwnerScope, Page, Store, StoreError,
    Timestamp,
};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

pub(crate) trait RestRecord: Sized + Send {
    /// Part of the identity of an `Idempotency-Key`.
    const ROUTE: &'static str;
    type Id: Send + Sync;
    type New: Send;
    type Change: Send;

    /// Reads the name of the record in a path.
    fn id(text: &str) -> Result<Self::Id, ApiError>;

    /// The same for a record of another owner and for one that does not exist.
    fn not_found(id: &Self::Id) -> ApiError;

    /// `key` is in the one response that issues it.
    fn answer(self, key: Option<&ApiKey>, targets: &mut Targets) -> Value;

    /// The URL of the record, unless it would contain a key.
    fn location(&self) -> Option<String> {
        None
    }

    /// The current key, and when the record was created.
    fn key(&self) -> Option<(&KeyDigest, Timestamp)> {
        None
    }

    /// Reads a record that will have `key`, and its current problems: an
    /// earlier request may have created it nevertheless.
    fn read_new(
        context: &RecordContext,
        key: &mut ApiKey,
        fields: BodyFields,
    ) -> Result<(Self::New, Vec<FieldProblem>), ApiError>;

    fn read_change(
        context: &RecordContext,
        id: &Self::Id,
        fields: BodyFields,
    ) -> impl Future<Output = Result<Self::Change, ApiError>> + Send;

    fn list<'a>(of: &'a RecordContext, page: Page) -> Stored<'a, Listing<Self>>;
    fn find<'a>(of: &'a RecordContext, id: &'a Self::Id) -> Stored<'a, Option<Self>>;
    fn create(
        store: &Store,
        new: Self::New,
        once: Option<Idempotency>,
    ) -> Stored<'_, Creation<Self>>;
    fn update<'a>(
        of: &'a RecordContext,
        id: &'a Self::Id,
        to: Self::Change,
    ) -> Stored<'a, Option<Self>>;
    fn delete<'a>(of: &'a RecordContext, id: &'a Self::Id) -> Stored<'a, bool>;
}

pub(crate) type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A handler's argument: the records that the client may read and change.
pub(crate) struct RecordContext {
    pub records: RecordsApi,
    pub principal: Principal,
    pub whose: OwnerScope,
}

impl FromRequestParts<RecordsApi> for RecordContext {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        records: &RecordsApi,
    ) -> Result<RecordContext, ApiError> {
        let principal = Principal::from_request_parts(parts, records).await?;
        Ok(RecordContext {
            records: records.clone(),
            whose: principal.owner_scope()?,
            principal,
        })
    }
}

/// The store's methods for a record; with `*` where they take its id by value.
macro_rules! stored_by {
    ($list:ident, $find:ident, $create:ident, $update:ident, $delete:ident $(, $deref:tt)?) => {
        fn list<'a>(of: &'a RecordContext, page: store::Page) -> Stored<'a, store::Listing<Self>> {
            Box::pin(of.records.store.$list(&of.whose, page))
        }
        fn find<'a>(of: &'a RecordContext, id: &'a Self::Id) -> Stored<'a, Option<Self>> {
            Box::pin(of.records.store.$find(&of.whose, $($deref)? id))
        }
        fn create(store: &store::Store, new: Self::New, once: Option<store::Idempotency>)
            -> Stored<'_, store::Creation<Self>> {
            Box::pin(store.$create(new, once))
        }
        fn update<'a>(of: &'a RecordContext, id: &'a Self::Id, to: Self::Change) -> Stored<'a, Option<Self>> {
            Box::pin(of.records.store.$update(&of.whose, $($deref)? id, to))
        }
        fn delete<'a>(of: &'a RecordContext, id: &'a Self::Id) -> Stored<'a, bool> {
            Box::pin(of.records.store.$delete(&of.whose, $($deref)? id))
        }
    };
}
pub(super) use stored_by;

impl RecordContext {
    fn shown<R: RestRecord>(&self, id: &R::Id, record: Option<R>) -> Result<Json<Value>, ApiError> {
        let record = record.ok_or_else(|| R::not_found(id))?;
        Ok(Json(record.answer(None, &mut self.records.targets())))
    }

    /// Creates a record once, even if the request is repeated.
    pub(super) async fn create<R: RestRecord>(
        &self,
        request: &CreateRequest<'_>,
        key: ApiKey,
        (new, problems): (R::New, Vec<FieldProblem>),
    ) -> Result<Response, ApiError> {
        self.records.refuse_new(request, problems).await?;
        let (record, replayed) = match R::create(&self.records.store, new, request.once()).await? {
            Creation::New(record) => (record, false),
            Creation::Earlier(Some(record)) => (record, true),
            Creation::Earlier(None) => {
                let text = "what this Idempotency-Key made has been deleted since";
                return Err(ApiError::not_found(text));
            }
        };
        // A key that was rotated since is not repeated; a key that the request
        // itself names is known to its sender.
        let key = record.key().and_then(|(in_force, made_at)| {
            let given = Some(key).filter(|key| key.digest().matches(in_force));
            given.or_else(|| self.records.keys.again(request, made_at, in_force))
        });
        let location = record.location().map(HeaderValue::try_from);
        let answer = Json(record.answer(key.as_ref(), &mut self.records.targets()));
        let no_store = [(header::CACHE_CONTROL, "no-store")];
        let mut response = (StatusCode::CREATED, no_store, answer).into_response();
        let headers = response.headers_mut();
        if let Some(Ok(location)) = location {
            headers.insert(header::LOCATION, location);
        }
        if replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }
}

pub(crate) async fn create<R: RestRecord>(
    context: RecordContext,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let owner = context.principal.owner();
    let request = CreateRequest::new(R::ROUTE, &owner, key.as_deref(), &body);
    let mut key = context.records.keys.make(&request)?;
    let new = R::read_new(&context, &mut key, BodyFields::read(&body)?)?;
    context.create::<R>(&request, key, new).await
}

pub(crate) async fn list<R: RestRecord>(
    mut context: RecordContext,
    Query(paging): Query<Paging>,
) -> Result<Json<Items<Value>>, ApiError> {
    let user = paging.user_id.as_deref();
    context.whose = context.principal.owner_scope_of(user)?;
    let listing = R::list(&context, paging.page()?).await?;
    let mut targets = context.records.targets();
    let shown = |record: R| record.answer(None, &mut targets);
    Ok(Json(Items::of(listing, shown)))
}

pub(crate) async fn show<R: RestRecord>(
    context: RecordContext,
    Path(id): Path,
) -> Result<Json<Value>, ApiError> {
    let id = R::id(&id)?;
    let found = R::find(&context, &id).await?;
    context.shown(&id, found)
}

pub(crate) async fn change<R: RestRecord>(
    context: RecordContext,
    Path(id): Path,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, ApiError> {
    let id = R::id(&id)?;
    let change = R::read_change(&context, &id, BodyFields::read(&body)?).await?;
    let changed = R::update(&context, &id, change).await?;
    context.shown(&id, changed)
}

pub(crate) async fn remove<R: RestRecord>(
    context: RecordContext,
    Path(id): Path,
) -> Result<StatusCode, ApiError> {
    let id = R::id(&id)?;
    if R::delete(&context, &id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(R::not_found(&id))
    }
}
