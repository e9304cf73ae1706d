//! `portway upgrade --check`: whether there is a newer version. Nothing is asked
//! of anybody unless the user names an index.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use http::{Method, Uri};
use serde::Deserialize;
use url::Url;

use super::Environment;
use super::failure::{CliResult, CommandResult, Failure};
use super::terminal::Terminal;
use upstream::{Headers, HttpClient};

const LIMIT: Duration = Duration::from_secs(20);
/// No index is this large.
const LARGEST: usize = 1 << 20;

#[derive(Debug, Args)]
pub struct UpgradeArgs {
    /// Only compare; the package manager that installed Portway upgrades it
    #[arg(long, required = true)]
    check: bool,
    /// URL or file of the index, which each release has: index.json
    #[arg(long, value_name = "INDEX", required = true)]
    index: String,
}

/// The file `index.json` of a release.
#[derive(Debug, Deserialize)]
struct ReleaseIndex {
    version: String,
    /// The date of the release.
    #[serde(default)]
    date: String,
    /// Where it is described.
    #[serde(default)]
    url: String,
}

/// Exits with 1 if there is a newer version.
pub(super) async fn main(args: &UpgradeArgs, environment: &Environment) -> CommandResult {
    let text = match args.index.starts_with("http://") || args.index.starts_with("https://") {
        true => fetch(&args.index).await?,
        false => read(Path::new(&args.index))?,
    };
    let index: ReleaseIndex = serde_json::from_str(&text)
        .map_err(|error| Failure::other(format!("{}: {error}", args.index)))?;
    let own = env!("CARGO_PKG_VERSION");
    let newest = numbers(&index.version)
        .ok_or_else(|| Failure::other(format!("{}: version: not a version", args.index)))?;
    let newer = Some(newest) > numbers(own);
    let mut out = Terminal::new(environment);
    if newer {
        out.line(&format!(
            "{} is newer than {own} {}",
            index.version, index.date
        ));
        out.line(&index.url);
    } else {
        out.line(&format!("{own} is the newest version"));
    }
    out.done(!newer)
}

async fn fetch(index: &str) -> CliResult<String> {
    let bad = |error: &dyn std::fmt::Display| Failure::other(format!("{index}: {error}"));
    let url = Url::parse(index).map_err(|error| bad(&error))?;
    let uri = Uri::try_from(index).map_err(|error| bad(&error))?;
    let http = HttpClient::new(&url).map_err(|error| bad(&error))?;
    let answer = async {
        let headers = Headers::default();
        let sent = http.send(&Method::GET, &uri, &headers, &[]);
        let response = sent.await.map_err(|error| bad(&error.root_cause()))?;
        if !response.status().is_success() {
            return Err(bad(&format!("answered {}", response.status())));
        }
        let body = response.into_body().collect(LARGEST).await;
        let body = body.map_err(|error| bad(&error))?;
        String::from_utf8(body.into()).map_err(|error| bad(&error))
    };
    let late = |_| bad(&format!("no answer within {} s", LIMIT.as_secs()));
    tokio::time::timeout(LIMIT, answer).await.map_err(late)?
}

fn read(file: &Path) -> CliResult<String> {
    std::fs::read_to_string(file).map_err(|error| Failure::of_path(file, error))
}

/// `1.2.3`, and whether it is a full version: `1.2.3-rc.1` comes before it.
fn numbers(version: &str) -> Option<([u64; 3], bool)> {
    let (numbers, before) = version.split_once('-').unwrap_or((version, ""));
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let found = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some((found, before.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u2_versions_are_compared_by_their_numbers() {
        assert!(numbers("0.10.0") > numbers("0.9.9"));
        assert!(numbers("1.0.0") > numbers("1.0.0-rc.2"));
        assert_eq!(numbers("1.0"), None);
        assert_eq!(numbers("1.0.0.0"), None);
        assert_eq!(numbers("1.x.0"), None);
    }
}
