//! Checks the running gateway, if there is one: its address, its version,
//! whether it accepts the token, and which of its servers have failed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::DoctorArgs;
use crate::cli::Environment;
use crate::cli::failure::Failure;
use crate::cli::remote::Remote;
use crate::cli::servers::{items, text};
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
    let url = remote.url();
    let health = remote.health().await;
    if let (Ok(health), false) = (&health, remote.is_absent()) {
        running.answers = true;
        let version = same_version(version, text(health, "version"));
        running.findings.extend([version, condition(url, health)]);
        servers(&remote, &mut running).await;
        return running;
    }
    let found = format!("portway {version}");
    running.findings.push(Finding::ok("version", found));
    match health {
        Ok(_) => running.findings.push(foreign(url)),
        Err(Failure::Unreachable { reason, .. }) if !reason.contains("no Portway") => {
            let address = port(settings.listen);
            running
                .findings
                .extend([not_running(url, &reason), address]);
        }
        Err(_) => {
            let found = format!("something answers at {url}, but it is no Portway");
            let finding = Finding::bad("gateway", found, another(url));
            running.findings.push(finding);
        }
    }
    running
}

/// Includes the reasons of a gateway that is degraded.
fn condition(url: &str, health: &Value) -> Finding {
    if health["status"] == "ok" {
        return Finding::ok("gateway", format!("runs at {url}"));
    }
    let reasons = items(&health["reasons"]).iter();
    let reasons: Vec<&str> = reasons.flat_map(Value::as_str).collect();
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
    let asked = remote.ask_within(PATIENCE, Method::GET, "/api/mcp/servers", None);
    let list = match asked.await {
        Ok(list) => list,
        Err(error @ Failure::Denied { .. }) => {
            let error = error.to_string();
            let (found, todo) = error.split_once(": ").unwrap_or((&error, ""));
            running.findings.push(Finding::bad("token", found, todo));
            return;
        }
        Err(error) => {
            let found = format!("its servers cannot be listed: {error}");
            let finding = Finding::bad("servers", found, "see its log");
            running.findings.push(finding);
            return;
        }
    };
    let token = Finding::ok("token", "the running one takes it");
    running.findings.push(token);
    let list = items(&list);
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
        for gap in items(&server["containmentGaps"])
            .iter()
            .flat_map(Value::as_str)
        {
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
