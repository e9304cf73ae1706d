//! `params._meta`: reading it, and rewriting it from one era's spelling into
//! the other's. Vendor keys, trace keys and order are left alone.

mod level;
mod rewrite;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::message::{Fault, Id, Malformed};
use super::object::{Found, Members, Object, inner_member, is_object, raw, unquote};
pub use super::object::{member, pick, remove_members, set_member, text};
pub use level::{BadLogLevel, LogLevel};
pub use rewrite::ServerParams;

const PREFIX: &str = "io.modelcontextprotocol/";
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Params that exist only in modern multi round-trip requests.
const ROUND_TRIP: [&str; 2] = ["inputResponses", "requestState"];

/// The `_meta` keys that Portway sets in each request to a modern server.
#[derive(Clone, Copy)]
pub struct Envelope<'a> {
    pub version: &'a str,
    pub client_info: Option<&'a RawValue>,
    pub capabilities: &'a RawValue,
    pub log_level: Option<&'a str>,
}

/// The members of a request's params that Portway itself reads, found in one
/// pass: JSON text. See [`pick`] for members written twice.
#[derive(Clone, Copy, Default)]
pub struct RequestParams<'a> {
    pub name: Option<&'a str>,
    pub uri: Option<&'a str>,
    pub task: Option<&'a str>,
    pub input_responses: Option<&'a str>,
    pub request_state: Option<&'a str>,
    meta: Option<&'a str>,
    version: Option<&'a str>,
    capabilities: Option<&'a str>,
    log_level: Option<&'a str>,
    /// A string or an integer, to be echoed as it is.
    pub progress_token: Option<&'a str>,
}

impl<'a> RequestParams<'a> {
    pub fn find(params: Option<&'a RawValue>) -> Self {
        let Some(params) = params else {
            return Self::default();
        };
        let [responses, state] = ROUND_TRIP;
        let mut found = Found::new(["name", "uri", "task", responses, state, "_meta"]);
        let mut keys = Found::new([
            PROTOCOL_VERSION,
            CLIENT_CAPABILITIES,
            LOG_LEVEL,
            PROGRESS_TOKEN,
        ]);
        let Some(mut members) = Members::of(params.get()) else {
            return Self::default();
        };
        while let Some(member) = members.name() {
            let value = match member.is("_meta") {
                true => members.object(|meta| keys.fill(meta)).0,
                false => members.value(),
            };
            found.put(member, value);
        }
        let [name, uri, task, input_responses, request_state, meta] = found.once();
        let meta = meta.filter(|json| *json != "null");
        let [version, capabilities, log_level, progress_token] =
            meta.map_or([None; 4], |_| keys.once());
        Self {
            name,
            uri,
            task,
            input_responses,
            request_state,
            meta,
            version,
            capabilities,
            log_level,
            progress_token: progress_token.filter(|json| *json != "null"),
        }
    }

    /// As [`RequestParams::find`]; fails if `_meta` is unusable.
    pub fn read(params: Option<&'a RawValue>) -> Result<Self, Malformed> {
        let found = Self::find(params);
        found.check_meta()?;
        Ok(found)
    }

    /// Fails if `_meta`, or its progress token, is unusable.
    fn check_meta(&self) -> Result<(), Malformed> {
        if self.meta.is_some_and(|meta| !meta.starts_with('{')) {
            return Err(Fault::Meta.into());
        }
        let bad = |json| Id::check(json).is_err();
        if self.progress_token.is_some_and(bad) {
            return Err(Fault::BadMeta(PROGRESS_TOKEN).into());
        }
        Ok(())
    }

    /// The body alone decides the era of a request: only a modern one has a
    /// version.
    pub fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The envelope a modern request must have; the error lists all missing keys.
    pub fn require(&self) -> Result<RequestEnvelope<'a>, Malformed> {
        let (Some(version), Some(capabilities)) = (self.version, self.capabilities) else {
            let keys = [
                (self.version.is_none(), PROTOCOL_VERSION),
                (self.capabilities.is_none(), CLIENT_CAPABILITIES),
            ];
            let missing = keys
                .into_iter()
                .filter_map(|(gone, key)| gone.then_some(key));
            return Err(Fault::MissingMeta(missing.collect()).into());
        };
        if !capabilities.starts_with('{') {
            return Err(Fault::BadMeta(CLIENT_CAPABILITIES).into());
        }
        let bad_level = Fault::BadMeta(LOG_LEVEL);
        let log_level = match self.log_level {
            Some(json) => Some(
                unquote(json)
                    .and_then(|name| name.parse().ok())
                    .ok_or(bad_level)?,
            ),
            None => None,
        };
        Ok(RequestEnvelope {
            version: unquote(version).ok_or(Fault::BadMeta(PROTOCOL_VERSION))?,
            capabilities,
            log_level,
        })
    }
}

/// The checked envelope of a modern request.
#[derive(Clone)]
pub struct RequestEnvelope<'a> {
    pub version: Cow<'a, str>,
    /// A JSON object.
    pub capabilities: &'a str,
    pub log_level: Option<LogLevel>,
}

/// The params of `notifications/progress`.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    pub token: &'a RawValue,
    pub progress: Option<&'a RawValue>,
    pub total: Option<&'a RawValue>,
    pub message: Option<&'a RawValue>,
}

/// None without a token, which names the request.
pub fn progress(params: Option<&RawValue>) -> Option<Progress<'_>> {
    let [token, progress, total, message] =
        pick(params?, [PROGRESS_TOKEN, "progress", "total", "message"]);
    Some(Progress {
        token: token?,
        progress,
        total,
        message,
    })
}

/// A progress notification's params under another token.
pub fn with_progress_token(params: &RawValue, token: &RawValue) -> Box<RawValue> {
    set_member(params, PROGRESS_TOKEN, token)
}

/// One key of `_meta`, of params or of a result.
pub fn meta_member<'a>(holder: &'a RawValue, key: &str) -> Option<&'a RawValue> {
    inner_member(holder, "_meta", key)
}

/// Sets one key of `_meta`, which is added if missing.
pub fn set_meta_member(holder: &RawValue, key: &str, value: &RawValue) -> Box<RawValue> {
    let meta = member(holder, "_meta").filter(|meta| is_object(meta));
    let mut meta = meta.and_then(Object::read).unwrap_or_default();
    meta.set(key, value);
    set_member(holder, "_meta", &meta.into_raw())
}

/// A number as a raw value, for tokens and ids that Portway assigns.
pub fn number(number: u64) -> Box<RawValue> {
    raw(number.to_string())
}
