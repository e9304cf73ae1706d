//! One client's call: where it goes, on whose behalf, and how its results
//! and failures are spelled for the client.

use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::ability::Abilities;
use super::activity::{CallWatch, OutcomeKind};
use super::control::Control;
use super::trouble::{CallFailure, failed_tool, trouble};
use super::view::{ResultOrigin, View};
use super::{Client, Reply};
use fleet::{CallOutcome, CallRequest, CallStream, Fleet};
use upstream::{Notification, Peer};
use wire::meta::{self, LogLevel};
use wire::object::{self, member};
use wire::result::{Freshness, to_legacy_result, to_modern_result};
use wire::{Era, RpcError, code};

/// A request, the client it is for and the server it goes to.
pub(super) struct Call {
    pub principal: Arc<str>,
    pub client: Client,
    pub abilities: Abilities,
    pub id: Box<RawValue>,
    /// The client's own progress token.
    pub token: Option<Box<RawValue>>,
    /// How the client knows what it asked for: a name or a URI.
    pub what: String,
    /// The result was wrapped in the tool's schema for legacy clients.
    pub wrapped: bool,
    /// The granted tool, by its own name, that hands out what is linked to in
    /// the result. Entries only.
    pub via: Option<String>,
    pub view: Arc<View>,
    pub request: Arc<CallRequest>,
    /// Set where Portway itself answers, and no server.
    pub control: Option<Arc<Control>>,
    /// Sees to it that the call is written down; calls of tools only.
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

    /// Made through an entry, whose clients know no server by name.
    pub(crate) fn is_entrys(&self) -> bool {
        self.request.permission.is_some()
    }

    /// What failed, to start a sentence with.
    pub(crate) fn subject(&self) -> String {
        match self.is_entrys() {
            true => self.what.clone(),
            false => format!("{} of server {}", self.what, self.request.server),
        }
    }

    pub(crate) fn origin(&self) -> ResultOrigin<'_> {
        ResultOrigin {
            server: &self.request.server,
            via: self.via.as_deref(),
        }
    }

    /// What a request is about, whoever repeats it: its method and the
    /// parameters that decide what it does.
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

    /// A server's notification for this client, as a whole message; `None`
    /// where the client does not want it.
    pub(crate) fn note(&self, note: &Notification) -> Option<Vec<u8>> {
        match note.method.as_str() {
            "notifications/progress" => {
                let params =
                    meta::with_progress_token(note.params.as_deref()?, self.token.as_deref()?);
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
            // Legacy clients that never said get everything, as the server
            // would have it.
            Some(session) => Some(session.level().unwrap_or(LogLevel::Debug)),
            None => self.client.log_level,
        }
    }

    /// The reply for the end of a call.
    pub(crate) fn reply(&self, outcome: CallOutcome) -> Reply {
        let peer = outcome.peer.as_deref();
        match outcome.result {
            Ok(result) => self.result(&result, peer),
            Err(error) => {
                let trouble = trouble(error, self, peer);
                self.trouble(trouble)
            }
        }
    }

    pub(crate) fn trouble(&self, trouble: CallFailure) -> Reply {
        let text = match &trouble {
            CallFailure::Result(text) | CallFailure::Late(text) => text,
            CallFailure::Error(error) => &error.message,
        };
        self.watch.over(OutcomeKind::Error, Some(text));
        let failed = |text: &str| Reply::result(&self.id, &failed_tool(text, self.client.era));
        match trouble {
            CallFailure::Result(text) => failed(&text),
            CallFailure::Late(text) => Reply {
                late: true,
                ..failed(&text)
            },
            // The method is known and offered: the code is the server's word.
            CallFailure::Error(error) => Reply {
                relayed: true,
                ..Reply::error(&self.id, &error)
            },
        }
    }

    pub(crate) fn error(&self, code: i64, text: impl Into<String>) -> Reply {
        let error = RpcError::new(code, text);
        self.watch.over(OutcomeKind::Error, Some(&error.message));
        Reply::error(&self.id, &error)
    }

    fn came_back(&self, result: &RawValue) {
        if self.watch.watches() {
            let failed = member(result, "isError").is_some_and(|is| is.get() == "true");
            let outcome = match failed {
                true => OutcomeKind::ToolError,
                false => OutcomeKind::Ok,
            };
            self.watch.over(outcome, None);
        }
    }

    fn result(&self, result: &RawValue, peer: Option<&Peer>) -> Reply {
        let server = peer.map_or(self.client.era, |peer| peer.era);
        let mapped = self
            .view
            .result_to_client(self.origin(), self.method(), result);
        let spelled = match (server, self.client.era) {
            (Era::Legacy, Era::Modern) => {
                let info = Some(self.view.server_info());
                to_modern_result(self.method(), &mapped, Freshness::NONE, info)
                    .map(std::borrow::Cow::Owned)
            }
            (_, Era::Legacy) => {
                to_legacy_result(self.method(), &mapped, self.client.version, self.wrapped)
            }
            (Era::Modern, Era::Modern) => Ok(mapped.clone()),
        };
        match spelled {
            Ok(spelled) => {
                self.came_back(result);
                Reply::result(&self.id, &spelled)
            }
            Err(error) => {
                let text = match self.is_entrys() {
                    true => format!("{}: {error}", self.what),
                    false => format!("server {}: {error}", self.request.server),
                };
                self.error(code::INTERNAL, text)
            }
        }
    }
}
