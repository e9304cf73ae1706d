//! A client made with the official Rust SDK: lists tools, calls some, answers one
//! elicitation, and prints what it saw as one line of JSON.
//!
//! `oracle_rmcp_client URL [--era legacy|modern] [--prefix NAMES]`
//!
//! Of the SDK's HTTP clients this uses the one for Unix sockets, which needs no further
//! packages; a socket here hands its connections on to the port of the URL.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::net::{TcpStream, UnixListener};
use url::Url;

const LIMIT: Duration = Duration::from_secs(60);

#[derive(Parser)]
struct OracleClientOptions {
    url: Url,
    #[arg(long, value_enum, default_value = "legacy")]
    era: OracleClientEra,
    /// What stands before the names of tools.
    #[arg(long, default_value = "")]
    prefix: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum OracleClientEra {
    Legacy,
    Modern,
}

/// What the server told and asked.
#[derive(Clone, Default)]
struct ClientLog {
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for ClientLog {
    fn get_info(&self) -> ClientConfig {
        let form = FormElicitationCapability::new();
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        ClientConfig::new(capabilities, Implementation::new("rmcp-client", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(message);
        let content = json!({"username": "ada", "email": "ada@example.org"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.push(params.progress);
    }
}

/// Hands every connection of a Unix socket on to a port.
fn forward(socket: &Path, port: u16) -> std::io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    Ok(())
}

type RmcpClient = RunningService<RoleClient, ClientLog>;

async fn call(
    client: &RmcpClient,
    name: String,
    arguments: Value,
) -> anyhow::Result<CallToolResult> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    Ok(client.call_tool(params).await?)
}

fn text(result: &CallToolResult) -> anyhow::Result<&str> {
    let block = result.content.first().context("no content")?;
    Ok(&block.as_text().context("no text")?.text)
}

async fn ask(options: OracleClientOptions) -> anyhow::Result<Value> {
    let home = tempfile::tempdir()?;
    let socket = home.path().join("portway.sock");
    forward(&socket, options.url.port().context("no port")?)?;
    let socket = socket.to_str().context("not a path")?;
    let transport = StreamableHttpClientTransport::from_unix_socket(socket, options.url.as_str());
    let lifecycle = match options.era {
        OracleClientEra::Legacy => ClientLifecycleMode::Initialize,
        OracleClientEra::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let seen = ClientLog::default();
    let client = seen
        .clone()
        .serve_with_lifecycle(transport, lifecycle)
        .await?;
    let version = client
        .peer_info()
        .context("no peer")?
        .protocol_version
        .clone();

    let mut tools: Vec<String> = Vec::new();
    for tool in client.list_all_tools().await? {
        tools.push(tool.name.into_owned());
    }
    tools.sort();
    let name = |tool: &str| format!("{}{tool}", options.prefix);
    let echo = call(
        &client,
        name("test_echo"),
        json!({"message": "ü from Rust"}),
    )
    .await?;
    call(&client, name("test_tool_with_progress"), json!({})).await?;
    let question = json!({"message": "Who, Rust?"});
    let elicited = call(&client, name("test_elicitation"), question).await?;
    let failed = call(&client, name("test_error_handling"), json!({})).await?;
    let summary = json!({
        "version": version,
        "tools": tools,
        "echo": text(&echo)?,
        "structured": echo.structured_content,
        "progress": *seen.progress.lock().unwrap_or_else(PoisonError::into_inner),
        "asked": *seen.asked.lock().unwrap_or_else(PoisonError::into_inner),
        "elicited": text(&elicited)?,
        "failed": [failed.is_error, text(&failed)?],
    });
    client.cancel().await?;
    Ok(summary)
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "its answer")]
async fn main() -> anyhow::Result<()> {
    let options = OracleClientOptions::parse();
    let Ok(summary) = tokio::time::timeout(LIMIT, ask(options)).await else {
        bail!("not done within {LIMIT:?}");
    };
    println!("{}", summary?);
    Ok(())
}
