//! Clients from 2026-07-28 on: every request stands alone, with headers that
//! say what its body says. Hanging up cancels it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderName;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bridge::{Bridge, VERSION};
use super::reply::Reply;
use super::running::Call;
use super::trouble::Trouble;
use upstream::Headers;
use wire::header::{self, ParamHeader};
use wire::meta::{self, member, text};
use wire::object::{is_null, set_member};
use wire::{Message, Outcome, code, method};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Tools whose headers are remembered.
const TOOLS: usize = 10_000;
/// Pages of a list read to learn them again.
const PAGES: usize = 100;
const OWN_ID: &str = "\"portway-connect-list\"";

impl Bridge {
    pub(super) async fn modern(self: &Arc<Self>, mut call: Call, method: String, line: Bytes) {
        let unwanted = call.unwanted.clone();
        let work = async {
            let asked = self.ask_modern(&mut call, &method, &line).await;
            if let Err(trouble) = asked {
                self.give_up(&call, &trouble).await;
            }
        };
        // Dropping it hangs up.
        tokio::select! {
            biased;
            () = unwanted.cancelled() => {}
            () = work => {}
        }
    }

    async fn ask_modern(&self, call: &mut Call, method: &str, line: &Bytes) -> Result<(), Trouble> {
        let first = self.ask_once(call, method, line).await;
        let Err(refused) = &first else { return first };
        if method != "tools/call" || !refused.has_code(code::HEADER_MISMATCH) {
            return first;
        }
        // Refused before it ran, most likely for headers that follow a schema
        // we have not seen: worth one look and one more try.
        let before = self.headers(line);
        self.learn_again(call, line).await?;
        match self.headers(line) == before {
            true => first,
            false => self.ask_once(call, method, line).await,
        }
    }

    async fn ask_once(&self, call: &mut Call, method: &str, line: &Bytes) -> Result<(), Trouble> {
        let unwanted = call.unwanted.clone();
        let (reply, _) = self.post(self.headers(line), line, &unwanted).await?;
        match reply {
            Reply::One(answer) => {
                self.learn(method, &answer);
                self.pass(call, answer).await;
            }
            Reply::Nothing => {}
            Reply::Stream(mut stream) => {
                while let Some(message) = stream.next().await? {
                    self.learn(method, &message);
                    self.pass(call, message).await;
                }
            }
        }
        match call.is_answered() {
            true => Ok(()),
            false => Err(Trouble::Broken(self.gate.url())),
        }
    }

    fn learn(&self, method: &str, message: &[u8]) {
        if method == "tools/list" {
            self.tools.learn(message);
        }
    }

    /// What a request's headers repeat of its body. What no header can carry
    /// is left out: the gateway says what is wrong with it.
    pub(super) fn headers(&self, line: &[u8]) -> Headers {
        let mut headers = Headers::new();
        let Ok(Message::Request { method, params, .. }) = wire::parse(line) else {
            return headers;
        };
        let version = params.and_then(|params| meta::meta_member(params, meta::PROTOCOL_VERSION));
        if let Some(version) = version.and_then(text) {
            let _ = headers.add_text(&VERSION, &version);
        }
        let _ = headers.add_text(&METHOD, &method);
        let name = method::name_param(&method).zip(params);
        let name = name.and_then(|(name, params)| member(params, name));
        if let Some(name) = name.filter(|name| !is_null(name)) {
            let plain = text(name).unwrap_or(name.get().into());
            let _ = headers.add_text(&NAME, &header::encode_value(&plain));
            if method == "tools/call" {
                let arguments = params.and_then(|params| member(params, "arguments"));
                self.tools.add(&plain, arguments, &mut headers);
            }
        }
        headers
    }

    /// Reads the list of tools, as the one who called, for what their headers
    /// should be.
    async fn learn_again(&self, call: &Call, line: &Bytes) -> Result<(), Trouble> {
        let envelope = match wire::parse(line) {
            Ok(Message::Request {
                params: Some(params),
                ..
            }) => member(params, "_meta").map(ToOwned::to_owned),
            _ => None,
        };
        let Some(envelope) = envelope else {
            return Ok(());
        };
        let empty = wire::object::empty();
        let mut params = set_member(empty, "_meta", &envelope);
        for _ in 0..PAGES {
            let request = format!(
                r#"{{"jsonrpc":"2.0","id":{OWN_ID},"method":"tools/list","params":{}}}"#,
                wire::compact(&params).get()
            );
            let request = Bytes::from(request);
            let headers = self.headers(&request);
            let (reply, _) = self.post(headers, &request, &call.unwanted).await?;
            let answer = match reply {
                Reply::One(answer) => answer,
                Reply::Nothing => return Ok(()),
                Reply::Stream(mut stream) => loop {
                    match stream.next().await? {
                        Some(message) if result(&message).is_some() => break message,
                        Some(_) => {}
                        None => return Ok(()),
                    }
                },
            };
            self.tools.learn(&answer);
            let next = result(&answer).and_then(|list| member(list, "nextCursor"));
            match next.filter(|next| !is_null(next)) {
                Some(next) => params = set_member(&params, "cursor", next),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

fn result(message: &[u8]) -> Option<&RawValue> {
    match wire::parse_upstream(message) {
        Ok(Message::Response {
            outcome: Outcome::Result(result),
            ..
        }) => Some(result),
        _ => None,
    }
}

/// Which arguments of which tools go into headers, learnt from the lists that
/// pass through. The lock is held for a map operation.
#[derive(Default)]
pub(super) struct ToolHeaders(Mutex<HashMap<String, Vec<ParamHeader>>>);

#[derive(Deserialize)]
struct Tools<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

impl ToolHeaders {
    fn learn(&self, message: &[u8]) {
        let list = result(message).and_then(|list| serde_json::from_str(list.get()).ok());
        let Some(Tools { tools }) = list else { return };
        for tool in tools {
            let Some(name) = member(tool, "name").and_then(text) else {
                continue;
            };
            let schema = member(tool, "inputSchema");
            // One that is wrong is the gateway's to refuse.
            let headers = schema.and_then(|schema| header::param_headers(schema).ok());
            let mut known = self.0.lock();
            match headers.filter(|headers| !headers.is_empty()) {
                None => _ = known.remove(&*name),
                Some(headers) if known.len() < TOOLS || known.contains_key(&*name) => {
                    known.insert(name.into_owned(), headers);
                }
                Some(_) => {}
            }
        }
    }

    fn add(&self, tool: &str, arguments: Option<&RawValue>, headers: &mut Headers) {
        let known = self.0.lock();
        let Some(wanted) = known.get(tool) else {
            return;
        };
        for (name, value) in header::param_values(wanted, arguments) {
            if let Ok(name) = HeaderName::try_from(name) {
                let _ = headers.add_text(&name, &value);
            }
        }
    }
}
