//! The content of a session id: the result of the handshake.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::seal::{random, unix_seconds};
use wire::LEGACY;
use wire::meta::member;

/// A client that keeps its session longer opens another.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The id travels in a header of every request.
const MAX_CAPABILITIES: usize = 1024;
const FORMAT: u8 = 1;

pub(super) type Serial = [u8; 16];

pub(super) struct SessionToken {
    pub version: &'static str,
    pub capabilities: Box<RawValue>,
    /// In seconds since the epoch.
    pub expires: u64,
    /// Makes it unique.
    pub serial: Serial,
}

impl SessionToken {
    pub(super) fn new(version: &'static str, capabilities: &RawValue) -> SessionToken {
        SessionToken {
            version,
            capabilities: concise(capabilities).into_owned(),
            expires: unix_seconds() + LIFETIME.as_secs(),
            serial: random(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let version = LEGACY.iter().position(|known| *known == self.version);
        let version = version.and_then(|at| u8::try_from(at).ok());
        let mut out = vec![FORMAT, version.unwrap_or_default()];
        out.extend_from_slice(&self.expires.to_be_bytes());
        out.extend_from_slice(&self.serial);
        out.extend_from_slice(self.capabilities.get().as_bytes());
        out
    }

    /// Reads what [`SessionToken::encode`] wrote, in this or an earlier run;
    /// `None` for a format or a revision that is not supported any more.
    pub(super) fn decode(bytes: &[u8]) -> Option<SessionToken> {
        let ([FORMAT, version], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (expires, rest) = rest.split_first_chunk()?;
        let (serial, capabilities) = rest.split_first_chunk()?;
        let capabilities = String::from_utf8(capabilities.to_vec()).ok()?;
        Some(SessionToken {
            version: LEGACY.get(usize::from(*version))?,
            capabilities: RawValue::from_string(capabilities).ok()?,
            expires: u64::from_be_bytes(*expires),
            serial: *serial,
        })
    }
}

/// The capabilities as they are; of very long ones only the members that the
/// protocol defines.
fn concise(capabilities: &RawValue) -> Cow<'_, RawValue> {
    if !capabilities.get().starts_with('{') {
        return Cow::Owned(raw("{}".to_owned()));
    }
    let whole = wire::compact(capabilities);
    if whole.get().len() <= MAX_CAPABILITIES {
        return whole;
    }
    const KNOWN: [(&str, &[&str]); 3] = [
        ("roots", &["listChanged"]),
        ("sampling", &["tools", "context"]),
        ("elicitation", &["form", "url"]),
    ];
    let parts = KNOWN.iter().filter_map(|(name, flags)| {
        let value = member(capabilities, name)?;
        let flag = |flag: &&&str| {
            let given = member(value, flag)?.get();
            let said = if given == "true" || given == "false" {
                given
            } else {
                "{}"
            };
            Some(format!("\"{flag}\":{said}"))
        };
        let flags: Vec<_> = flags.iter().filter_map(|name| flag(&name)).collect();
        Some(format!("\"{name}\":{{{}}}", flags.join(",")))
    });
    let parts: Vec<_> = parts.collect();
    Cow::Owned(raw(format!("{{{}}}", parts.join(","))))
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("assembled from valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_token_survives_the_way_to_the_client_and_back() {
        for version in LEGACY {
            let given = capabilities(r#"{"roots":{"listChanged":true},"x":[1]}"#);
            let token = SessionToken::new(version, &given);
            let back = SessionToken::decode(&token.encode()).unwrap();
            assert_eq!(back.version, *version);
            assert_eq!(back.capabilities.get(), given.get());
            assert_eq!((back.expires, back.serial), (token.expires, token.serial));
        }
        let bytes = SessionToken::new(LEGACY[0], &capabilities("{}")).encode();
        for length in 0..bytes.len() {
            assert!(SessionToken::decode(&bytes[..length]).is_none());
        }
        let mut other = bytes.clone();
        other[0] = 2;
        assert!(SessionToken::decode(&other).is_none());
        other[0] = 1;
        other[1] = 9;
        assert!(SessionToken::decode(&other).is_none());
    }

    #[test]
    fn long_capabilities_keep_what_matters() {
        let noise = "x".repeat(3000);
        let long = format!(
            r#"{{"roots":{{"listChanged":true,"z":"{noise}"}},"sampling":{{}},
                "elicitation":{{"url":{{"a":1}}}},"experimental":{{"n":"{noise}"}}}}"#
        );
        let token = SessionToken::new(LEGACY[0], &capabilities(&long));
        assert_eq!(
            token.capabilities.get(),
            r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"url":{}}}"#
        );
        let odd = SessionToken::new(LEGACY[0], &capabilities("[1]"));
        assert_eq!(odd.capabilities.get(), "{}");
    }
}
