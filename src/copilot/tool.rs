//! One listed tool as a `Tool`, and its handler.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::tool::{ToolHandler, try_tool_parameters};
use github_copilot_sdk::{Error, Tool, ToolInvocation, ToolResult, ToolResultExpanded};
use serde_json::Value;

use super::{CopilotTool, PermissionMode, ToolCatalog, ToolOptions, ToolSource, ToolSourceError};

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
        let called = tokio::time::timeout(self.limit, call).await;
        let called = called.unwrap_or(Err(ToolSourceError::Silent(self.limit)));
        let result = called.unwrap_or_else(|error| failed(name, &error));
        Ok(ToolResult::Expanded(result))
    }
}

/// The result for the model when there is none.
fn failed(name: &str, error: &ToolSourceError) -> ToolResultExpanded {
    let (kind, text) = match error {
        ToolSourceError::Silent(limit) => {
            let limit = limit.as_secs_f64();
            let text = format!("{name} timed out: no answer within {limit} s");
            ("timeout", text)
        }
        other => ("failure", format!("{name} could not be called: {other}")),
    };
    ToolResultExpanded::new(text.clone(), kind).with_error(text)
}
