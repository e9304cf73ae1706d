//! A Copilot SDK program with Portway inside: starts the servers of the
//! working directory's `.mcp.json`, gives their tools to a session, and asks
//! one thing.
//!
//! ```sh
//! cargo run --features copilot --example copilot -- COPILOT_RUNTIME MODEL_URL PROMPT
//! ```
//!
//! `COPILOT_RUNTIME` is the program `copilot-runtime` of the npm package
//! `@github/copilot-sdk`, `MODEL_URL` an address that speaks OpenAI's
//! chat completions.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use github_copilot_sdk::Client;
use github_copilot_sdk::types::{ProviderConfig, SessionConfig};
use portway::app::{self, App};
use portway::copilot::{self, Embedded};
use portway::settings::{ServeOptions, Settings};
use tokio::process::{Child, Command};

/// For the servers to start.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    // First of all: servers stand below a helper, which is this program again.
    portway::shim::run_if_asked();
    let mut args = std::env::args().skip(1);
    let (Some(runtime), Some(model), Some(prompt)) = (args.next(), args.next(), args.next()) else {
        anyhow::bail!("usage: copilot COPILOT_RUNTIME MODEL_URL PROMPT");
    };
    let tokio = tokio::runtime::Runtime::new()?;
    tokio.block_on(run(&runtime, &model, &prompt))
}

async fn run(runtime: &str, model: &str, prompt: &str) -> anyhow::Result<()> {
    let environment = std::env::vars().collect();
    let directory = std::env::current_dir()?;
    let settings = Settings::load(ServeOptions::default(), &environment, directory.clone())?;
    let app = App::start(settings, &environment).await?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while app::unsettled(&app.registry, &app.fleet) > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answer = converse(&app, runtime, model, prompt).await;
    app.end().await?;
    writeln!(std::io::stdout(), "{}", answer?)?;
    Ok(())
}

async fn converse(app: &App, runtime: &str, model: &str, prompt: &str) -> anyhow::Result<String> {
    let (client, mut child) = start(runtime)?;
    let answer = ask(&client, app, model, prompt).await;
    let _ = client.stop().await;
    child.kill().await?;
    answer
}

/// `Client::start` does this where the SDK is built with its own runtime.
fn start(runtime: &str) -> anyhow::Result<(Client, Child)> {
    let mut child = Command::new(runtime)
        .args(["--headless", "--no-auto-update", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| runtime.to_owned())?;
    let reader = child.stdout.take().context("stdout")?;
    let writer = child.stdin.take().context("stdin")?;
    let client = Client::from_streams(reader, writer, std::env::current_dir()?)?;
    Ok((client, child))
}

async fn ask(client: &Client, app: &App, model: &str, prompt: &str) -> anyhow::Result<String> {
    let portway = Embedded::new(app.gateway());
    let options = copilot::ToolOptions::default();
    let tools = copilot::tools(&portway, &options).await?;
    client.verify_protocol_version().await?;
    let provider = ProviderConfig::new(model)
        .with_provider_type("openai")
        .with_wire_api("completions")
        .with_api_key(std::env::var("OPENAI_API_KEY").unwrap_or_default());
    let config = SessionConfig::default()
        .with_model("gpt-5")
        .with_provider(provider)
        .approve_all_permissions()
        .with_tools(tools);
    let session = Arc::new(client.create_session(config).await?);
    let _following = copilot::follow(&portway, &session, Vec::new(), options);
    let last = session.send_and_wait(prompt).await?;
    let text = last.and_then(|event| Some(event.data["content"].as_str()?.to_owned()));
    text.context("the model said nothing")
}
