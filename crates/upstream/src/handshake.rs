//! The detection of a server's era, and the handshake in that era.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lines::quote;
use super::peer::{Peer, RequestEncoder, client_info};
use super::pending::RequestResult;
use super::{ConnectOptions, Transport, UpstreamCall, UpstreamError};
use wire::{Era, Payload, RpcError, code};

/// The era that a response to `server/discover` indicates.
pub(crate) enum EraVerdict {
    Modern(Peer),
    /// The server supports the old handshake, or does not indicate otherwise.
    Legacy,
    /// Modern, but of no revision that we support: a fallback would be wrong.
    Refused(String),
}

#[derive(Deserialize)]
struct DiscoverAnswer {
    #[serde(rename = "supportedVersions")]
    versions: Vec<String>,
    capabilities: Option<Box<RawValue>>,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<DiscoverMeta>,
}

#[derive(Deserialize)]
struct DiscoverMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct InitializeAnswer {
    #[serde(rename = "protocolVersion")]
    version: String,
    capabilities: Option<Box<RawValue>>,
    #[serde(rename = "serverInfo")]
    server_info: Option<Box<RawValue>>,
    instructions: Option<String>,
}

/// Reads the response to a probe. Only a response that no legacy server sends
/// means modern; legacy servers respond with any error code.
pub(crate) fn verdict(answer: &RequestResult, capabilities: &Arc<RawValue>) -> EraVerdict {
    match answer {
        Ok(result) => match serde_json::from_str::<DiscoverAnswer>(result.get()) {
            Ok(found) if found.versions.iter().any(|v| v == wire::MODERN) => {
                EraVerdict::Modern(modern_peer(found, capabilities))
            }
            Ok(found) => only_versions(&found.versions),
            Err(_) => EraVerdict::Legacy,
        },
        Err(UpstreamError::Rpc(error)) if error.code == code::UNSUPPORTED_VERSION => {
            match supported(error) {
                Some(versions) => only_versions(&versions),
                None => EraVerdict::Legacy,
            }
        }
        // A modern server considers our own request invalid.
        Err(UpstreamError::Rpc(error))
            if matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY) =>
        {
            EraVerdict::Refused(format!("server/discover was refused: {}", error.message))
        }
        Err(_) => EraVerdict::Legacy,
    }
}

/// The versions that the error names as supported.
fn supported(error: &RpcError) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct UnsupportedVersion {
        supported: Vec<String>,
    }
    let data: UnsupportedVersion = serde_json::from_str(error.data.as_deref()?.get()).ok()?;
    Some(data.supported)
}

/// Whether the server refuses a version that it supports: worth one retry.
pub(crate) fn names_our_version(error: &RpcError) -> bool {
    error.code == code::UNSUPPORTED_VERSION
        && supported(error).is_some_and(|all| all.iter().any(|v| v == wire::MODERN))
}

fn only_versions(versions: &[String]) -> EraVerdict {
    if versions.is_empty() || versions.iter().any(|v| wire::LEGACY.contains(&v.as_str())) {
        return EraVerdict::Legacy;
    }
    EraVerdict::Refused(format!(
        "the server speaks only MCP {}, Portway {} and earlier",
        versions.join(", "),
        wire::MODERN
    ))
}

fn modern_peer(found: DiscoverAnswer, capabilities: &Arc<RawValue>) -> Peer {
    Peer {
        era: Era::Modern,
        version: wire::MODERN.to_owned(),
        capabilities: found
            .capabilities
            .unwrap_or_else(|| wire::object::empty().to_owned()),
        server_info: found.meta.and_then(|meta| meta.server_info),
        instructions: found.instructions,
        spelling: RequestEncoder::modern(capabilities.clone()),
    }
}

/// The peer of a definition with `era: modern`. There is no legacy handshake
/// then, so the error must give the reason.
pub(crate) fn insist(
    answer: RequestResult,
    options: &ConnectOptions,
) -> Result<Peer, UpstreamError> {
    let why = match verdict(&answer, &options.capabilities) {
        EraVerdict::Modern(peer) => return Ok(peer),
        EraVerdict::Refused(reason) => return Err(UpstreamError::Protocol(reason)),
        EraVerdict::Legacy => match answer {
            Ok(_) => "the answer to server/discover is not one".to_owned(),
            Err(UpstreamError::Rpc(error)) => quote(&error.message, &options.redactor),
            Err(other) => return Err(other),
        },
    };
    Err(UpstreamError::Protocol(not_modern(&why)))
}

pub(crate) fn not_modern(why: &str) -> String {
    format!(
        "the server does not speak MCP {}, which its `era` asks for: {why}",
        wire::MODERN
    )
}

/// Sends `server/discover`, the modern handshake.
pub(crate) async fn discover(
    transport: &Transport,
    options: &ConnectOptions,
    limit: Duration,
) -> RequestResult {
    let spelling = RequestEncoder::modern(options.capabilities.clone());
    transport
        .request(&spelling, UpstreamCall::new("server/discover", limit))
        .await
}

/// The legacy handshake, `notifications/initialized` included.
pub(crate) async fn initialize(
    transport: &Transport,
    options: &ConnectOptions,
    limit: Duration,
) -> Result<Peer, UpstreamError> {
    let params = initialize_params(&options.capabilities)?;
    let spelling = RequestEncoder::legacy(wire::LEGACY[0], options.capabilities.clone());
    let call = UpstreamCall::new("initialize", limit).params(Some(&params));
    let answer = match transport.request(&spelling, call).await {
        Err(UpstreamError::Rpc(error)) => {
            return Err(UpstreamError::Protocol(format!(
                "the handshake was refused: {} (code {})",
                quote(&error.message, &options.redactor),
                error.code
            )));
        }
        other => other?,
    };
    let peer = legacy_peer(&answer, &options.capabilities)?;
    transport
        .notify(wire::notification("notifications/initialized", None))
        .await?;
    Ok(peer)
}

pub(crate) fn initialize_params(capabilities: &RawValue) -> Result<Box<RawValue>, UpstreamError> {
    let params = serde_json::json!({
        "protocolVersion": wire::LEGACY[0],
        "capabilities": capabilities,
        "clientInfo": client_info(),
    });
    serde_json::value::to_raw_value(&params)
        .map_err(|error| UpstreamError::Protocol(error.to_string()))
}

pub(crate) fn legacy_peer(
    answer: &Payload,
    capabilities: &Arc<RawValue>,
) -> Result<Peer, UpstreamError> {
    let found: InitializeAnswer = serde_json::from_str(answer.get()).map_err(|error| {
        UpstreamError::Protocol(format!("the answer to initialize is not one: {error}"))
    })?;
    if !wire::LEGACY.contains(&found.version.as_str()) {
        return Err(UpstreamError::Protocol(format!(
            "the server chose MCP {:?}, which Portway does not speak",
            found.version
        )));
    }
    Ok(Peer {
        era: Era::Legacy,
        spelling: RequestEncoder::legacy(&found.version, capabilities.clone()),
        version: found.version,
        capabilities: found
            .capabilities
            .unwrap_or_else(|| wire::object::empty().to_owned()),
        server_info: found.server_info,
        instructions: found.instructions,
    })
}

/// Detects the era over a pipe. A silent server gets the legacy handshake too,
/// because it may only be slow to start: the first usable response decides.
pub(crate) async fn probe_pipe(
    transport: &Transport,
    options: &ConnectOptions,
) -> Result<Peer, UpstreamError> {
    let limits = &options.limits;
    let discover = discover(transport, options, limits.connect);
    tokio::pin!(discover);
    let early = tokio::select! {
        answer = &mut discover => Some(answer),
        () = tokio::time::sleep(limits.probe) => None,
    };
    if let Some(answer) = early {
        if let Err(error @ (UpstreamError::Exited(_) | UpstreamError::Lost(_))) = answer {
            return Err(error);
        }
        return match verdict(&answer, &options.capabilities) {
            EraVerdict::Modern(peer) => Ok(peer),
            EraVerdict::Refused(reason) => Err(UpstreamError::Protocol(reason)),
            EraVerdict::Legacy => initialize(transport, options, limits.connect).await,
        };
    }
    let initialize = initialize(transport, options, limits.connect);
    tokio::pin!(initialize);
    tokio::select! {
        peer = &mut initialize => match peer {
            Ok(peer) => Ok(peer),
            // Refused, perhaps by a modern server that is about to respond.
            Err(refusal) => match verdict(&discover.await, &options.capabilities) {
                EraVerdict::Modern(peer) => Ok(peer),
                _ => Err(refusal),
            },
        },
        answer = &mut discover => match verdict(&answer, &options.capabilities) {
            EraVerdict::Modern(peer) => Ok(peer),
            EraVerdict::Refused(reason) => Err(UpstreamError::Protocol(reason)),
            EraVerdict::Legacy => initialize.await,
        },
    }
}
