//! Checks the needs of the definitions: variables, programs, addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::{Request, StatusCode, header};
use indexmap::IndexMap;
use url::{Position, Url};

use super::programs;
use crate::cli::Environment;
use config::settings::Settings;
use config::{
    self, Containment, Launch, LaunchTarget, Problem, Redactor, ServerSpec, TransportKind, view,
};
use lab::{Finding, counted};
use upstream::containment::{self, ContainmentStep};
use upstream::{HttpClient, process};

/// The limit for one address, from connect to the head of the response.
const REACH: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 32;

/// A definition with its variables expanded as far as possible.
struct LaunchableServer<'s> {
    name: &'s str,
    launch: Launch,
    title: String,
}

pub(super) async fn examine(
    servers: &[(String, ServerSpec)],
    settings: &Settings,
    environment: &Environment,
) -> Vec<Finding> {
    let (on, off): (Vec<_>, Vec<_>) = servers.iter().partition(|(_, spec)| spec.enabled);
    let mut findings = Vec::new();
    let mut ready = Vec::new();
    for (name, spec) in on {
        let lookup = |variable: &str| environment.get(variable).cloned();
        match config::expand(spec, &lookup) {
            Ok(launch) => ready.push(LaunchableServer {
                name,
                launch,
                title: view::title(spec),
            }),
            Err(problems) => {
                findings.extend(problems.iter().map(|one| unset(name, one)));
                ready.extend(command_alone(name, spec, &lookup));
            }
        }
    }
    let remote =
        |ready: &&LaunchableServer<'_>| matches!(ready.launch.target, LaunchTarget::Remote { .. });
    let urls = futures_util::stream::iter(ready.iter().filter(remote).map(reach));
    let (commands, reached) = tokio::join!(
        commands(&ready, settings, environment),
        urls.buffered(AT_ONCE).collect::<Vec<_>>()
    );
    findings.extend(commands);
    findings.extend(reached);
    if !off.is_empty() {
        let names: Vec<&str> = off.iter().map(|(name, _)| name.as_str()).collect();
        let (count, names) = (counted(off.len(), "disabled server"), names.join(", "));
        let found = format!("{count} not looked at: {names}");
        findings.push(Finding::note("disabled", found));
    }
    findings
}

/// The containment gaps that definitions declare, for servers that do not run.
pub(super) fn gaps(servers: &[(String, ServerSpec)]) -> Vec<Finding> {
    let stdio = |spec: &ServerSpec| spec.transport() == TransportKind::Stdio;
    let on = servers
        .iter()
        .filter(|(_, spec)| spec.enabled && stdio(spec));
    on.flat_map(|(name, spec)| {
        // The step that `auto` selects is known only when the server runs.
        let step = ContainmentStep::named(spec.containment).unwrap_or(ContainmentStep::Namespace);
        let gaps = containment::gaps(step, spec.privileges);
        gaps.into_iter().map(|text| gap(name, text))
    })
    .collect()
}

pub(super) fn gap(names: &str, gap: &str) -> Finding {
    let todo = "take \"containment\" and \"privileges\" out of the definition to have the \
                strongest that works here (see \"This machine\")";
    Finding::warn("containment", format!("{names}: {gap}"), todo)
}

/// The command alone, which can be checked although other variables are unset.
fn command_alone<'s>(
    name: &'s str,
    spec: &ServerSpec,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Option<LaunchableServer<'s>> {
    let config::Target::Stdio {
        command, env, cwd, ..
    } = &spec.target
    else {
        return None;
    };
    let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
    let bare = ServerSpec::new(config::Target::Stdio {
        command: command.clone(),
        args: Vec::new(),
        // Programs are looked up in it.
        env: env.get_key_value("PATH").map(owned).into_iter().collect(),
        cwd: cwd.clone(),
    });
    Some(LaunchableServer {
        name,
        launch: config::expand(&bare, lookup).ok()?,
        title: view::title(spec),
    })
}

/// Splits the problem's message, which names the variable and the fix.
fn unset(name: &str, problem: &Problem) -> Finding {
    let (found, todo) = match problem.message.split_once("; ") {
        Some((found, todo)) => (found, todo),
        None => (problem.message.as_str(), "fix the definition"),
    };
    let found = format!("{name}: {}: {found}", problem.field);
    Finding::bad("variable", found, todo)
}

/// Checks each program once, however many servers use it.
async fn commands(
    ready: &[LaunchableServer<'_>],
    settings: &Settings,
    environment: &Environment,
) -> Vec<Finding> {
    let base: Arc<Vec<(String, String)>> = Arc::new(environment.clone().into_iter().collect());
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut tools = BTreeMap::new();
    let mut findings = Vec::new();
    for one in ready {
        let project = &settings.project;
        let command = process::ProcessCommand::of(&one.launch, project, &base, Containment::Auto);
        let Some(command) = command else { continue };
        match command.find_program().await {
            Ok(path) => {
                let path = path.display().to_string();
                found.entry(path.clone()).or_default().insert(one.name);
                tools.insert(path, command);
            }
            Err(error) => {
                let redactor = Redactor::new(one.launch.expanded_values());
                let text = redactor.redact(&error.to_string()).into_owned();
                let found = format!("{}: `{}`: {text}", one.name, one.title);
                let todo = programs::hint(&command.program);
                findings.push(Finding::bad("command", found, todo));
            }
        }
    }
    let versions = programs::versions(&tools).await;
    for (path, names) in found {
        let names: Vec<&str> = names.into_iter().collect();
        let of = format!("for {}", names.join(", "));
        findings.push(match versions.get(&path) {
            Some(Ok(version)) => programs::judged(&path, version, &of),
            Some(Err(reason)) => Finding::warn(
                "command",
                format!("{path} does not tell its version: {reason} ({of})"),
                "run it by hand with --version",
            ),
            None => Finding::ok("command", format!("{path} {of}")),
        });
    }
    findings
}

async fn reach(ready: &LaunchableServer<'_>) -> Finding {
    let LaunchTarget::Remote { url, headers, kind } = &ready.launch.target else {
        return Finding::ok("url", ready.title.clone());
    };
    let transport = kind.transport().as_str();
    let shown = format!("{}: {} ({transport})", ready.name, ready.title);
    let todo = "start it, or fix the URL; `portway lab URL` tests it";
    match tokio::time::timeout(REACH, head(url, headers)).await {
        Ok(Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)) => Finding::bad(
            "url",
            format!("{shown} wants a login"),
            "give it a header: \"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"}",
        ),
        Ok(Ok(status)) if status.is_server_error() => Finding::warn(
            "url",
            format!("{shown} answers {status}"),
            "look at the server's own log",
        ),
        Ok(Ok(_)) => Finding::ok("url", format!("{shown} is reached")),
        Ok(Err(reason)) => {
            let redactor = Redactor::new(ready.launch.secrets());
            let reason = redactor.redact(&reason);
            Finding::bad("url", format!("{shown} is not reached: {reason}"), todo)
        }
        Err(_) => {
            let found = format!("{shown} does not answer within {} s", REACH.as_secs());
            Finding::bad("url", found, todo)
        }
    }
}

/// The status of the response to a harmless request: any status will do.
async fn head(url: &Url, headers: &IndexMap<String, String>) -> Result<StatusCode, String> {
    let client = HttpClient::new(url).map_err(|error| error.to_string())?;
    let mut request = Request::get(&url[Position::BeforePath..Position::AfterQuery])
        .header(header::ACCEPT, "text/event-stream");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request
        .body(bytes::Bytes::new())
        .map_err(|error| error.to_string())?;
    match client.request(request).await {
        Ok(response) => Ok(response.status()),
        Err(error) => Err(error.root_cause().to_string()),
    }
}
