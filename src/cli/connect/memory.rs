//! The settings of a legacy client's session that a restarted gateway does not
//! know: the log level, and the resource subscriptions.

use std::collections::BTreeMap;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use wire::Message;
use wire::meta::{member, text};

/// The limit that a gateway has for one session.
const FOLLOWED: usize = 1000;

/// The lock is held for a map operation.
#[derive(Default)]
pub(super) struct SessionMemory(Mutex<SessionSettings>);

#[derive(Default)]
struct SessionSettings {
    sessions: u64,
    asked: u64,
    level: Option<Box<RawValue>>,
    followed: BTreeMap<String, Box<RawValue>>,
}

impl SessionMemory {
    /// Clears the settings for a new session; returns its number.
    pub(super) fn forget(&self) -> u64 {
        let mut settings = self.0.lock();
        // Renewed sessions get the numbers after it.
        let sessions = settings.sessions + (1 << 32);
        *settings = SessionSettings {
            sessions,
            asked: settings.asked,
            ..SessionSettings::default()
        };
        sessions
    }

    /// Records a request that succeeded.
    pub(super) fn note(&self, method: &str, line: &[u8]) {
        if !matches!(
            method,
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
        ) {
            return;
        }
        let Ok(Message::Request {
            params: Some(params),
            ..
        }) = wire::parse(line)
        else {
            return;
        };
        let mut settings = self.0.lock();
        if method == "logging/setLevel" {
            settings.level = Some(params.to_owned());
            return;
        }
        let Some(uri) = member(params, "uri").and_then(text) else {
            return;
        };
        if method == "resources/unsubscribe" {
            settings.followed.remove(&*uri);
        } else if settings.followed.len() < FOLLOWED {
            settings
                .followed
                .insert(uri.into_owned(), params.to_owned());
        }
    }

    /// Requests that restore the settings, with ids of the bridge.
    pub(super) fn requests(&self) -> Vec<Bytes> {
        let settings = &mut *self.0.lock();
        let level = settings.level.iter();
        let level = level.map(|params| ("logging/setLevel", &**params));
        let followed = settings.followed.values();
        let followed = followed.map(|params| ("resources/subscribe", &**params));
        let request = |(method, params): (&str, &RawValue)| {
            settings.asked += 1;
            let (id, params) = (settings.asked, wire::compact(params));
            let envelope = format!(r#""jsonrpc":"2.0","id":"portway-connect-{id}""#);
            format!(r#"{{{envelope},"method":"{method}","params":{params}}}"#).into()
        };
        level.chain(followed).map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_what_a_session_was_asked_for_is_said_again() {
        let memory = SessionMemory::default();
        let request = |method: &str, params: &str| {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            memory.note(method, line.as_bytes());
        };
        request("tools/call", r#"{"name":"x"}"#);
        request("logging/setLevel", r#"{"level":"info"}"#);
        request("logging/setLevel", r#"{"level":"debug"}"#);
        for uri in ["a:1", "a:2"] {
            request("resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#));
        }
        request("resources/unsubscribe", r#"{"uri":"a:1"}"#);
        assert_eq!(
            memory.requests(),
            [
                r#"{"jsonrpc":"2.0","id":"portway-connect-1","method":"logging/setLevel","params":{"level":"debug"}}"#,
                r#"{"jsonrpc":"2.0","id":"portway-connect-2","method":"resources/subscribe","params":{"uri":"a:2"}}"#,
            ]
        );
        let first = memory.forget();
        assert!(memory.requests().is_empty() && memory.forget() > first);
    }
}
