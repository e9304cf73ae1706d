//! One listed tool as a `Tool`, and its handler.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::tool::{ToolHandler, try_tool_parameters};
use github_copilot_sdk::{Error, Tool, ToolInvocation, ToolResult};
use serde_json::Value;

use super::result::{failed, timed_out};
use super::{CopilotTool, PermissionMode, ToolCatalog, ToolOptions, ToolSource};

/// The longest name that all models' vendors accept.
const LONGEST_NAME: usize = 64;

pub(super) fn all<S: ToolSource + Clone>(
    source: &S,
    catalog: ToolCatalog,
    options: &ToolOptions,
) -> Vec<Tool> {
    let fits = |listed: &CopilotTool| {
        let fits = takes(&listed.name);
        if !fits {
            // One such name would make the whole session fail.
            tracing::warn!(
                "{:?} is no name for a Copilot tool: it is left out",
                listed.name
            );
        }
        fits
    };
    let tools = catalog.tools.into_iter().filter(fits);
    tools.map(|listed| one(source, listed, options)).collect()
}

fn takes(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

fn one<S: ToolSource + Clone>(source: &S, listed: CopilotTool, options: &ToolOptions) -> Tool {
    let skip = match options.permission {
        PermissionMode::Ask => false,
        PermissionMode::ReadOnlyHint => listed.skip_permission,
        PermissionMode::Skip => true,
    };
    let handler = Handler {
        source: source.clone(),
        filter: options.filter.clone(),
        limit: options.timeout,
    };
    let mut tool = Tool::new(listed.name)
        .with_description(listed.description)
        .with_skip_permission(skip)
        .with_metadata(listed.metadata.into_iter().collect())
        .with_handler(Arc::new(handler));
    // It is an object, so this cannot fail.
    tool.parameters = try_tool_parameters(Value::Object(listed.parameters)).unwrap_or_default();
    tool
}

struct Handler<S> {
    source: S,
    filter: Option<String>,
    limit: Duration,
}

#[async_trait]
impl<S: ToolSource> ToolHandler for Handler<S> {
    async fn call(&self, invocation: ToolInvocation) -> Result<ToolResult, Error> {
        let name = &invocation.tool_name;
        // A model may omit the arguments if it has none.
        let arguments = match invocation.arguments {
            Value::Null => Value::Object(Default::default()),
            arguments => arguments,
        };
        let call = self.source.call(self.filter.as_deref(), name, &arguments);
        let result = match tokio::time::timeout(self.limit, call).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => failed(name, &error),
            Err(_) => timed_out(name, self.limit),
        };
        Ok(ToolResult::Expanded(result))
    }
}
