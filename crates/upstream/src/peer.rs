//! The server at the other end, and the encoding of requests to it.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{UpstreamCall, UpstreamError};
use wire::{Era, meta, object};

/// The results of the handshake or the discovery.
#[derive(Debug)]
pub struct Peer {
    pub era: Era,
    pub version: String,
    /// ServerCapabilities, as received.
    pub capabilities: Box<RawValue>,
    /// Implementation, as received; display only.
    pub server_info: Option<Box<RawValue>>,
    pub instructions: Option<String>,
    pub(crate) spelling: RequestEncoder,
}

impl Peer {
    /// Portway itself, for its own offers among those of the servers.
    pub fn ourselves(capabilities: Box<RawValue>, instructions: &str) -> Peer {
        Peer {
            era: Era::Modern,
            version: wire::MODERN.to_owned(),
            server_info: Some(client_info().to_owned()),
            instructions: Some(instructions.to_owned()),
            spelling: RequestEncoder::modern(capabilities.clone().into()),
            capabilities,
        }
    }

    /// Whether the server declares a capability.
    pub fn offers(&self, capability: &str) -> bool {
        self.capability(capability).is_some()
    }

    /// Whether a flag inside a capability is true, e.g. `tools.listChanged`.
    pub fn offers_flag(&self, capability: &str, flag: &str) -> bool {
        self.capability(capability)
            .and_then(|value| object::member(value, flag))
            .is_some_and(|value| value.get() == "true")
    }

    fn capability(&self, name: &str) -> Option<&RawValue> {
        object::member(&self.capabilities, name).filter(|value| value.get() != "null")
    }
}

/// The fields that every request to this peer carries.
#[derive(Clone, Debug)]
pub(crate) struct RequestEncoder {
    pub era: Era,
    pub version: String,
    pub capabilities: Arc<RawValue>,
}

impl RequestEncoder {
    /// The encoder for requests before a version is negotiated.
    pub(crate) fn modern(capabilities: Arc<RawValue>) -> RequestEncoder {
        RequestEncoder {
            era: Era::Modern,
            version: wire::MODERN.to_owned(),
            capabilities,
        }
    }

    pub(crate) fn legacy(version: &str, capabilities: Arc<RawValue>) -> RequestEncoder {
        RequestEncoder {
            era: Era::Legacy,
            version: version.to_owned(),
            capabilities,
        }
    }

    /// The request in this peer's form: one line, envelope added or removed.
    pub(crate) fn request(
        &self,
        call: &UpstreamCall<'_>,
        id: u64,
    ) -> Result<Vec<u8>, UpstreamError> {
        let envelope = meta::Envelope {
            version: &self.version,
            client_info: Some(client_info()),
            capabilities: call.capabilities.unwrap_or(&self.capabilities),
            log_level: call.log_level,
        };
        let params = meta::ServerParams {
            params: call.params,
            envelope: (self.era == Era::Modern).then_some(&envelope),
            progress_token: call.progress.then_some(id),
            subject: call.about(),
        };
        wire::request_with(id, call.method, &params)
            .map_err(|reason| UpstreamError::Protocol(format!("params: {reason}")))
    }
}

/// A complete request to a modern server. The caller's capabilities are those
/// of the call.
pub fn modern_request(call: &UpstreamCall<'_>, id: u64) -> Result<Vec<u8>, UpstreamError> {
    RequestEncoder::modern(crate::no_capabilities()).request(call, id)
}

/// The client info that Portway sends.
pub(crate) fn client_info() -> &'static RawValue {
    static INFO: std::sync::OnceLock<Box<RawValue>> = std::sync::OnceLock::new();
    INFO.get_or_init(|| {
        let info = serde_json::json!({"name": "portway", "version": env!("CARGO_PKG_VERSION")});
        serde_json::value::to_raw_value(&info).expect("a literal object serialises")
    })
}
