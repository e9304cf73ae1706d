//! Servers that are reached, not started, by Portway.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::tool;
use crate::app::PATIENCE;

/// A server of this test; ends with it, or with our end of its stdin.
pub(super) struct OracleRemote {
    child: Child,
    address: String,
}

impl OracleRemote {
    /// Starts it and waits for the address it prints.
    pub(super) async fn start(command: &mut Command) -> OracleRemote {
        let shown = format!("{:?}", command.as_std());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(address) = line.strip_prefix("listening on ") {
                    return address.to_owned();
                }
            }
            panic!("{shown} ended without an address");
        };
        let address = tokio::time::timeout(PATIENCE, address).await;
        let address = address.unwrap_or_else(|_| panic!("{shown} tells no address"));
        // Read on: a server that cannot write blocks.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        OracleRemote { child, address }
    }

    pub(super) fn url(&self) -> &str {
        &self.address
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// A program for node, kept to 127.0.0.1 and to a port of its own.
pub(super) fn node(program: &str) -> Command {
    let mut command = Command::new("node");
    command.args(["--require", &tool("tools/loopback.cjs"), program]);
    command.env("PORT", "0");
    command
}
