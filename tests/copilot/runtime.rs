//! GitHub's own Copilot runtime, with a model of ours behind it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::rpc::{ModelCapabilitiesOverride, ModelCapabilitiesOverrideSupports};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::types::{
    MessageOptions, PermissionRequestData, ProviderConfig, RequestId, SessionConfig, SessionId,
};
use github_copilot_sdk::{Client, Tool};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::app::PATIENCE;
use crate::model::Model;

pub(crate) struct Runtime {
    pub model: Model,
    pub client: Client,
    pub home: TempDir,
    child: Child,
}

/// As `make tools` has installed it.
pub(crate) fn binary() -> PathBuf {
    let platform = match std::env::consts::ARCH {
        "aarch64" => "linux-arm64",
        _ => "linux-x64",
    };
    let package = format!("tests/.tools/copilot/node_modules/@github/copilot-sdk-{platform}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(package)
        .join(format!("prebuilds/{platform}/copilot-runtime"));
    assert!(path.exists(), "run `make tools` first: no {path:?}");
    path
}

impl Runtime {
    pub(crate) async fn start() -> Runtime {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(binary())
            .args(["--headless", "--no-auto-update", "--stdio"])
            .current_dir(home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("COPILOT_HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = Client::from_streams(reader, writer, home.path().to_owned()).unwrap();
        let greeted = tokio::time::timeout(PATIENCE, client.verify_protocol_version()).await;
        greeted.expect("it answers").expect("it is ours to ask");
        Runtime {
            model: Model::start().await,
            client,
            home,
            child,
        }
    }

    /// A session with these tools, and what permission was asked for in it.
    pub(crate) async fn session(&self, tools: Vec<Tool>) -> (Arc<Session>, PermissionLog) {
        let asked = PermissionLog::default();
        let provider = ProviderConfig::new(&self.model.url)
            .with_provider_type("openai")
            .with_wire_api("completions")
            .with_api_key("none");
        let sees = ModelCapabilitiesOverrideSupports {
            vision: Some(true),
            ..Default::default()
        };
        let capabilities = ModelCapabilitiesOverride {
            supports: Some(sees),
            ..Default::default()
        };
        let config = SessionConfig::default()
            .with_model("fake")
            .with_model_capabilities(capabilities)
            .with_provider(provider)
            .with_working_directory(self.home.path())
            .with_permission_handler(Arc::new(asked.clone()))
            .with_tools(tools);
        let session = self.client.create_session(config);
        let session = tokio::time::timeout(PATIENCE, session).await;
        (Arc::new(session.expect("in time").unwrap()), asked)
    }

    /// Ends it, and sees that it has ended.
    pub(crate) async fn end(mut self) {
        let _ = tokio::time::timeout(PATIENCE, self.client.stop()).await;
        // By its process id: it has no other reason to end than ours.
        self.child.start_kill().ok();
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends").unwrap();
    }
}

/// Approves everything, and keeps what was asked.
#[derive(Clone, Default)]
pub(crate) struct PermissionLog(Arc<Mutex<Vec<Value>>>);

impl PermissionLog {
    /// The names of the tools that somebody had to allow.
    pub(crate) fn names(&self) -> Vec<String> {
        let asked = self.0.lock().unwrap();
        let name = |one: &Value| {
            let request = &one["permissionRequest"];
            assert_eq!(request["kind"], "custom-tool", "{one:#}");
            request["toolName"].as_str().unwrap().to_owned()
        };
        asked.iter().map(name).collect()
    }
}

#[async_trait]
impl PermissionHandler for PermissionLog {
    async fn handle(
        &self,
        _: SessionId,
        _: RequestId,
        data: PermissionRequestData,
    ) -> PermissionResult {
        let asked = serde_json::to_value(&data).unwrap();
        self.0.lock().unwrap().push(asked);
        PermissionResult::approve_once()
    }
}

/// Sends a message and waits for the agent's last word on it.
pub(crate) async fn say(session: &Session, text: &str) -> String {
    let message = MessageOptions::new(text).with_wait_timeout(PATIENCE);
    let last = session.send_and_wait(message).await.unwrap();
    let last = last.unwrap_or_else(|| panic!("no answer to {text:?}"));
    last.data["content"].as_str().unwrap_or_default().to_owned()
}
