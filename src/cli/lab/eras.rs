//! Which eras a server speaks: both are tried, each as if it were the only
//! one.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::line::{Channel, Line, Reply, Said, abilities, client_info};
use super::report::{Part, Report};
use crate::cli::finding::{Finding, short};
use wire::Era;

/// What a server says of itself in one era.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    pub era: Era,
    pub version: String,
    pub capabilities: Value,
    pub info: Value,
    pub instructions: Option<String>,
    pub took: Duration,
}

impl Hello {
    pub(super) fn offers(&self, capability: &str) -> bool {
        self.capabilities
            .get(capability)
            .is_some_and(|it| !it.is_null())
    }

    pub(super) fn offers_flag(&self, capability: &str, flag: &str) -> bool {
        self.capabilities[capability][flag] == true
    }
}

/// `server/discover`, and nothing else.
pub(super) async fn modern(line: &mut Line, limit: Duration) -> Result<Hello, Said> {
    line.era = Era::Modern;
    let Reply { said, took } = line.ask("server/discover", json!({}), limit).await;
    let speaks = |result: &Value| {
        let versions = result["supportedVersions"].as_array();
        versions.is_some_and(|all| all.iter().any(|version| version == wire::MODERN))
    };
    match said {
        Said::Result(result) if speaks(&result) => Ok(Hello {
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

/// `initialize` and `notifications/initialized`.
pub(super) async fn legacy(line: &mut Line, limit: Duration) -> Result<Hello, Said> {
    line.era = Era::Legacy;
    let params = json!({
        "protocolVersion": wire::LEGACY[0],
        "capabilities": abilities(),
        "clientInfo": client_info(),
    });
    let question = line.question("initialize", params);
    let began = tokio::time::Instant::now();
    let said = match &mut line.channel {
        Channel::Web(web) => {
            let opened = timeout(limit, web.open(&question)).await;
            opened.unwrap_or(Said::Silent(limit))
        }
        Channel::Pipe(pipe) => {
            let replies = pipe.ask_all(std::slice::from_ref(&question), limit).await;
            replies
                .into_iter()
                .next()
                .map_or(Said::Silent(limit), |reply| reply.said)
        }
    };
    let took = began.elapsed();
    let result = match said {
        Said::Result(result) if result["protocolVersion"].is_string() => result,
        other => return Err(other),
    };
    let version = result["protocolVersion"].as_str().unwrap_or_default();
    if let Channel::Web(web) = &mut line.channel {
        web.version = Some(version.to_owned());
    }
    line.notify("notifications/initialized", Value::Null).await;
    Ok(Hello {
        era: Era::Legacy,
        version: version.to_owned(),
        capabilities: result["capabilities"].clone(),
        info: result["serverInfo"].clone(),
        instructions: result["instructions"].as_str().map(str::to_owned),
        took,
    })
}

/// What both attempts came to.
pub(super) fn tell(
    modern: &Result<Hello, Said>,
    legacy: &Result<Hello, Said>,
    report: &mut Report,
) {
    for (era, outcome) in [(Era::Modern, modern), (Era::Legacy, legacy)] {
        let id = format!("era.{}", era.as_str());
        let words = match era {
            Era::Modern => "2026-07-28 (server/discover)",
            Era::Legacy => "up to 2025-11-25 (initialize)",
        };
        let (fact, finding) = match outcome {
            Ok(hello) => {
                let known = era == Era::Modern || wire::LEGACY.contains(&hello.version.as_str());
                let found = format!("speaks {}, {} ms", hello.version, hello.took.as_millis());
                let finding = match known {
                    true => Finding::ok(id, found),
                    false => Finding::bad(
                        id,
                        format!("chose {:?}, which Portway does not speak", hello.version),
                        format!(
                            "the server should answer with one of {}",
                            wire::LEGACY.join(", ")
                        ),
                    ),
                };
                (json!(hello.version), finding)
            }
            Err(said) => {
                let found = format!("does not speak {words}: {}", short(&said.in_words(), 200));
                (Value::Null, Finding::note(id, found))
            }
        };
        report.fact(era.as_str(), fact);
        report.add(Part::Eras, finding);
    }
    let Some(hello) = modern.as_ref().ok().or(legacy.as_ref().ok()) else {
        return;
    };
    report.fact("serverInfo", hello.info.clone());
    let text = |name: &str| hello.info[name].as_str().unwrap_or("?").to_owned();
    let id = "server";
    report.add(
        Part::Eras,
        match hello.info["name"].is_string() {
            true => Finding::ok(id, format!("{} {}", text("name"), text("version"))),
            false => Finding::warn(
                id,
                "does not say its name and version",
                "serverInfo helps people to know what they run",
            ),
        },
    );
    if let Some(words) = &hello.instructions {
        let found = format!("{} characters for the model", words.chars().count());
        report.add(Part::Eras, Finding::note("instructions", found));
    }
    if let (Ok(modern), Ok(legacy)) = (modern, legacy) {
        differing(modern, legacy, report);
    }
}

fn differing(modern: &Hello, legacy: &Hello, report: &mut Report) {
    let all = ["tools", "resources", "prompts", "completions", "logging"];
    let differ: Vec<&str> = all
        .into_iter()
        .filter(|name| modern.offers(name) != legacy.offers(name))
        .collect();
    if !differ.is_empty() {
        let found = format!("the eras differ in {}", differ.join(", "));
        report.add(Part::Eras, Finding::note("era.differ", found));
    }
}
