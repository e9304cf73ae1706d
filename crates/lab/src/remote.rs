//! Checks of a server that is reached over HTTP: the conversation, and the
//! behavior of HTTP itself.

use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::{Host, Url};

use crate::dialog::{Channel, Dialog, Reaction};
use crate::eras::{self, HandshakeAnswer};
use crate::finding::Finding;
use crate::http::{HeaderList, HttpChannel, LARGEST, content_type, send};
use crate::launcher::{Launcher, STEP, ServerCopy};
use crate::report::{LabReport, Section};
use crate::{Experiment, cost, examine_dialog};
use config::RemoteKind;
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
            report.bad(Section::Http, "url", error.to_string(), "fix the URL");
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
    if modern.is_err() && legacy.is_err() {
        if kind == RemoteKind::Http && old(launcher, &endpoint, experiment, report).await {
            return;
        }
        eras::tell(&modern, &legacy, report);
        let reaction = legacy
            .as_ref()
            .err()
            .map(Reaction::in_words)
            .unwrap_or_default();
        let found = format!("no conversation: initialize gives {reaction}");
        let todo = "is this the address of an MCP server? Often it ends in /mcp or /sse";
        report.bad(Section::Eras, "start", found, todo);
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
    let greeted = hello.took;
    examine_dialog(copy, hello, experiment, report, |copy, report| {
        let lists = copy.began.elapsed();
        let start = cost::StartTimes {
            hello: greeted,
            lists,
        };
        cost::started(&start, report);
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
    match reaction {
        Reaction::Gone(_) => {
            let todo = "start the server, or fix the URL";
            report.bad(Section::Http, "url", reaction.in_words(), todo);
            true
        }
        Reaction::Refused {
            status: 401 | 403, ..
        } => {
            let scheme = challenge(endpoint).await;
            let found = format!("wants a login{scheme}");
            let todo = "give it a header: \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"} \
                        (here: --header \"Authorization: Bearer …\")";
            report.fact("login", true);
            report.advice.login();
            report.bad(Section::Http, "login", found, todo);
            true
        }
        Reaction::Refused {
            status: 300..=399, ..
        } => {
            let found = "redirects, and Portway follows no redirect with its credentials";
            report.bad(Section::Http, "url", found, "write the address it leads to");
            true
        }
        _ => false,
    }
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
    report.add(Section::Http, Finding::note("transport", found).with(todo));
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
    report.add(
        Section::Http,
        match forms.odd.first() {
            None => Finding::ok("content types", found),
            Some(kind) => Finding::bad(
                "content types",
                format!("{found}; {} are no message ({kind})", forms.odd.len()),
                "answers are application/json or text/event-stream",
            ),
        },
    );
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
        report.note(
            Section::Http,
            "session",
            "gives none: keeps nothing between requests",
        );
        get_stream(http, report).await;
        return;
    };
    let fits = session.bytes().all(|byte| byte.is_ascii_graphic());
    let finding = match (fits, session.len() >= 16) {
        (false, _) => Finding::warn(
            "session",
            "its id has characters that it must not have",
            "visible ASCII only",
        ),
        (true, false) => Finding::warn(
            "session",
            format!("its id has only {} characters", session.len()),
            "whoever guesses it is taken for the client: make it long and random",
        ),
        (true, true) => Finding::ok("session", "gives a session id"),
    };
    report.add(Section::Http, finding);
    let mut headers = http.headers(&ping, Era::Legacy);
    for (name, value) in &mut headers {
        if *name == "mcp-session-id" {
            *value = NO_SESSION.to_owned();
        }
    }
    let unknown = status(http, Method::POST, headers, body).await;
    report.add(
        Section::Http,
        match unknown {
            Some((StatusCode::NOT_FOUND, _)) => Finding::ok("unknown session", "refused with 404"),
            Some((status, _)) => Finding::warn(
                "unknown session",
                format!("answered with {status}"),
                "only 404 tells a client to begin anew, after a restart of the server for instance",
            ),
            None => Finding::warn("unknown session", "never answered", "refuse it with 404"),
        },
    );
    get_stream(http, report).await;
    let headers = http.headers(&Value::Null, Era::Legacy);
    let ended = status(http, Method::DELETE, headers, String::new()).await;
    let found = match ended {
        Some((status, _)) if status.is_success() => "a client can end its session".to_owned(),
        Some((status, _)) => format!("DELETE gives {status}"),
        None => "DELETE is never answered".to_owned(),
    };
    report.note(Section::Http, "end of session", found);
}

async fn get_stream(http: &HttpChannel, report: &mut LabReport) {
    let mut headers = http.headers(&Value::Null, Era::Legacy);
    headers.retain(|(name, _)| *name != "content-type" && *name != "accept");
    headers.push(("accept", "text/event-stream".to_owned()));
    let got = status(http, Method::GET, headers, String::new()).await;
    report.add(
        Section::Http,
        match got {
            Some((StatusCode::METHOD_NOT_ALLOWED, _)) => {
                Finding::note("GET", "refused with 405: it says nothing by itself")
            }
            Some((status, kind))
                if status.is_success() && kind.starts_with("text/event-stream") =>
            {
                Finding::ok("GET", "opens a stream for what it says by itself")
            }
            Some((status, kind)) => Finding::warn(
                "GET",
                format!("answered with {status} {kind}"),
                "an event stream, or 405",
            ),
            None => Finding::warn("GET", "never answered", "an event stream, or 405"),
        },
    );
}

/// Checks a rule of 2026-07-28: the server compares headers with the body.
async fn modern_rules(dialog: &Dialog, http: &HttpChannel, report: &mut LabReport) {
    let request = dialog.request_as(json!(79), "server/discover", json!({}));
    let message = request.to_message();
    let mut headers = http.headers(&message, Era::Modern);
    for (name, value) in &mut headers {
        if *name == "mcp-method" {
            *value = "tools/list".to_owned();
        }
    }
    let sent = send(&http.endpoint, Method::POST, &headers, message.to_string());
    let sent = timeout(STEP, sent).await;
    let answered = match sent {
        Ok(Ok(response)) => {
            let status = response.status();
            let bytes = response
                .into_body()
                .collect(LARGEST)
                .await
                .unwrap_or_default();
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Some((status, body["error"]["code"].as_i64()))
        }
        _ => None,
    };
    report.add(
        Section::Http,
        match answered {
            Some((StatusCode::BAD_REQUEST, Some(code::HEADER_MISMATCH))) => {
                Finding::ok("headers", "held against the body")
            }
            Some((status, _)) => Finding::warn(
                "headers",
                format!("a header that contradicts the body gives {status}"),
                "2026-07-28 wants 400 and -32020: else what routes by headers can be deceived",
            ),
            None => Finding::warn(
                "headers",
                "a header that contradicts the body gets no answer",
                "400 and -32020",
            ),
        },
    );
}

/// Checks whether a page in a browser could access a server of this machine.
async fn guarded(url: &Url, endpoint: &Endpoint, report: &mut LabReport) {
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if !local {
        return;
    }
    let http = HttpChannel::new(endpoint.clone());
    let ping = json!({"jsonrpc": "2.0", "id": 78, "method": "ping"});
    let mut headers = http.headers(&ping, Era::Legacy);
    headers.push(("origin", FOREIGN.to_owned()));
    let answered = status(&http, Method::POST, headers, ping.to_string()).await;
    report.add(Section::Http, match answered {
        Some((StatusCode::FORBIDDEN, _)) => Finding::ok("origin", "a foreign web page is refused"),
        _ => Finding::warn(
            "origin",
            "a foreign web page is not refused",
            "any site open in a browser here can use it: it should answer 403 to such an Origin",
        ),
    });
}
