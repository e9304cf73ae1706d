//! Checks of a server that is reached over HTTP: the conversation, and the
//! behavior of HTTP itself.

use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use crate::dialog::{Channel, Dialog, Reaction};
use crate::eras::{self, HandshakeAnswer};
use crate::finding::{bad, note, ok, warn};
use crate::http::{HeaderList, HttpChannel, LARGEST, content_type, send};
use crate::launcher::{Launcher, STEP, ServerCopy};
use crate::report::LabReport;
use crate::report::Section::{Eras, Http};
use crate::{Experiment, cost, examine_dialog};
use config::RemoteKind;
use config::authority::Authority;
use upstream::Endpoint;
use wire::{Era, code};

/// No session has this id.
const NO_SESSION: &str = "portway-lab-no-such-session";
/// No real page has this origin.
const FOREIGN: &str = "http://portway-lab.invalid";

pub(crate) async fn examine(launcher: &Launcher, experiment: &Experiment, report: &mut LabReport) {
    let Some((kind, url, endpoint)) = launcher.remote() else {
        return;
    };
    let endpoint = match endpoint {
        Ok(endpoint) => endpoint,
        Err(error) => {
            report.add(Http, "url", bad(error.to_string(), "fix the URL"));
            return;
        }
    };
    if kind == RemoteKind::Sse && old(launcher, &endpoint, experiment, report).await {
        return;
    }
    let limit = launcher.handshake_limit;
    let mut copy = launcher.reach(&endpoint);
    let modern = eras::modern(&mut copy.dialog, limit).await;
    if let Err(reaction) = &modern
        && unreachable(reaction, &endpoint, report).await
    {
        return;
    }
    let mut other = launcher.reach(&endpoint);
    let legacy = eras::legacy(&mut other.dialog, limit).await;
    if let (Err(_), Err(reaction)) = (&modern, &legacy) {
        if kind == RemoteKind::Http && old(launcher, &endpoint, experiment, report).await {
            return;
        }
        eras::tell(&modern, &legacy, report);
        let reaction = reaction.in_words();
        let found = format!("no conversation: initialize gives {reaction}");
        let todo = "is this the address of an MCP server? Often it ends in /mcp or /sse";
        report.add(Eras, "start", bad(found, todo));
        return;
    }
    eras::tell(&modern, &legacy, report);
    let main = match (modern, &legacy) {
        (Ok(hello), _) => Some((&mut copy, hello)),
        (Err(_), Ok(hello)) => Some((&mut other, hello.clone())),
        (Err(_), Err(_)) => None,
    };
    if let Some((copy, hello)) = main {
        converse(copy, &hello, experiment, report).await;
        forms(copy, report);
    }
    if legacy.is_ok()
        && let Channel::Http(http) = &other.dialog.channel
    {
        sessions(http, report).await;
    }
    guarded(url, &endpoint, report).await;
}

async fn converse(
    copy: &mut ServerCopy,
    hello: &HandshakeAnswer,
    experiment: &Experiment,
    report: &mut LabReport,
) {
    examine_dialog(copy, hello, experiment, report, |copy, report| {
        cost::started(hello.took, copy.began.elapsed(), report);
    })
    .await;
    if hello.era == Era::Modern
        && let Channel::Http(http) = &copy.dialog.channel
    {
        modern_rules(&copy.dialog, http, report).await;
    }
}

/// Reports a URL that accepts no requests.
async fn unreachable(reaction: &Reaction, endpoint: &Endpoint, report: &mut LabReport) -> bool {
    let (id, verdict) = match reaction {
        Reaction::Gone(_) => {
            let todo = "start the server, or fix the URL";
            ("url", bad(reaction.in_words(), todo))
        }
        Reaction::Refused {
            status: 401 | 403, ..
        } => {
            let found = format!("wants a login{}", challenge(endpoint).await);
            let todo = "give it a header: \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"} \
                        (here: --header \"Authorization: Bearer …\")";
            report.fact("login", true);
            report.advice.login();
            ("login", bad(found, todo))
        }
        Reaction::Refused {
            status: 300..=399, ..
        } => {
            let found = "redirects, and Portway follows no redirect with its credentials";
            ("url", bad(found, "write the address it leads to"))
        }
        _ => return false,
    };
    report.add(Http, id, verdict);
    true
}

/// The authentication scheme; its parameters are for a client.
async fn challenge(endpoint: &Endpoint) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let headers = [("content-type", "application/json".to_owned())];
    let sent = timeout(STEP, send(endpoint, Method::POST, &headers, body)).await;
    let Ok(Ok(response)) = sent else {
        return String::new();
    };
    let value = response.headers().get(header::WWW_AUTHENTICATE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    match value.split_whitespace().next() {
        Some(scheme) if value.contains("resource_metadata") => format!(" ({scheme}, by OAuth)"),
        Some(scheme) => format!(" ({scheme})"),
        None => String::new(),
    }
}

/// Tries the old HTTP+SSE. Returns whether the server speaks it.
async fn old(
    launcher: &Launcher,
    endpoint: &Endpoint,
    experiment: &Experiment,
    report: &mut LabReport,
) -> bool {
    let Some(mut copy) = launcher.reach_old_sse(endpoint).await else {
        return false;
    };
    let legacy = eras::legacy(&mut copy.dialog, launcher.handshake_limit).await;
    let Ok(hello) = &legacy else { return false };
    report.transport = "sse";
    report.advice.sse();
    let modern = Err(Reaction::Refused {
        status: 405,
        text: "HTTP+SSE is of 2024-11-05".into(),
    });
    eras::tell(&modern, &legacy, report);
    let found = "HTTP+SSE, which newer clients no longer speak";
    let todo = "Portway does; the server should offer Streamable HTTP as well";
    report.add(Http, "transport", note(found).with(todo));
    converse(&mut copy, hello, experiment, report).await;
    true
}

fn forms(copy: &ServerCopy, report: &mut LabReport) {
    let Channel::Http(http) = &copy.dialog.channel else {
        return;
    };
    let forms = http.content_types.lock();
    report.fact("jsonAnswers", forms.json);
    report.fact("streamAnswers", forms.stream);
    let found = match (forms.json, forms.stream) {
        (_, 0) => "answers as JSON".to_owned(),
        (0, _) => "answers as event streams".to_owned(),
        (json, stream) => format!("{json} answers as JSON, {stream} as event streams"),
    };
    let verdict = match forms.odd.first() {
        None => ok(found),
        Some(kind) => bad(
            format!("{found}; {} are no message ({kind})", forms.odd.len()),
            "answers are application/json or text/event-stream",
        ),
    };
    report.add(Http, "content types", verdict);
}

async fn status(
    http: &HttpChannel,
    method: Method,
    headers: HeaderList,
    body: String,
) -> Option<(StatusCode, String)> {
    let sent = timeout(STEP, send(&http.endpoint, method, &headers, body)).await;
    let response = sent.ok()?.ok()?;
    let kind = content_type(response.headers());
    Some((response.status(), kind))
}

/// Checks how a legacy server handles sessions.
async fn sessions(http: &HttpChannel, report: &mut LabReport) {
    let ping = json!({"jsonrpc": "2.0", "id": 77, "method": "ping"});
    let body = ping.to_string();
    let Some(session) = http.session.lock().clone() else {
        let verdict = note("gives none: keeps nothing between requests");
        report.add(Http, "session", verdict);
        get_stream(http, report).await;
        return;
    };
    let length = session.len();
    let verdict = if !session.bytes().all(|byte| byte.is_ascii_graphic()) {
        let found = "its id has characters that it must not have";
        warn(found, "visible ASCII only")
    } else if length < 16 {
        warn(
            format!("its id has only {length} characters"),
            "whoever guesses it is taken for the client: make it long and random",
        )
    } else {
        ok("gives a session id")
    };
    report.add(Http, "session", verdict);
    let mut headers = http.headers(&ping, Era::Legacy);
    replace(&mut headers, "mcp-session-id", NO_SESSION);
    let verdict = match status(http, Method::POST, headers, body).await {
        Some((StatusCode::NOT_FOUND, _)) => ok("refused with 404"),
        Some((status, _)) => warn(
            format!("answered with {status}"),
            "only 404 tells a client to begin anew, after a restart of the server for instance",
        ),
        None => warn("never answered", "refuse it with 404"),
    };
    report.add(Http, "unknown session", verdict);
    get_stream(http, report).await;
    let headers = http.headers(&Value::Null, Era::Legacy);
    let ended = status(http, Method::DELETE, headers, String::new()).await;
    let found = match ended {
        Some((status, _)) if status.is_success() => "a client can end its session".to_owned(),
        Some((status, _)) => format!("DELETE gives {status}"),
        None => "DELETE is never answered".to_owned(),
    };
    report.add(Http, "end of session", note(found));
}

async fn get_stream(http: &HttpChannel, report: &mut LabReport) {
    let mut headers = http.headers(&Value::Null, Era::Legacy);
    headers.retain(|(name, _)| *name != "content-type" && *name != "accept");
    headers.push(("accept", "text/event-stream".to_owned()));
    let todo = "an event stream, or 405";
    let verdict = match status(http, Method::GET, headers, String::new()).await {
        Some((StatusCode::METHOD_NOT_ALLOWED, _)) => {
            note("refused with 405: it says nothing by itself")
        }
        Some((status, kind)) if status.is_success() && kind.starts_with("text/event-stream") => {
            ok("opens a stream for what it says by itself")
        }
        Some((status, kind)) => warn(format!("answered with {status} {kind}"), todo),
        None => warn("never answered", todo),
    };
    report.add(Http, "GET", verdict);
}

fn replace(headers: &mut HeaderList, name: &str, value: &str) {
    for (_, old) in headers.iter_mut().filter(|(known, _)| *known == name) {
        value.clone_into(old);
    }
}

/// Checks a rule of 2026-07-28: the server compares headers with the body.
async fn modern_rules(dialog: &Dialog, http: &HttpChannel, report: &mut LabReport) {
    let message = dialog.request_as(json!(79), "server/discover", json!({}));
    let mut headers = http.headers(&message, Era::Modern);
    replace(&mut headers, "mcp-method", "tools/list");
    let sent = send(&http.endpoint, Method::POST, &headers, message.to_string());
    let verdict = if let Ok(Ok(response)) = timeout(STEP, sent).await {
        let status = response.status();
        let body = response.into_body().collect(LARGEST).await;
        let body: Value = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default();
        if status == StatusCode::BAD_REQUEST && body["error"]["code"] == code::HEADER_MISMATCH {
            ok("held against the body")
        } else {
            warn(
                format!("a header that contradicts the body gives {status}"),
                "2026-07-28 wants 400 and -32020: else what routes by headers can be deceived",
            )
        }
    } else {
        let found = "a header that contradicts the body gets no answer";
        warn(found, "400 and -32020")
    };
    report.add(Http, "headers", verdict);
}

/// Checks whether a page in a browser could access a server of this machine.
async fn guarded(url: &Url, endpoint: &Endpoint, report: &mut LabReport) {
    let host = url.host_str().and_then(Authority::parse);
    if !host.is_some_and(|authority| authority.host.is_loopback()) {
        return;
    }
    let http = HttpChannel::new(endpoint.clone());
    let ping = json!({"jsonrpc": "2.0", "id": 78, "method": "ping"});
    let mut headers = http.headers(&ping, Era::Legacy);
    headers.push(("origin", FOREIGN.to_owned()));
    let verdict = match status(&http, Method::POST, headers, ping.to_string()).await {
        Some((StatusCode::FORBIDDEN, _)) => ok("a foreign web page is refused"),
        _ => warn(
            "a foreign web page is not refused",
            "any site open in a browser here can use it: it should answer 403 to such an Origin",
        ),
    };
    report.add(Http, "origin", verdict);
}
