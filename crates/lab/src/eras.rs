//! Detects the eras that a server speaks: tries both, each as if it were the
//! only one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::dialog::{Channel, Dialog, Reaction, TimedReaction, client_info};
use crate::finding::{bad, note, ok, short, warn};
use crate::report::{LabReport, Section};
use wire::Era;

/// The server's description of itself in one era.
#[derive(Clone, Debug)]
pub(crate) struct HandshakeAnswer {
    pub era: Era,
    pub version: String,
    pub capabilities: Value,
    pub info: Value,
    pub instructions: Option<String>,
    pub took: Duration,
}

/// The reaction to the handshake if the server does not speak the era.
pub(crate) type HandshakeResult = Result<HandshakeAnswer, Reaction>;

impl HandshakeAnswer {
    pub(crate) fn offers(&self, capability: &str) -> bool {
        self.capabilities
            .get(capability)
            .is_some_and(|it| !it.is_null())
    }

    pub(crate) fn offers_flag(&self, capability: &str, flag: &str) -> bool {
        self.capabilities[capability][flag] == true
    }
}

/// Sends `server/discover`, and nothing else.
pub(crate) async fn modern(dialog: &mut Dialog, limit: Duration) -> HandshakeResult {
    dialog.era = Era::Modern;
    let TimedReaction { reaction, took } = dialog.ask("server/discover", json!({}), limit).await;
    let speaks = |result: &Value| {
        let versions = result["supportedVersions"].as_array();
        versions.is_some_and(|all| all.iter().any(|version| version == wire::MODERN))
    };
    match reaction {
        Reaction::Result(result) if speaks(&result) => Ok(HandshakeAnswer {
            era: Era::Modern,
            version: wire::MODERN.to_owned(),
            capabilities: result["capabilities"].clone(),
            info: result["_meta"]["io.modelcontextprotocol/serverInfo"].clone(),
            instructions: result["instructions"].as_str().map(str::to_owned),
            took,
        }),
        other => Err(other),
    }
}

/// Sends `initialize` and `notifications/initialized`.
pub(crate) async fn legacy(dialog: &mut Dialog, limit: Duration) -> HandshakeResult {
    dialog.era = Era::Legacy;
    let params = json!({
        "protocolVersion": wire::LEGACY[0],
        "capabilities": &dialog.capabilities,
        "clientInfo": client_info(),
    });
    let TimedReaction { reaction, took } = dialog.ask("initialize", params, limit).await;
    let result = match reaction {
        Reaction::Result(result) if result["protocolVersion"].is_string() => result,
        other => return Err(other),
    };
    let version = result["protocolVersion"].as_str().unwrap_or_default();
    if let Channel::Http(http) = &mut dialog.channel {
        http.version = Some(version.to_owned());
    }
    dialog.notify("notifications/initialized").await;
    Ok(HandshakeAnswer {
        era: Era::Legacy,
        version: version.to_owned(),
        capabilities: result["capabilities"].clone(),
        info: result["serverInfo"].clone(),
        instructions: result["instructions"].as_str().map(str::to_owned),
        took,
    })
}

/// Reports the outcome of both attempts.
pub(crate) fn tell(modern: &HandshakeResult, legacy: &HandshakeResult, report: &mut LabReport) {
    for (era, outcome) in [(Era::Modern, modern), (Era::Legacy, legacy)] {
        let words = match era {
            Era::Modern => "2026-07-28 (server/discover)",
            Era::Legacy => "up to 2025-11-25 (initialize)",
        };
        let (fact, verdict) = match outcome {
            Ok(HandshakeAnswer { version, took, .. }) => {
                let known = era == Era::Modern || wire::LEGACY.contains(&version.as_str());
                let verdict = if known {
                    ok(format!("speaks {version}, {} ms", took.as_millis()))
                } else {
                    let all = wire::LEGACY.join(", ");
                    bad(
                        format!("chose {version:?}, which Portway does not speak"),
                        format!("the server should answer with one of {all}"),
                    )
                };
                (json!(version), verdict)
            }
            Err(reaction) => {
                let reaction = reaction.in_words();
                let reaction = short(&reaction, 200);
                let found = format!("does not speak {words}: {reaction}");
                (Value::Null, note(found))
            }
        };
        report.fact(era.as_str(), fact);
        report.add(Section::Eras, format!("era.{}", era.as_str()), verdict);
    }
    let Some(hello) = modern.as_ref().ok().or(legacy.as_ref().ok()) else {
        return;
    };
    report.fact("serverInfo", hello.info.clone());
    let text = |name: &str| hello.info[name].as_str().unwrap_or("?").to_owned();
    let verdict = if hello.info["name"].is_string() {
        ok(format!("{} {}", text("name"), text("version")))
    } else {
        let found = "does not say its name and version";
        warn(found, "serverInfo helps people to know what they run")
    };
    report.add(Section::Eras, "server", verdict);
    if let Some(words) = &hello.instructions {
        let found = format!("{} characters for the model", words.chars().count());
        report.add(Section::Eras, "instructions", note(found));
    }
    if let (Ok(modern), Ok(legacy)) = (modern, legacy) {
        differing(modern, legacy, report);
    }
}

fn differing(modern: &HandshakeAnswer, legacy: &HandshakeAnswer, report: &mut LabReport) {
    let all = ["tools", "resources", "prompts", "completions", "logging"];
    let differ: Vec<&str> = all
        .into_iter()
        .filter(|name| modern.offers(name) != legacy.offers(name))
        .collect();
    if !differ.is_empty() {
        let found = format!("the eras differ in {}", differ.join(", "));
        report.add(Section::Eras, "era.differ", note(found));
    }
}
