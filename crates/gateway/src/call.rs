//! One client's call: the server it goes to, and the spelling of results and
//! failures for the client.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::ability::Abilities;
use super::activity::{CallWatch, OutcomeKind};
use super::control::Control;
use super::failure::{CallFailure, failed_tool};
use super::view::{ResultOrigin, View};
use super::{Client, Reply};
use fleet::{CallItem, CallOutcome, CallRequest, CallStream, Fleet};
use upstream::{Notification, Peer};
use wire::meta::{self, LogLevel};
use wire::object::{self, member};
use wire::result::{Freshness, to_legacy_result, to_modern_result};
use wire::{Era, Payload, RpcError, code};

/// A request, the client it is for and the server it goes to.
pub(super) struct Call {
    pub client: Client,
    pub abilities: Abilities,
    pub id: Box<RawValue>,
    /// The client's own token.
    pub progress_token: Option<Box<RawValue>>,
    /// The name or URI by which the client knows what it calls.
    pub client_name: String,
    /// Set where legacy clients see the tool's output schema, and so its
    /// result, wrapped in an object.
    pub wrapped: bool,
    /// The granted tool, by its server's name for it, whose links an entry's
    /// client may read. Entries only.
    pub linking_tool: Option<Arc<str>>,
    pub view: Arc<View>,
    pub request: Arc<CallRequest>,
    /// Set where Portway itself answers, and no server.
    pub control: Option<Arc<Control>>,
    /// Records the call; calls of tools only.
    pub watch: CallWatch,
}

impl Call {
    /// Sends `request`, which is this call's or one that continues it.
    pub(crate) fn send(&self, fleet: &Fleet, request: Arc<CallRequest>) -> CallStream {
        match &self.control {
            None => fleet.call(request),
            Some(control) => CallStream::of(control.clone().answer(request)),
        }
    }

    pub(crate) fn method(&self) -> &str {
        &self.request.method
    }

    /// Whether it came through an entry, whose clients know no server by name.
    pub(crate) fn is_through_entry(&self) -> bool {
        self.request.permission.is_some()
    }

    /// The tool, resource or prompt of the call, as the first words of a message.
    pub(crate) fn subject(&self) -> String {
        if self.is_through_entry() {
            self.client_name.clone()
        } else {
            format!("{} of server {}", self.client_name, self.request.server)
        }
    }

    pub(crate) fn origin(&self) -> ResultOrigin<'_> {
        ResultOrigin {
            server: &self.request.server,
            linking_tool: self.linking_tool.as_deref(),
        }
    }

    /// Identifies what the call does: its server, its method and the params
    /// that decide it. A repeated request has the same digest.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.request.server.as_bytes());
        hash.update([0]);
        hash.update(self.method().as_bytes());
        for name in ["name", "uri", "arguments"] {
            hash.update([0]);
            let params = self.request.params.as_deref();
            if let Some(value) = params.and_then(|params| member(params, name)) {
                hash.update(value.get().as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// A server's notification as a whole message for the client; `None` where
    /// the client does not want it.
    pub(crate) fn notification(&self, note: &Notification) -> Option<Vec<u8>> {
        match note.method.as_str() {
            "notifications/progress" => {
                let token = self.progress_token.as_deref()?;
                let params = meta::with_progress_token(note.params.as_deref()?, token);
                Some(wire::notification(&note.method, Some(&params)))
            }
            "notifications/message" => {
                let params = note.params.as_deref()?;
                let level = member(params, "level").and_then(object::text)?;
                let level: LogLevel = level.parse().ok()?;
                (level >= self.log_level()?).then(|| wire::notification(&note.method, Some(params)))
            }
            _ => None,
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        match &self.client.session {
            // A legacy client that set no level gets every log message.
            Some(session) => Some(session.level().unwrap_or(LogLevel::Debug)),
            None => self.client.log_level,
        }
    }

    /// The reply for the end of a call.
    pub(crate) fn reply(&self, outcome: CallOutcome) -> Reply {
        let peer = outcome.peer.as_deref();
        match outcome.result {
            Ok(result) => self.result(result, peer),
            Err(error) => self.fail(CallFailure::of(error, self, peer)),
        }
    }

    fn result(&self, result: Payload, peer: Option<&Peer>) -> Reply {
        let server = peer.map_or(self.client.era, |peer| peer.era);
        let received = result.get();
        let mapped = self
            .view
            .result_to_client(self.origin(), self.method(), received);
        let spelled = match (server, self.client.era) {
            (Era::Legacy, Era::Modern) => {
                let info = Some(self.view.server_info());
                to_modern_result(self.method(), &mapped, Freshness::NONE, info).map(Cow::Owned)
            }
            (_, Era::Legacy) => {
                to_legacy_result(self.method(), &mapped, self.client.version, self.wrapped)
            }
            (Era::Modern, Era::Modern) => Ok(Cow::Borrowed(&*mapped)),
        };
        match spelled {
            Ok(spelled) => {
                self.watch.end_with(received);
                if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&mapped, &spelled) {
                    Reply::received(&self.id, &result, received)
                } else {
                    Reply::new(wire::response(&self.id, &spelled).into())
                }
            }
            Err(error) => {
                let subject = if self.is_through_entry() {
                    self.client_name.clone()
                } else {
                    format!("server {}", self.request.server)
                };
                let text = format!("{subject}: {error}");
                self.error(&RpcError::new(code::INTERNAL, text))
            }
        }
    }

    pub(crate) fn fail(&self, failure: CallFailure) -> Reply {
        match failure {
            CallFailure::Tool { text, late } => {
                self.watch.end(OutcomeKind::Error, Some(&text));
                let result = failed_tool(&text, self.client.era);
                Reply {
                    late,
                    ..Reply::result(&self.id, &result)
                }
            }
            // The method is known and offered: the code is the server's own.
            CallFailure::Error(error) => Reply {
                relayed: true,
                ..self.error(&error)
            },
        }
    }

    pub(crate) fn error(&self, error: &RpcError) -> Reply {
        self.watch.end(OutcomeKind::Error, Some(&error.message));
        Reply::error(&self.id, error)
    }
}

/// The next item of a call; none comes without a stream.
pub(super) async fn received(stream: &mut Option<CallStream>) -> CallItem {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}
