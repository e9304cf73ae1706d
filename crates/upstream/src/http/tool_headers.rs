//! The headers that repeat parts of the body, from 2026-07-28 on.

use std::borrow::Cow;
use std::collections::HashMap;

use http::header::HeaderName;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::VERSION;
use crate::client::Headers;
use wire::header::{self, ParamHeader};
use wire::object;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The limit of tools whose headers are remembered.
const TOOLS: usize = 10_000;

/// The arguments of each tool that go into headers, learned from the lists that
/// pass through. The lock is held for a map operation.
#[derive(Default)]
pub struct ToolHeaders(Mutex<HashMap<String, Result<Vec<ParamHeader>, String>>>);

#[derive(Deserialize)]
struct ToolListPage<'a> {
    #[serde(borrow)]
    tools: Vec<ToolListItem<'a>>,
}

#[derive(Deserialize)]
struct ToolListItem<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

impl ToolHeaders {
    /// The reason why a tool must not be offered: its schema requires invalid
    /// headers.
    pub(super) fn fault(&self, tool: &str) -> Option<String> {
        self.0.lock().get(tool)?.as_ref().err().cloned()
    }

    /// Learns from the result of `tools/list`; `log` gets a line for each
    /// tool that cannot be offered.
    pub fn learn(&self, list: &RawValue, log: impl Fn(&str)) {
        let Ok(ToolListPage { tools }) = serde_json::from_str(list.get()) else {
            return;
        };
        for ToolListItem { name, schema } in tools {
            let headers = match schema.map(header::param_headers) {
                Some(Ok(headers)) => Ok(headers),
                Some(Err(reason)) => {
                    log(&format!("tool {name:?} cannot be offered: {reason}"));
                    Err(reason.to_string())
                }
                None => Ok(Vec::new()),
            };
            let mut known = self.0.lock();
            if headers.as_ref().is_ok_and(Vec::is_empty) {
                known.remove(&*name);
            } else if known.len() < TOOLS || known.contains_key(&*name) {
                known.insert(name.into_owned(), headers);
            }
        }
    }

    /// Adds every valid header; an error if no header can carry a value.
    pub fn mirror(
        &self,
        headers: &mut Headers,
        version: &str,
        method: &str,
        name: Option<&str>,
        params: Option<&RawValue>,
    ) -> Result<(), String> {
        let mut carried = headers.add_text(&VERSION, version) & headers.add_text(&METHOD, method);
        let Some(name) = name else {
            return outcome(carried);
        };
        carried &= headers.add_text(&NAME, &header::encode_value(name));
        if let (Some(params), "tools/call") = (params, method) {
            let values = match self.0.lock().get(name) {
                None => return outcome(carried),
                Some(Ok(headers)) => {
                    header::param_values(headers, object::member(params, "arguments"))
                }
                Some(Err(reason)) => return Err(reason.clone()),
            };
            for (name, value) in values {
                if let Ok(name) = HeaderName::try_from(name) {
                    carried &= headers.add_text(&name, &value);
                }
            }
        }
        outcome(carried)
    }
}

fn outcome(carried: bool) -> Result<(), String> {
    match carried {
        true => Ok(()),
        false => Err("a value no header can carry".into()),
    }
}
