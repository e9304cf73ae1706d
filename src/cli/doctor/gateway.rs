//! Checks the running gateway, if there is one: its address, its version,
//! whether it accepts the token, and which of its servers have failed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::DoctorArgs;
use crate::cli::Environment;
use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use config::settings::Settings;
use lab::{Finding, counted, short};

/// For each request; the gateway is usually on the same machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Characters of a server's error.
const REASON: usize = 600;

#[derive(Default)]
pub(super) struct RunningGateway {
    pub findings: Vec<Finding>,
    /// Findings about its servers.
    pub servers: Vec<Finding>,
    pub answers: bool,
}

pub(super) async fn find(
    args: &DoctorArgs,
    settings: &Settings,
    environment: &Environment,
) -> RunningGateway {
    let mut running = RunningGateway::default();
    let version = env!("CARGO_PKG_VERSION");
    let remote = match Remote::new(&args.remote, environment) {
        Ok(remote) => remote,
        Err(error) => {
            let todo = "set --url or PORTWAY_URL to the address it prints at its start";
            let finding = Finding::bad("gateway", error.to_string(), todo);
            running.findings.push(finding);
            return running;
        }
    };
    let url = remote.url().to_owned();
    match remote.health().await {
        Ok(_) if remote.is_absent() => {
            let found = format!("portway {version}");
            running.findings.push(Finding::ok("version", found));
            running.findings.push(foreign(&url));
        }
        Ok(health) => {
            running.answers = true;
            let theirs = health["version"].as_str().unwrap_or_default();
            running.findings.push(same_version(version, theirs));
            running.findings.push(condition(&url, &health));
            servers(&remote, &mut running).await;
        }
        Err(Failure::Unreachable { reason, .. }) if !reason.contains("no Portway") => {
            let found = format!("portway {version}");
            running.findings.push(Finding::ok("version", found));
            running.findings.push(not_running(&url, &reason));
            running.findings.push(port(settings.listen));
        }
        _ => {
            let found = format!("portway {version}");
            running.findings.push(Finding::ok("version", found));
            let found = format!("something answers at {url}, but it is no Portway");
            running
                .findings
                .push(Finding::bad("gateway", found, another(&url)));
        }
    }
    running
}

async fn ask(remote: &Remote, path: &str) -> Result<Value, Failure> {
    match tokio::time::timeout(PATIENCE, remote.get(path)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::unreachable(
            remote.url(),
            format!("no answer within {} s", PATIENCE.as_secs()),
        )),
    }
}

/// Includes the reasons of a gateway that is degraded.
fn condition(url: &str, health: &Value) -> Finding {
    if health["status"] == "ok" {
        return Finding::ok("gateway", format!("runs at {url}"));
    }
    let reasons = health["reasons"].as_array();
    let reasons: Vec<&str> = reasons
        .into_iter()
        .flatten()
        .flat_map(Value::as_str)
        .collect();
    Finding::bad(
        "gateway",
        format!("runs at {url}, but is degraded: {}", reasons.join("; ")),
        "it recovers by itself once the cause is fixed; its log says more",
    )
}

fn same_version(ours: &str, theirs: &str) -> Finding {
    if ours == theirs {
        return Finding::ok(
            "version",
            format!("portway {ours}, and so is the running one"),
        );
    }
    Finding::warn(
        "version",
        format!("portway {ours}; the running one is {theirs}"),
        "restart it to run this version",
    )
}

fn foreign(url: &str) -> Finding {
    let found = format!("none runs for this project; the one at {url} is another one's");
    let todo = "start this one at a port of its own: `portway --listen 127.0.0.1:0`, \
                or set PORTWAY_LISTEN";
    Finding::warn("gateway", found, todo)
}

fn not_running(url: &str, reason: &str) -> Finding {
    let found = format!("none answers at {url}: {reason}");
    Finding::note("gateway", found).with("start one with `portway`")
}

/// Whether a gateway could bind its address. Binds it for a moment.
fn port(listen: SocketAddr) -> Finding {
    let error = match TcpListener::bind(listen) {
        Ok(_) => return Finding::ok("address", format!("{listen} is free")),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::AddrInUse => Finding::bad(
            "address",
            format!("{listen} is taken by another program"),
            another(&listen.to_string()),
        ),
        ErrorKind::PermissionDenied => Finding::bad(
            "address",
            format!("{listen} may not be listened on by this user"),
            "choose a port above 1023 with --listen or PORTWAY_LISTEN",
        ),
        _ => Finding::bad(
            "address",
            format!("{listen} cannot be listened on: {error}"),
            "choose an address of this machine with --listen or PORTWAY_LISTEN",
        ),
    }
}

fn another(place: &str) -> String {
    let port = place.rsplit(':').next().unwrap_or_default();
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    format!(
        "`ss -ltnp 'sport = :{port}'` shows whose it is; \
         `portway --listen 127.0.0.1:0` (or PORTWAY_LISTEN) takes a free port"
    )
}

async fn servers(remote: &Remote, running: &mut RunningGateway) {
    let list = match ask(remote, "/api/mcp/servers").await {
        Ok(list) => list,
        Err(error @ Failure::Denied { .. }) => {
            let error = error.to_string();
            let (found, todo) = error.split_once(": ").unwrap_or((&error, ""));
            running.findings.push(Finding::bad("token", found, todo));
            return;
        }
        Err(Failure::Refused {
            status, message, ..
        }) if status != StatusCode::OK => {
            let found = format!("its servers cannot be listed: {message}");
            running
                .findings
                .push(Finding::bad("servers", found, "see its log"));
            return;
        }
        Err(error) => {
            let found = format!("its servers cannot be listed: {error}");
            running
                .findings
                .push(Finding::bad("servers", found, "see its log"));
            return;
        }
    };
    running
        .findings
        .push(Finding::ok("token", "the running one takes it"));
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let up = list.iter().filter(|server| server["status"] == "connected");
    let found = format!(
        "{} of {} connected",
        up.count(),
        counted(list.len(), "server")
    );
    running.servers.push(Finding::note("running", found));
    for server in list {
        running.servers.extend(trouble(server));
    }
    running.servers.extend(gaps(list));
}

/// The gaps in the containment of running servers; servers with the same gap
/// share a finding.
fn gaps(list: &[Value]) -> Vec<Finding> {
    let mut gaps: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for server in list {
        let its = server["containmentGaps"].as_array().into_iter().flatten();
        for gap in its.flat_map(Value::as_str) {
            let name = server["name"].as_str().unwrap_or("?");
            gaps.entry(gap).or_default().push(name);
        }
    }
    let gaps = gaps.into_iter();
    gaps.map(|(gap, names)| super::servers::gap(&names.join(", "), gap))
        .collect()
}

fn trouble(server: &Value) -> Option<Finding> {
    let name = server["name"].as_str().unwrap_or("?");
    let wanted = server["enabled"] != false && server["state"] != "stopped";
    let reason = server["error"].as_str().unwrap_or("no reason is given");
    let found = format!("{name}: {}", short(reason, REASON));
    match server["status"].as_str() {
        Some("error") => {
            let todo = format!(
                "`portway lab {name}` looks into it, `portway logs {name}` shows what it wrote"
            );
            Some(Finding::bad("server", found, todo))
        }
        Some("disconnected") if wanted && server["error"].is_string() => Some(Finding::warn(
            "server",
            found,
            format!("it is tried again; `portway logs {name}` shows what it wrote"),
        )),
        _ => None,
    }
}
