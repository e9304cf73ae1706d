//! A server made with the official Rust SDK: what others' code makes of the protocol.
//!
//! `oracle_rmcp [--era both|legacy|modern] [--http PORT]`; stdio without a port. Over
//! HTTP it prints `listening on http://127.0.0.1:PORT/mcp` and ends with its parent.

use clap::{Parser, ValueEnum};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{
    Implementation, NumberOrString, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{RoleServer, ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

#[derive(Debug, Parser)]
struct OracleOptions {
    #[arg(long, value_enum, default_value = "both")]
    era: OracleEra,
    /// Serve Streamable HTTP on this port of 127.0.0.1; 0 picks one.
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OracleEra {
    Both,
    Legacy,
    Modern,
}

#[derive(Clone)]
struct Oracle {
    era: OracleEra,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Sum {
    sum: f64,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Steps {
    steps: u32,
}

#[tool_router]
impl Oracle {
    #[tool(description = "Repeats a text")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }

    #[tool(description = "Reports progress step by step")]
    async fn progress(
        &self,
        Parameters(Steps { steps }): Parameters<Steps>,
        context: RequestContext<RoleServer>,
    ) -> String {
        let token = context.meta.get_progress_token();
        let token = token.unwrap_or(ProgressToken(NumberOrString::Number(0)));
        for step in 1..=steps {
            let params = ProgressNotificationParam::new(token.clone(), f64::from(step))
                .with_total(f64::from(steps));
            // A client that is gone cannot be told.
            let _ = context.peer.notify_progress(params).await;
        }
        format!("{steps} steps")
    }

    #[tool(description = "Always fails")]
    fn fail(&self) -> Result<String, String> {
        Err("failed as told".to_owned())
    }
}

#[tool_handler]
impl ServerHandler for Oracle {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            "oracle-rmcp",
            env!("CARGO_PKG_VERSION"),
        ))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.era {
            OracleEra::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            OracleEra::Legacy => {
                Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
            }
            OracleEra::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let options = OracleOptions::parse();
    let oracle = Oracle { era: options.era };
    match options.http {
        Some(port) => serve_http(oracle, port).await,
        None => {
            let running = oracle.serve(rmcp::transport::stdio()).await?;
            running.waiting().await?;
            Ok(())
        }
    }
}

async fn serve_http(oracle: Oracle, port: u16) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "listening on http://{address}/mcp")?;
    let service = StreamableHttpService::new(
        move || Ok(oracle.clone()),
        LocalSessionManager::default().into(),
        Default::default(),
    );
    let parent = nix::unistd::getppid();
    let mut orphan = tokio::time::interval(Duration::from_millis(250));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                socket.set_nodelay(true)?;
                let service = TowerToHyperService::new(service.clone());
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service);
                // How a connection ends is the client's business.
                tokio::spawn(async move { connection.await.is_ok() });
            }
            _ = orphan.tick() => if nix::unistd::getppid() != parent {
                return Ok(());
            },
        }
    }
}
