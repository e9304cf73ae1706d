//! The official SDKs as clients of Portway (SPEC K4, I2): each lists, calls, is told of
//! progress and answers a question, on every endpoint it can use, with servers of both
//! eras behind them.

use serde_json::{Value, json};
use tokio::process::Command;

use super::remote::OracleRemote;
use super::sdks::{python, typescript, typescript_server};
use super::tool;
use crate::app::{App, PATIENCE, example, setup};
use crate::tools;

/// The tools of the one server that all of these have in front of them.
pub(super) const TOOLS: usize = 32;

/// Portway with a server of each era over HTTP and a legacy one over stdio.
pub(super) struct OracleGateway {
    pub app: App,
    _old: OracleRemote,
    _new: OracleRemote,
}

/// Transports and the last part of their paths.
const HTTP: (&str, &str) = ("http", "mcp");
const SSE: (&str, &str) = ("sse", "sse");

pub(super) const SERVERS: [&str; 3] = ["old", "new", "pipe"];

pub(super) async fn house() -> OracleGateway {
    let (old, new) = tokio::join!(
        typescript_server("2025", None),
        typescript_server("2026", None)
    );
    let servers = json!({
        "old": { "type": "http", "url": old.at("/mcp") },
        "new": { "type": "http", "url": new.at("/mcp") },
        "pipe": typescript("2025"),
    });
    let app = setup().arg("--no-auth").mcp(json!({"mcpServers": servers}));
    // The tools are counted.
    let app = app.env("PORTWAY_SELF_CONTROL", "off").start().await;
    for server in SERVERS {
        app.until_status(server, "connected").await;
    }
    OracleGateway {
        app,
        _old: old,
        _new: new,
    }
}

/// A client program and how it says hello.
pub(super) struct SdkClient {
    pub program: Vec<String>,
    /// The language it names in its messages.
    pub language: &'static str,
    pub eras: &'static [&'static str],
    /// Whether it also has the transport of 2024-11-05.
    pub sse: bool,
}

impl SdkClient {
    async fn run(&self, url: &str, era: &str, transport: &str, prefix: &str) -> Value {
        let command = || {
            let mut command = self.command(era, prefix);
            if self.sse {
                command.args(["--transport", transport]);
            }
            command.arg(url);
            command
        };
        self.judged(command, &format!("{url} {era} {transport}"))
            .await
    }

    pub(super) fn command(&self, era: &str, prefix: &str) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        command.args(["--era", era, "--prefix", prefix]);
        command
    }

    /// The report of the client. A client that reads progress and the result in
    /// one go drops the progress, which a busy machine makes likely: it then
    /// runs again.
    pub(super) async fn judged(&self, command: impl Fn() -> Command, what: &str) -> Value {
        let mut seen = Value::Null;
        for _ in 0..5 {
            let ran = tools::judge(command(), PATIENCE * 2).await;
            let said = format!("{what}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.ok, "{said}");
            seen = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{said}"));
            if seen["progress"]
                .as_array()
                .is_some_and(|steps| steps.len() >= 2)
            {
                break;
            }
        }
        seen
    }

    pub(super) fn check(&self, seen: &Value, era: &str, prefix: &str, tools: usize) {
        let language = self.language;
        let version = match era {
            "modern" => "2026-07-28",
            _ => "2025-11-25",
        };
        assert_eq!(seen["version"], version);
        let names = seen["tools"].as_array().unwrap();
        assert_eq!(names.len(), tools, "{names:?}");
        assert!(names.contains(&json!(format!("{prefix}test_echo"))));
        assert_eq!(seen["echo"], format!("ü from {language}"));
        assert_eq!(
            seen["structured"],
            json!({"message": format!("ü from {language}")})
        );
        assert_eq!(seen["asked"], json!([format!("Who, {language}?")]));
        assert_eq!(
            seen["elicited"],
            r#"User response: action=accept, content={"username":"ada","email":"ada@example.org"}"#
        );
        let failed = "This tool intentionally returns an error for testing";
        assert_eq!(seen["failed"], json!([true, failed]));
        // Some of them forget the last step when the result follows at once.
        let steps: Vec<f64> = serde_json::from_value(seen["progress"].clone()).unwrap();
        assert!(
            [0.0, 50.0, 100.0].starts_with(&steps) && steps.len() >= 2,
            "{steps:?}"
        );
    }

    async fn alone(&self, root: &str, server: &str, era: &str, (transport, path): (&str, &str)) {
        let url = format!("{root}/servers/{server}/{path}");
        let seen = self.run(&url, era, transport, "").await;
        self.check(&seen, era, "", TOOLS);
    }

    async fn shared(&self, root: &str, server: &str, era: &str, (transport, path): (&str, &str)) {
        let prefix = format!("mcp_{server}_");
        let url = format!("{root}/{path}");
        let seen = self.run(&url, era, transport, &prefix).await;
        self.check(&seen, era, &prefix, TOOLS * SERVERS.len());
    }

    /// All it can do, on every endpoint it can reach.
    async fn visit(&self) {
        let house = house().await;
        let root = &house.app.url;
        for era in self.eras {
            for server in SERVERS {
                self.alone(root, server, era, HTTP).await;
            }
            for server in ["old", "new"] {
                self.shared(root, server, era, HTTP).await;
            }
        }
        if self.sse {
            self.alone(root, "old", "legacy", SSE).await;
            self.shared(root, "new", "legacy", SSE).await;
        }
    }
}

#[tokio::test]
async fn k4_rmcp_client() {
    let client = SdkClient {
        program: vec![example("oracle_rmcp_client")],
        language: "Rust",
        eras: &["legacy", "modern"],
        sse: false,
    };
    client.visit().await;
}

#[tokio::test]
async fn k4_typescript_1_client() {
    let client = SdkClient {
        program: vec!["node".into(), tool("tools/clients/typescript_client.mjs")],
        language: "TypeScript",
        eras: &["legacy"],
        sse: true,
    };
    client.visit().await;
}

#[tokio::test]
async fn k4_python_1_client() {
    let client = SdkClient {
        program: vec![python(1), tool("tools/clients/python_client.py")],
        language: "Python",
        eras: &["legacy"],
        sse: true,
    };
    client.visit().await;
}

#[tokio::test]
async fn k4_python_2_client() {
    let client = SdkClient {
        program: vec![python(2), tool("tools/clients/python_client.py")],
        language: "Python",
        eras: &["legacy", "modern"],
        sse: true,
    };
    client.visit().await;
}
