//! A source of tools: the gateway embedded in this program.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use github_copilot_sdk::ToolResultExpanded;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::sync::Notify;

use super::source::ToolListing;
use super::{ToolCatalog, ToolSource, ToolSourceError};
use gateway::format::{self, Format};
use gateway::{Caller, Gateway, Scope, View};

/// The fleet does not report every change of a list: filters are edited.
const LOOK: Duration = Duration::from_secs(5);

/// The gateway embedded in this program: all tools, with the admin's access.
///
/// Servers that are processes run below a helper, which is this program's own
/// binary: the first line of `main` must be `portway::shim::run_if_asked()`.
///
/// ```no_run
/// # use portway::{app::App, settings::Settings};
/// # async fn example(settings: Settings) -> Result<(), Box<dyn std::error::Error>> {
/// let environment = std::env::vars().collect();
/// let app = App::start(settings, &environment).await?;
/// let portway = portway::copilot::Embedded::new(app.gateway());
/// let tools = portway::copilot::tools(&portway, &Default::default()).await?;
/// // … a session with these tools …
/// app.end().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Embedded {
    gateway: Arc<Gateway>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Embedded")
    }
}

impl Embedded {
    pub fn new(gateway: Arc<Gateway>) -> Embedded {
        Embedded { gateway }
    }

    fn look(&self, filter: Option<&str>) -> Result<(Caller, Arc<View>), ToolSourceError> {
        let caller = Caller {
            principal: "admin".into(),
            scope: Scope::Everything {
                filter: filter.map(Into::into),
            },
        };
        let view = self.gateway.view(&caller);
        match view.offers("tools/list") {
            Ok(()) => Ok((caller, view)),
            Err(error) => Err(ToolSourceError::NotFound(error.message)),
        }
    }
}

/// Parses JSON that this program wrote, so it is valid.
fn read<T: for<'a> Deserialize<'a>>(text: &[u8]) -> Result<T, ToolSourceError> {
    serde_json::from_slice(text).map_err(|error| ToolSourceError::Unexpected {
        url: "this program".into(),
        reason: error.to_string(),
    })
}

#[async_trait]
impl ToolSource for Embedded {
    async fn catalog(
        &self,
        filter: Option<&str>,
        known: Option<&str>,
    ) -> Result<Option<ToolCatalog>, ToolSourceError> {
        let (_, view) = self.look(filter)?;
        let list = view.tools_as(Format::Copilot);
        let tag = String::from_utf8_lossy(&list.tag).into_owned();
        if known == Some(&*tag) {
            return Ok(None);
        }
        let ToolListing { tools, .. } = read(&list.body)?;
        Ok(Some(ToolCatalog { tag, tools }))
    }

    async fn call(
        &self,
        filter: Option<&str>,
        name: &str,
        arguments: &Value,
    ) -> Result<ToolResultExpanded, ToolSourceError> {
        let (caller, view) = self.look(filter)?;
        let arguments = to_raw_value(arguments).map_err(|error| ToolSourceError::Refused {
            status: 422,
            message: error.to_string(),
        })?;
        let format = Format::Copilot;
        let call = self
            .gateway
            .call_tool(view.clone(), &caller, name, format, Ok(&arguments));
        let outcome = call.await.unwrap_or_else(|| view.unknown_tool(name));
        let answer = format::answer(format, &outcome, None);
        read(answer.as_ref())
    }

    async fn watch(&self, news: &Notify) {
        let mut snapshots = self.gateway.fleet.watch();
        loop {
            match tokio::time::timeout(LOOK, snapshots.changed()).await {
                // The gateway has ended.
                Ok(Err(_)) => return,
                Ok(Ok(())) | Err(_) => news.notify_one(),
            }
        }
    }
}
