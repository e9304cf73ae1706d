//! SPEC K7: the command line against a running Portway, as scripts and people
//! use it.

mod calls;
mod entries;
mod logs;
mod printing;
mod questions;
mod screen;
mod servers;

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::app::{App, PATIENCE, TOKEN, fixtures, setup};

/// A program that is not there.
pub(crate) const NOWHERE: &str = "/no/such/program";

/// What a command came to.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Failed with this code, told so on stderr, and said nothing on stdout.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, told: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(told), "{told}: {self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }
}

/// The command line as somebody has it who sits in `dir`.
pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portway"));
    command
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("PORTWAY_ADMIN_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) async fn ended(mut command: Command) -> CommandOutput {
    // `output()` would take stdout and stderr from whoever has given them away.
    let output = command.spawn().unwrap().wait_with_output();
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("it ends in time").unwrap();
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) async fn run(app: &App, args: &[&str]) -> CommandOutput {
    ended(command(app.setup.path(), args)).await
}

/// Two servers that are connected, and one that cannot start: there is no
/// such program, so it is not tried again meanwhile.
pub(crate) async fn running() -> App {
    let mut file = fixtures(&[
        ("one", &["--stderr", "hello from one"]),
        ("two", &["--era", "legacy"]),
    ]);
    file["mcpServers"]["broken"] = json!({"command": NOWHERE});
    let app = setup().mcp(file).start().await;
    app.until_status("one", "connected").await;
    app.until_status("two", "connected").await;
    app.until_status("broken", "error").await;
    app
}
