//! Counts requests and responses against their principal's share of memory:
//! requests until they are handled, responses until the last byte is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::body::HttpBody;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::error::ApiError;
use super::principal::Principal;
use store::memory::{Account, Budget, Charge, Full, UNCOUNTED};

/// Marks a response whose body is already counted.
#[derive(Clone, Copy)]
pub(super) struct Counted;

impl From<Full> for ApiError {
    fn from(full: Full) -> ApiError {
        ApiError::unavailable(full.to_string())
    }
}

/// The shares of the principals.
pub(super) struct Shares(Arc<Budget>);

impl Shares {
    pub(super) fn new(budget: Arc<Budget>) -> Shares {
        Shares(budget)
    }

    /// Whether there is room for another request, and for its body.
    pub(super) fn admit(
        &self,
        principal: Option<&Principal>,
        body: usize,
    ) -> Result<Option<Charge>, ApiError> {
        self.with_account(principal, |account| {
            if let Some(full) = account.full() {
                return Err(full.into());
            }
            let room = (body >= UNCOUNTED).then(|| account.take(body));
            Ok(room.transpose()?)
        })
    }

    /// Counts a response of known size; returns an error if there is no room.
    pub(super) fn count(&self, principal: Option<&Principal>, response: Response) -> Response {
        let size = response.body().size_hint().exact().unwrap_or(0);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size < UNCOUNTED || response.extensions().get::<Counted>().is_some() {
            return response;
        }
        match self.with_account(principal, |account| account.take(size)) {
            Ok(charge) => response.map(|body| {
                let charge = Arc::new(charge);
                // Each piece holds the charge: the HTTP server drops the body
                // when it has the last piece, and the piece when it is written.
                let each = move |data| charge.clone().bind(data);
                Body::new(WrappedBody { body, each })
            }),
            Err(full) => ApiError::from(full).into_response(),
        }
    }

    fn with_account<T>(
        &self,
        principal: Option<&Principal>,
        ask: impl FnOnce(&Arc<Account>) -> T,
    ) -> T {
        match principal {
            None => ask(self.0.anybody()),
            Some(Principal::Admin) => ask(self.0.admin()),
            Some(Principal::User(user)) => ask(&self.0.user(user)),
            Some(Principal::Entry(grant)) => ask(grant.account(&self.0)),
        }
    }
}

/// A body whose pieces pass through `each`, which may own a value for as long
/// as the body exists.
pub(super) struct WrappedBody<F> {
    pub body: Body,
    pub each: F,
}

impl<F: Fn(Bytes) -> Bytes + Unpin> HttpBody for WrappedBody<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)?);
        Poll::Ready(frame.map(|frame| Ok(frame.map_data(&self.each))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    const MIB: usize = 1 << 20;

    #[test]
    fn t_request_bodies_have_a_budget_and_the_admin_keeps_a_part_of_it() {
        let shares = Shares::new(Budget::new(64 * MIB));
        let (ann, bob) = (Principal::User("ann".into()), Principal::User("bob".into()));
        let four = |who| shares.admit(who, 4 * MIB);
        let mut rooms: Vec<_> = (0..8).map(|_| four(Some(&ann)).unwrap()).collect();
        let refused = four(Some(&ann)).err().unwrap();
        assert_eq!(refused.code(), Code::Unavailable);
        let told = refused.message().to_owned();
        assert!(told.contains("32 MiB"), "{told}");
        rooms.extend((0..6).map(|_| four(Some(&bob)).unwrap()));
        assert!(four(Some(&bob)).is_err() && four(None).is_err());
        assert!(shares.admit(Some(&bob), 0).is_err(), "not even a small one");
        assert!(four(Some(&Principal::Admin)).is_ok());
        rooms.pop();
        assert!(four(Some(&bob)).is_ok() && four(Some(&ann)).is_err());
    }

    #[tokio::test]
    async fn t_an_answer_counts_until_its_bytes_are_gone() {
        use http_body_util::BodyExt;
        let shares = Shares::new(Budget::new(64 * MIB));
        let who = Some(&Principal::Admin);
        let answer = || vec![b'x'; 40 * MIB].into_response();
        let first = shares.count(who, answer());
        let second = shares.count(who, answer());
        assert_eq!(second.status(), 503);
        assert_eq!(second.headers()["retry-after"], "1");
        let small = shares.count(who, "small".into_response());
        assert_eq!(small.status(), 200);
        let mut body = first.into_body();
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert_eq!(shares.0.admin().used(), 40 * MIB);
        drop(data);
        assert_eq!(shares.0.admin().used(), 0);
        assert_eq!(shares.count(who, answer()).status(), 200);
    }
}
