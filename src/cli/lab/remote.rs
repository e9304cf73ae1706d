//! A server that is reached over HTTP: the conversation, and what HTTP itself
//! tells.

use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Host;

use super::bench::{Bench, STEP, Subject};
use super::eras::{self, Hello};
use super::line::{Channel, Question, Said, envelope};
use super::pipe::request;
use super::report::{Part, Report};
use super::web::{Address, Web, whole};
use super::{Wishes, cost, exam};
use crate::cli::finding::Finding;
use config::RemoteKind;
use wire::{Era, code};

/// No session is called that.
const NO_SESSION: &str = "portway-lab-no-such-session";
/// No page of a person's is served from there.
const FOREIGN: &str = "http://portway-lab.invalid";

pub(super) async fn examine(bench: &Bench, wishes: &Wishes, report: &mut Report) {
    let Some((kind, address)) = bench.remote() else {
        return;
    };
    let address = match address {
        Ok(address) => address,
        Err(reason) => {
            report.add(Part::Http, Finding::bad("url", reason, "mend the address"));
            return;
        }
    };
    if kind == RemoteKind::Sse && old(bench, &address, wishes, report).await {
        return;
    }
    let limit = bench.patience;
    let mut subject = Bench::reach(address.clone());
    let modern = eras::modern(&mut subject.line, limit).await;
    if let Err(said) = &modern
        && unreachable(said, &address, report).await
    {
        return;
    }
    let mut other = Bench::reach(address.clone());
    let legacy = eras::legacy(&mut other.line, limit).await;
    if modern.is_err() && legacy.is_err() {
        if kind == RemoteKind::Http && old(bench, &address, wishes, report).await {
            return;
        }
        eras::tell(&modern, &legacy, report);
        let said = legacy
            .as_ref()
            .err()
            .map(Said::in_words)
            .unwrap_or_default();
        let found = format!("no conversation: initialize gives {said}");
        let todo = "is this the address of an MCP server? Often it ends in /mcp or /sse";
        report.add(Part::Eras, Finding::bad("start", found, todo));
        return;
    }
    eras::tell(&modern, &legacy, report);
    let main = match (modern, &legacy) {
        (Ok(hello), _) => Some((&mut subject, hello)),
        (Err(_), Ok(hello)) => Some((&mut other, hello.clone())),
        (Err(_), Err(_)) => None,
    };
    if let Some((subject, hello)) = main {
        converse(subject, &hello, bench, wishes, report).await;
        forms(subject, report);
    }
    if legacy.is_ok()
        && let Channel::Web(web) = &other.line.channel
    {
        sessions(web, report).await;
    }
    guarded(&address, report).await;
}

async fn converse(
    subject: &mut Subject,
    hello: &Hello,
    bench: &Bench,
    wishes: &Wishes,
    report: &mut Report,
) {
    let greeted = hello.took;
    exam(subject, hello, bench, wishes, report, |subject, report| {
        let lists = subject.began.elapsed();
        let start = cost::Start {
            hello: greeted,
            lists,
        };
        cost::started(&start, report);
    })
    .await;
    if hello.era == Era::Modern
        && let Channel::Web(web) = &subject.line.channel
    {
        modern_rules(web, report).await;
    }
}

/// An address where nobody can be asked for anything.
async fn unreachable(said: &Said, address: &Address, report: &mut Report) -> bool {
    match said {
        Said::Gone(reason) => {
            let found = format!("not reached: {reason}");
            let todo = "start the server, or mend the address";
            report.add(Part::Http, Finding::bad("url", found, todo));
            true
        }
        Said::Refused {
            status: 401 | 403, ..
        } => {
            let scheme = challenge(address).await;
            let found = format!("wants a login{scheme}");
            let todo = "give it a header: \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"} \
                        (here: --header \"Authorization: Bearer …\")";
            report.fact("login", true);
            report.advice.login();
            report.add(Part::Http, Finding::bad("login", found, todo));
            true
        }
        Said::Refused {
            status: 300..=399, ..
        } => {
            let found = "redirects, and Portway follows no redirect with its credentials";
            report.add(
                Part::Http,
                Finding::bad("url", found, "write the address it leads to"),
            );
            true
        }
        _ => false,
    }
}

/// Which kind of login; its parameters are for a client.
async fn challenge(address: &Address) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let headers = [("content-type", "application/json".to_owned())];
    let sent = timeout(STEP, address.send(Method::POST, &headers, body)).await;
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

/// The old HTTP+SSE. Whether it is spoken here.
async fn old(bench: &Bench, address: &Address, wishes: &Wishes, report: &mut Report) -> bool {
    let Ok(mut subject) = Bench::reach_old(address).await else {
        return false;
    };
    let legacy = eras::legacy(&mut subject.line, bench.patience).await;
    let Ok(hello) = &legacy else { return false };
    report.transport = "sse";
    report.advice.sse();
    let modern = Err(Said::Refused {
        status: 405,
        text: "HTTP+SSE is of 2024-11-05".into(),
    });
    eras::tell(&modern, &legacy, report);
    let found = "HTTP+SSE, which newer clients no longer speak";
    let todo = "Portway does; the server should offer Streamable HTTP as well";
    report.add(Part::Http, Finding::note("transport", found).with(todo));
    converse(&mut subject, hello, bench, wishes, report).await;
    true
}

fn forms(subject: &Subject, report: &mut Report) {
    let Channel::Web(web) = &subject.line.channel else {
        return;
    };
    let forms = web.forms.lock();
    report.fact("jsonAnswers", forms.json);
    report.fact("streamAnswers", forms.stream);
    let found = match (forms.json, forms.stream) {
        (_, 0) => "answers as JSON".to_owned(),
        (0, _) => "answers as event streams".to_owned(),
        (json, stream) => format!("{json} answers as JSON, {stream} as event streams"),
    };
    report.add(
        Part::Http,
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
    web: &Web,
    method: Method,
    headers: Vec<(&'static str, String)>,
    body: String,
) -> Option<(StatusCode, String)> {
    let sent = timeout(STEP, web.address.send(method, &headers, body)).await;
    let response = sent.ok()?.ok()?;
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    Some((response.status(), kind))
}

/// What a legacy server does with sessions.
async fn sessions(web: &Web, report: &mut Report) {
    let ping = json!({"jsonrpc": "2.0", "id": 77, "method": "ping"});
    let body = ping.to_string();
    let Some(session) = web.session.clone() else {
        report.add(
            Part::Http,
            Finding::note("session", "gives none: keeps nothing between requests"),
        );
        get_stream(web, report).await;
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
    report.add(Part::Http, finding);
    let mut headers = web.headers(&ping, Era::Legacy);
    for (name, value) in &mut headers {
        if *name == "mcp-session-id" {
            *value = NO_SESSION.to_owned();
        }
    }
    let unknown = status(web, Method::POST, headers, body).await;
    report.add(
        Part::Http,
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
    get_stream(web, report).await;
    let headers = web.headers(&Value::Null, Era::Legacy);
    let ended = status(web, Method::DELETE, headers, String::new()).await;
    let found = match ended {
        Some((status, _)) if status.is_success() => "a client can end its session".to_owned(),
        Some((status, _)) => format!("DELETE gives {status}"),
        None => "DELETE is never answered".to_owned(),
    };
    report.add(Part::Http, Finding::note("end of session", found));
}

async fn get_stream(web: &Web, report: &mut Report) {
    let mut headers = web.headers(&Value::Null, Era::Legacy);
    headers.retain(|(name, _)| *name != "content-type" && *name != "accept");
    headers.push(("accept", "text/event-stream".to_owned()));
    let got = status(web, Method::GET, headers, String::new()).await;
    report.add(
        Part::Http,
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

/// What 2026-07-28 asks of a server: headers are held against the body.
async fn modern_rules(web: &Web, report: &mut Report) {
    let mut params = json!({});
    envelope(&mut params);
    let message = request(&Question {
        id: json!(79),
        method: "server/discover",
        params,
    });
    let mut headers = web.headers(&message, Era::Modern);
    for (name, value) in &mut headers {
        if *name == "mcp-method" {
            *value = "tools/list".to_owned();
        }
    }
    let sent = timeout(
        STEP,
        web.address
            .send(Method::POST, &headers, message.to_string()),
    )
    .await;
    let answered = match sent {
        Ok(Ok(response)) => {
            let status = response.status();
            let bytes = whole(&mut response.into_body()).await;
            let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Some((status, body["error"]["code"].as_i64()))
        }
        _ => None,
    };
    report.add(
        Part::Http,
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

/// Whether a page in a browser could talk to a server of this machine.
async fn guarded(address: &Address, report: &mut Report) {
    let local = match address.url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if !local {
        return;
    }
    let web = Web::new(address.clone());
    let ping = json!({"jsonrpc": "2.0", "id": 78, "method": "ping"});
    let mut headers = web.headers(&ping, Era::Legacy);
    headers.push(("origin", FOREIGN.to_owned()));
    let answered = status(&web, Method::POST, headers, ping.to_string()).await;
    report.add(Part::Http, match answered {
        Some((StatusCode::FORBIDDEN, _)) => Finding::ok("origin", "a foreign web page is refused"),
        _ => Finding::warn(
            "origin",
            "a foreign web page is not refused",
            "any site open in a browser here can use it: it should answer 403 to such an Origin",
        ),
    });
}
