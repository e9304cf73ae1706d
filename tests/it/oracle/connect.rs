//! The official SDKs as clients that start `portway connect` (SPEC K5): each
//! lists, calls, is told of progress and answers a question, over stdio.

use super::clients::{OracleGateway, SERVERS, SdkClient, TOOLS, house};
use super::sdks::python;
use super::tool;
use crate::app::eventually;

impl SdkClient {
    async fn connects(&self) {
        let house = house().await;
        for era in self.eras {
            let alone = &["--server", "pipe"];
            self.starts(&house, era, "", TOOLS, alone).await;
            let all = TOOLS * SERVERS.len();
            self.starts(&house, era, "mcp_old_", all, &[]).await;
        }
    }

    async fn starts(
        &self,
        house: &OracleGateway,
        era: &str,
        prefix: &str,
        tools: usize,
        args: &[&str],
    ) {
        let setup = &house.app.setup;
        let command = || {
            let mut command = self.command(era, prefix);
            command.args(["--transport", "stdio", "--"]);
            command.args([env!("CARGO_BIN_EXE_portway"), "connect"]);
            command.args(args).current_dir(setup.path());
            // As the processes of this house are found.
            command.env("HOME", setup.path());
            command
        };
        let seen = self.judged(command, &format!("{era} {args:?}")).await;
        self.check(&seen, era, prefix, tools);
        // Servers that asked have a process for each principal by now, which
        // the gateway keeps for a while: the bridge itself must be gone.
        let bridges = || setup.processes().into_iter().filter(|pid| is_bridge(*pid));
        eventually("no bridge is left", || bridges().next().is_none()).await;
    }
}

fn is_bridge(pid: i32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words
        .split(|byte| *byte == 0)
        .any(|word| word == b"connect")
}

fn client(
    program: Vec<String>,
    language: &'static str,
    eras: &'static [&'static str],
) -> SdkClient {
    SdkClient {
        program,
        language,
        eras,
        sse: false,
    }
}

#[tokio::test]
async fn k5_typescript_1_client_starts_it() {
    let program = vec!["node".into(), tool("tools/clients/typescript_client.mjs")];
    client(program, "TypeScript", &["legacy"]).connects().await;
}

#[tokio::test]
async fn k5_typescript_2_client_starts_it() {
    let program = vec!["node".into(), tool("tools/clients/typescript_2_client.mjs")];
    let eras = &["legacy", "modern"];
    client(program, "TypeScript", eras).connects().await;
}

#[tokio::test]
async fn k5_python_1_client_starts_it() {
    let program = vec![python(1), tool("tools/clients/python_client.py")];
    client(program, "Python", &["legacy"]).connects().await;
}

#[tokio::test]
async fn k5_python_2_client_starts_it() {
    let program = vec![python(2), tool("tools/clients/python_client.py")];
    let eras = &["legacy", "modern"];
    client(program, "Python", eras).connects().await;
}
