//! The runtimes of servers: hints for missing ones, versions of the others.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncReadExt;

use lab::{Finding, short};
use upstream::process::ProcessCommand;

/// `npx --version` starts a whole Node process.
const PATIENCE: Duration = Duration::from_secs(10);
const AT_ONCE: usize = 4;
const LONGEST: u64 = 4096;

/// The oldest version that current MCP servers support.
const OLDEST_NODE: u64 = 18;

const RUNTIMES: &[&str] = &[
    "node", "npx", "npm", "bun", "bunx", "deno", "python", "python3", "uv", "uvx", "pipx",
    "docker", "podman",
];

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The hint for a program that is not found.
pub(super) fn hint(program: &str) -> &'static str {
    match base(program) {
        "npx" | "npm" | "node" => {
            "install Node 20 or newer (nodejs.org); with nvm or the like, give the full path: \
             services do not see what a shell's profile adds to PATH"
        }
        "uvx" | "uv" => "install uv (docs.astral.sh/uv), and have ~/.local/bin on the PATH",
        "python" => "install Python 3; many systems only have python3",
        "python3" | "pipx" => "install Python 3",
        "docker" | "podman" => "install it, and let this user reach its daemon",
        "bun" | "bunx" => "install Bun (bun.sh), and have ~/.bun/bin on the PATH",
        "deno" => "install Deno (deno.com), and have ~/.deno/bin on the PATH",
        _ => "install it, put its directory on the PATH, or write its full path",
    }
}

/// The versions that known runtimes print, by path.
pub(super) async fn versions(
    found: &BTreeMap<String, ProcessCommand>,
) -> BTreeMap<String, Result<String, String>> {
    let known = found
        .iter()
        .filter(|(path, _)| RUNTIMES.contains(&base(path)));
    let asked = known.map(|(path, command)| async move {
        let version = tokio::time::timeout(PATIENCE, version(path, command)).await;
        let late = || Err(format!("no answer within {} s", PATIENCE.as_secs()));
        (path.clone(), version.unwrap_or_else(|_| late()))
    });
    let asked = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
    asked.collect().await
}

async fn version(path: &str, command: &ProcessCommand) -> Result<String, String> {
    let mut child = tokio::process::Command::new(path)
        .arg("--version")
        .env_clear()
        .envs(command.env.iter().cloned())
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(LONGEST);
        stdout
            .read_to_end(&mut said)
            .await
            .map_err(|error| error.to_string())?;
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&said);
    let line = text.lines().next().unwrap_or_default().trim();
    match (status.success(), line.is_empty()) {
        (true, false) => Ok(short(line, 60).into_owned()),
        (true, true) => Err("it says nothing".into()),
        (false, _) => Err(format!("it ends with {status}")),
    }
}

/// Reports a runtime that is too old before a server crashes on it.
pub(super) fn judged(path: &str, version: &str, of: &str) -> Finding {
    let found = format!("{path} {version} {of}");
    let major: Option<u64> = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    match (base(path), major) {
        ("node", Some(major)) if major < OLDEST_NODE => {
            Finding::warn("command", found, "install Node 20 or newer")
        }
        ("python" | "python3", _) if version.starts_with("Python 2") => {
            Finding::warn("command", found, "install Python 3")
        }
        _ => Finding::ok("command", found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Severity;

    #[test]
    fn k7_doctor_knows_the_runtimes_and_what_is_too_old() {
        assert!(hint("npx").contains("Node"));
        assert!(hint("/opt/bin/uvx").contains("uv"));
        assert!(hint("my-server").contains("PATH"));
        for (path, version, mark) in [
            ("/usr/bin/node", "v16.20.0", Severity::Warn),
            ("/usr/bin/node", "v22.1.0", Severity::Ok),
            ("/usr/bin/python", "Python 2.7.18", Severity::Warn),
            ("/usr/bin/uv", "uv 0.4.0", Severity::Ok),
        ] {
            assert_eq!(judged(path, version, "for a").mark, mark, "{version}");
        }
    }
}
