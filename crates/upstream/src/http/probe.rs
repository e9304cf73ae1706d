//! The detection of the era and the transport behind a URL.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{ExchangeResult, HttpTransport};
use crate::endpoint::Endpoint;
use crate::error::seconds;
use crate::handshake::{self, EraVerdict};
use crate::lines::quote;
use crate::peer::{Peer, RequestEncoder};
use crate::reply::ExchangeFailure;
use crate::{
    ConnectOptions, Connection, ConnectionOwner, LogStream, UpstreamCall, UpstreamError, legacy_sse,
};
use config::{EraChoice, RemoteKind};
use wire::{Era, code};

/// The time for a URL that does not support Streamable HTTP to prove that it is
/// HTTP+SSE.
const SECOND_TRY: Duration = Duration::from_secs(20);
/// The error of legacy SDKs for a request before the handshake.
const NOT_INITIALIZED: i64 = -32000;

type ConnectResult = Result<(ConnectionOwner, Connection), ExchangeFailure>;

pub(crate) async fn connect(
    kind: RemoteKind,
    url: &Url,
    headers: &IndexMap<String, String>,
    options: &ConnectOptions,
    stop: &CancellationToken,
) -> Result<(ConnectionOwner, Connection), UpstreamError> {
    let endpoint = Endpoint::new(url, headers, &options.log, options.redactor.clone())?;
    let limit = options.limits.connect;
    let attempt = async {
        match kind {
            RemoteKind::Http => streamable_first(&endpoint, options).await,
            RemoteKind::Sse => sse_first(&endpoint, options).await,
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(UpstreamError::Draining),
        connected = tokio::time::timeout(limit, attempt) => match connected {
            Ok(connected) => connected.map_err(|failure| told(&endpoint, failure)),
            Err(_) => Err(told(&endpoint, UpstreamError::Timeout { limit }.into())),
        },
    }
}

/// The connect error, in the form for its owner and for a person.
fn told(endpoint: &Endpoint, failure: ExchangeFailure) -> UpstreamError {
    if let ExchangeFailure::Rpc { status, error } = &failure {
        let words = endpoint.quote(&error.message);
        return match status.is_server_error() {
            true => UpstreamError::Unreachable(format!("{endpoint} answered {status}: {words}")),
            false => UpstreamError::Protocol(format!(
                "{endpoint} refused the handshake: {words} (code {})",
                error.code
            )),
        };
    }
    match failure.into() {
        // No request ran yet that could have been lost.
        UpstreamError::Lost(text) => UpstreamError::Unreachable(text),
        UpstreamError::Timeout { limit } => {
            let limit = seconds(&limit);
            UpstreamError::Unreachable(format!("{endpoint} did not answer within {limit}"))
        }
        other => other,
    }
}

/// How long a connection waits for the server's own stream to open.
const LISTEN_FIRST: Duration = Duration::from_millis(250);

async fn streamable_first(endpoint: &Endpoint, options: &ConnectOptions) -> ConnectResult {
    match streamable(endpoint, options).await {
        Err(failure) if options.era != EraChoice::Modern && may_be_sse(&failure) => {
            let second = legacy_sse::connect(endpoint, options);
            match tokio::time::timeout(SECOND_TRY, second).await {
                Ok(Ok(connected)) => {
                    (options.log)(LogStream::Portway, "speaks the old HTTP+SSE transport");
                    Ok(connected)
                }
                // The first error says more about a URL that is neither.
                _ => Err(failure),
            }
        }
        other => other,
    }
}

async fn sse_first(endpoint: &Endpoint, options: &ConnectOptions) -> ConnectResult {
    match legacy_sse::connect(endpoint, options).await {
        Err(failure) if legacy_sse::is_none(&failure) => {
            match streamable(endpoint, options).await {
                Ok(connected) => {
                    (options.log)(LogStream::Portway, "speaks Streamable HTTP, not HTTP+SSE");
                    Ok(connected)
                }
                Err(other) if may_be_sse(&other) => Err(failure),
                Err(other) => Err(other),
            }
        }
        other => other,
    }
}

async fn streamable(endpoint: &Endpoint, options: &ConnectOptions) -> ConnectResult {
    let (http, ends) = HttpTransport::new(endpoint.clone(), options);
    let peer = greet(&http, options).await?;
    let legacy = peer.era == Era::Legacy;
    let mut listened = http.0.listened.subscribe();
    let connected = http.start(peer, ends);
    if legacy {
        // Portway should be listening before the first call makes the server send
        // something there; a server slow to open the stream is not waited for.
        let opened = listened.wait_for(|listened| *listened);
        let _ = tokio::time::timeout(LISTEN_FIRST, opened).await;
    }
    Ok(connected)
}

async fn greet(http: &HttpTransport, options: &ConnectOptions) -> Result<Peer, ExchangeFailure> {
    let known = match options.era {
        EraChoice::Auto => options.remembered == Some(Era::Legacy),
        choice => choice == EraChoice::Legacy,
    };
    if known {
        match http.0.open().await {
            // The remembered era may be outdated: probe.
            Err(failure) if options.era == EraChoice::Auto && era_evidence(&failure) => {}
            other => return other,
        }
    }
    let spelling = RequestEncoder::modern(options.capabilities.clone());
    let limit = options.limits.connect;
    let discover = || http.exchange(&spelling, UpstreamCall::new("server/discover", limit));
    let mut found = discover().await;
    if let Err(ExchangeFailure::Rpc { error, .. }) = &found
        && handshake::names_our_version(error)
    {
        found = discover().await;
    }
    match judge(found, &options.capabilities) {
        ProbeOutcome::Modern(peer) => Ok(peer),
        ProbeOutcome::Stop(failure) => Err(failure),
        ProbeOutcome::Legacy(failure) if options.era == EraChoice::Modern => {
            let why = UpstreamError::from(failure).to_string();
            let why = quote(&why, &options.redactor);
            Err(ExchangeFailure::Odd(handshake::not_modern(&why)))
        }
        ProbeOutcome::Legacy(_) => http.0.open().await,
    }
}

/// The next step after `server/discover`.
pub(super) enum ProbeOutcome {
    Modern(Peer),
    /// Use the legacy handshake; the failure that came instead of a discovery.
    Legacy(ExchangeFailure),
    Stop(ExchangeFailure),
}

/// Reads the response to the probe. A required login, an outage or a redirect
/// says nothing about the era: no fallback, nothing to remember.
pub(super) fn judge(found: ExchangeResult, capabilities: &Arc<RawValue>) -> ProbeOutcome {
    let (status, answer) = match found {
        Ok(result) => (StatusCode::OK, Ok(result)),
        Err(ExchangeFailure::Rpc { status, error }) => (status, Err(UpstreamError::Rpc(error))),
        Err(failure) if era_evidence(&failure) => return ProbeOutcome::Legacy(failure),
        Err(failure) => return ProbeOutcome::Stop(failure),
    };
    match handshake::verdict(&answer, capabilities) {
        EraVerdict::Modern(peer) => ProbeOutcome::Modern(peer),
        EraVerdict::Refused(reason) => ProbeOutcome::Stop(ExchangeFailure::Odd(reason)),
        EraVerdict::Legacy => match answer {
            Ok(_) => ProbeOutcome::Legacy(ExchangeFailure::Odd(
                "the answer to server/discover is not one".into(),
            )),
            Err(error) => {
                let failure = match ExchangeFailure::from(error) {
                    ExchangeFailure::Rpc { error, .. } => ExchangeFailure::Rpc { status, error },
                    other => other,
                };
                match era_evidence(&failure) {
                    true => ProbeOutcome::Legacy(failure),
                    false => ProbeOutcome::Stop(failure),
                }
            }
        },
    }
}

/// Whether a failure comes from a server that understood HTTP and refused the
/// request.
fn era_evidence(failure: &ExchangeFailure) -> bool {
    match failure {
        ExchangeFailure::Refused { .. } | ExchangeFailure::Odd(_) => true,
        // Some legacy servers respond to an unknown method with 500; these
        // codes, at least, identify that case.
        ExchangeFailure::Rpc { status, error } => {
            !status.is_server_error()
                || matches!(
                    error.code,
                    code::METHOD_NOT_FOUND
                        | code::INVALID_PARAMS
                        | code::INVALID_REQUEST
                        | NOT_INITIALIZED
                )
        }
        _ => false,
    }
}

/// Whether `initialize` failed as it does at the URL of an HTTP+SSE stream.
fn may_be_sse(failure: &ExchangeFailure) -> bool {
    let modern = [
        code::HEADER_MISMATCH,
        code::MISSING_CAPABILITY,
        code::UNSUPPORTED_VERSION,
    ];
    let status = match failure {
        ExchangeFailure::Refused { status, .. } => *status,
        ExchangeFailure::Rpc { status, error } if !modern.contains(&error.code) => *status,
        _ => return false,
    };
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    )
}
