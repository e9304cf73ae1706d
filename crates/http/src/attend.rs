//! One connection from its first byte to its end: a request is read, handled
//! and answered, then the next one.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody as _};
use axum::response::{IntoResponse, Response};
use http_body::Frame;
use parking_lot::Mutex;
use tracing::debug;

use super::connections::{CloseOrder, ConnectionSlot};
use super::edge::ClientPeer;
use super::error::ApiError;
use super::framing::{FramingError, RequestHead, ResponseContext};
use super::request_body::RequestBody;
use super::response_head::{ResponseFraming, write_head};
use super::site::Site;
use super::stream::{ClientStream, NextRequest};

/// The size of a part of a stream that is sent without waiting for more.
const ENOUGH: usize = 64 * 1024;

/// Serves a connection, which takes `slot` until it ends. Its stream is shared
/// with the body of the request that is being handled; the lock is held for a
/// read or a write, never across an await.
pub(super) async fn attend(
    site: Arc<Site>,
    peer: ClientPeer,
    stream: ClientStream,
    _slot: ConnectionSlot,
) {
    let conversation = Conversation {
        site,
        peer,
        stream: Arc::new(Mutex::new(stream)),
    };
    if let Err(error) = conversation.run().await {
        let remote = conversation.peer.remote;
        debug!(%remote, %error, "connection ended early");
    }
}

struct Conversation {
    site: Arc<Site>,
    peer: ClientPeer,
    stream: Arc<Mutex<ClientStream>>,
}

/// The state of a connection after a response.
enum AfterResponse {
    Keep,
    Close,
    /// The client has disconnected, or must be disconnected at once.
    Cut,
}

impl Conversation {
    async fn run(&self) -> io::Result<()> {
        loop {
            let after = match poll_fn(|cx| self.poll_next(cx)).await? {
                NextRequest::Head(head) => self.serve(head).await?,
                NextRequest::Refused(fault) => self.refuse(fault).await?,
                NextRequest::Closed => AfterResponse::Cut,
            };
            match after {
                AfterResponse::Keep => {}
                AfterResponse::Close => return self.close().await,
                AfterResponse::Cut => return Ok(()),
            }
        }
    }

    /// The next request. One that has arrived is served even if the connection
    /// is to be closed.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<NextRequest>> {
        let order = self.peer.connection.poll_order(cx);
        match (self.stream.lock().poll_head(cx), order) {
            (Poll::Pending, Some(_)) | (_, Some(CloseOrder::Cut)) => {
                Poll::Ready(Ok(NextRequest::Closed))
            }
            (next, _) => next,
        }
    }

    async fn serve(&self, head: Arc<RequestHead>) -> io::Result<AfterResponse> {
        self.peer.connection.begin();
        let context = head.response_context();
        let body = RequestBody::of(&self.stream);
        let mut work = self.site.answer(head, body, self.peer.clone());
        let response = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(Ok(response)) => Poll::Ready(Some(response)),
            Poll::Pending => self.poll_cut(cx).map(|()| None),
        });
        let Some(response) = response.await else {
            return Ok(AfterResponse::Cut);
        };
        drop(work);
        self.respond(context, response).await
    }

    /// Ready when nobody waits for the response any more.
    fn poll_cut(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.peer.connection.poll_order(cx) == Some(CloseOrder::Cut) {
            return Poll::Ready(());
        }
        self.stream.lock().poll_gone(cx)
    }

    async fn respond(
        &self,
        context: ResponseContext,
        response: Response,
    ) -> io::Result<AfterResponse> {
        let connection = &self.peer.connection;
        let unread = self.stream.lock().has_unread();
        let keeps = context.keeps
            && !connection.is_last_response()
            && (!unread || poll_fn(|cx| Poll::Ready(self.stream.lock().skip_body(cx))).await);
        let (mut sending, closes) = self.begin(context, response, keeps);
        let sent = poll_fn(|cx| match sending.poll(cx, &self.stream) {
            Poll::Ready(sent) => Poll::Ready(sent.map(|()| true)),
            Poll::Pending => self.poll_cut(cx).map(|()| Ok(false)),
        });
        let sent = sent.await?;
        connection.end();
        Ok(match (sent, closes) {
            (false, _) => AfterResponse::Cut,
            (true, true) => AfterResponse::Close,
            (true, false) => AfterResponse::Keep,
        })
    }

    /// Writes the head of a response; returns its body, and whether the
    /// connection ends with it.
    fn begin(
        &self,
        context: ResponseContext,
        response: Response,
        keeps: bool,
    ) -> (SendingBody, bool) {
        let (parts, body) = response.into_parts();
        let framing = ResponseFraming::of(context, &parts, body.size_hint().exact());
        let mut stream = self.stream.lock();
        if framing.is_stream() {
            self.peer.connection.begin_stream();
            stream.release();
        } else {
            self.peer.connection.end();
        }
        let closes = write_head(&mut stream.out, context.version, &parts, framing, keeps);
        let empty = framing == ResponseFraming::Empty || context.head_only;
        let sending = SendingBody {
            body: (!empty).then_some(body),
            framing,
        };
        (sending, closes)
    }

    async fn refuse(&self, fault: FramingError) -> io::Result<AfterResponse> {
        debug!(remote = %self.peer.remote, %fault, "request refused");
        let response = ApiError::from(fault).into_response();
        self.respond(ResponseContext::UNREADABLE, response).await
    }

    async fn close(&self) -> io::Result<()> {
        poll_fn(|cx| self.stream.lock().poll_shutdown(cx)).await?;
        let mut read = 0;
        if self.stream.lock().has_unread() {
            poll_fn(|cx| self.stream.lock().poll_linger(cx, &mut read)).await;
        }
        Ok(())
    }
}

/// A response's body on its way to the client.
struct SendingBody {
    /// `None` once all of it has been read.
    body: Option<Body>,
    framing: ResponseFraming,
}

impl SendingBody {
    /// Ready when all of it has been written. Parts that are ready together are
    /// written together.
    fn poll(&mut self, cx: &mut Context<'_>, stream: &Mutex<ClientStream>) -> Poll<io::Result<()>> {
        loop {
            let waits = self.gather(cx, stream)?;
            ready!(stream.lock().poll_write(cx))?;
            if self.body.is_none() {
                return Poll::Ready(Ok(()));
            }
            if waits {
                return Poll::Pending;
            }
        }
    }

    /// Takes the parts of the body that are ready; returns whether it must wait
    /// for more. All parts of a body of known length are in memory already.
    fn gather(&mut self, cx: &mut Context<'_>, stream: &Mutex<ClientStream>) -> io::Result<bool> {
        let enough = if self.framing.is_stream() {
            ENOUGH
        } else {
            usize::MAX
        };
        while let Some(body) = &mut self.body {
            if stream.lock().out.size() >= enough {
                return Ok(false);
            }
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = Frame::into_data(frame) {
                        self.framing.push(&mut stream.lock().out, data)?;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(io::Error::other(error)),
                Poll::Ready(None) => {
                    self.body = None;
                    self.framing.end(&mut stream.lock().out)?;
                }
            }
        }
        Ok(false)
    }
}
