//! Clients from 2026-07-28 on: each request is independent, with headers that
//! repeat parts of its body. Closing the connection cancels it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::bridge::Bridge;
use super::error::{BridgeError, BridgeResult};
use super::open_requests::ClientCall;
use upstream::Headers;
use wire::meta::{self, member, text};
use wire::object::{is_null, parse_part, set_member};
use wire::{Message, Outcome, code, method};

/// The maximum number of pages read when the tools are listed again.
const PAGES: usize = 100;
const OWN_ID: &str = "\"portway-connect-list\"";

impl Bridge {
    pub(super) async fn modern(
        self: &Arc<Self>,
        mut call: ClientCall,
        id: Box<RawValue>,
        method: String,
        line: Bytes,
    ) {
        let unwanted = call.unwanted.clone();
        let work = async {
            let asked = match &*method {
                "subscriptions/listen" => self.keep_open(&mut call, &id, &line).await,
                method => self.ask_modern(&mut call, method, &line).await,
            };
            if let Err(error) = asked {
                self.give_up(&call, &error).await;
            }
        };
        // Dropping the future closes the connection.
        tokio::select! {
            biased;
            () = unwanted.cancelled() => {}
            () = work => {}
        }
    }

    async fn ask_modern(
        &self,
        call: &mut ClientCall,
        method: &str,
        line: &Bytes,
    ) -> BridgeResult<()> {
        let first = self.ask_once(call, method, line).await;
        let Err(refused) = &first else { return first };
        if method != "tools/call" || !refused.has_code(code::HEADER_MISMATCH) {
            return first;
        }
        // The gateway refused it before it ran, most likely because its headers
        // do not match a new schema: list the tools again and retry once.
        let before = self.headers(line);
        self.learn_again(call, line).await?;
        if self.headers(line) == before {
            return first;
        }
        self.ask_once(call, method, line).await
    }

    async fn ask_once(
        &self,
        call: &mut ClientCall,
        method: &str,
        line: &Bytes,
    ) -> BridgeResult<()> {
        let unwanted = call.unwanted.clone();
        let (mut reply, _) = self.post(self.headers(line), line, &unwanted).await?;
        while let Some(message) = reply.next().await? {
            self.learn(method, &message);
            self.pass(call, message).await;
        }
        if !call.is_answered() {
            return Err(BridgeError::Broken(self.gateway.url()));
        }
        Ok(())
    }

    fn learn(&self, method: &str, message: &[u8]) {
        if method == "tools/list"
            && let Some(list) = result(message)
        {
            self.tools.learn(list, |_| {});
        }
    }

    /// The headers that repeat the body of a request. A value that no header
    /// can carry is left out: the gateway reports the error.
    pub(super) fn headers(&self, line: &[u8]) -> Headers {
        let mut headers = Headers::new();
        let Ok(Message::Request { method, params, .. }) = wire::parse(line) else {
            return headers;
        };
        let version = params.and_then(|params| meta::meta_member(params, meta::PROTOCOL_VERSION));
        let version = version.and_then(text).unwrap_or_default();
        let name = method::name_param(&method).zip(params);
        let name = name.and_then(|(name, params)| member(params, name));
        let name = name.filter(|name| !is_null(name));
        let name = name.map(|name| text(name).unwrap_or(name.get().into()));
        let tools = &self.tools;
        let _ = tools.mirror(&mut headers, &version, &method, name.as_deref(), params);
        headers
    }

    /// Lists the tools with the caller's metadata, to learn which headers their
    /// arguments need.
    async fn learn_again(&self, call: &ClientCall, line: &Bytes) -> BridgeResult<()> {
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
            let (mut reply, _) = self.post(headers, &request, &call.unwanted).await?;
            let answer = loop {
                match reply.next().await? {
                    Some(message) if result(&message).is_some() => break message,
                    Some(_) => {}
                    None => return Ok(()),
                }
            };
            self.learn("tools/list", &answer);
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
    match wire::outcome(message)? {
        Outcome::Result(result) => parse_part(result),
        Outcome::Error(_) => None,
    }
}
