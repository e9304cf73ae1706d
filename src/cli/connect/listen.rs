//! A modern client's subscription. Over HTTP it is a stream that ends with the
//! gateway; on stdio it lasts until the client cancels it. So the bridge
//! reopens the stream and notifies the client of possible changes.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::bridge::Bridge;
use super::error::{BridgeError, BridgeResult};
use super::open_requests::ClientCall;
use super::reply::{GatewayReply, GatewayStream};
use wire::meta::{SUBSCRIPTION_ID, member, set_meta_member, text};
use wire::object::{each_element, empty, set_member};
use wire::{Message, Outcome};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Bridge {
    /// Returns when the client has its response.
    pub(super) async fn keep_open(
        &self,
        call: &mut ClientCall,
        id: &RawValue,
        line: &Bytes,
    ) -> BridgeResult<()> {
        call.is_endless();
        let mut again = false;
        let mut pause = FIRST_PAUSE;
        loop {
            let unwanted = call.unwanted.clone();
            match self.post(self.headers(line), line, &unwanted).await {
                Ok((GatewayReply::One(answer), _)) => {
                    self.pass(call, answer).await;
                    return Ok(());
                }
                Ok((GatewayReply::Nothing, _)) => {}
                Ok((GatewayReply::Stream(stream), _)) => {
                    if self.hear(call, id, stream, again).await {
                        return Ok(());
                    }
                    again = true;
                    pause = FIRST_PAUSE;
                }
                Err(BridgeError::Away(_) | BridgeError::Broken(_)) if again => {}
                Err(BridgeError::Refused { status, .. }) if again && status.is_server_error() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns whether the client has its response; otherwise the gateway has
    /// exited, or the stream ended without a reason.
    async fn hear(
        &self,
        call: &mut ClientCall,
        id: &RawValue,
        mut stream: Box<GatewayStream>,
        again: bool,
    ) -> bool {
        while let Ok(Some(message)) = stream.next().await {
            match wire::parse_upstream(&message) {
                Ok(Message::Notification { method, params }) if method == ACKNOWLEDGED && again => {
                    let filter = params.and_then(|params| member(params, "notifications"));
                    for told in changes(id, filter) {
                        self.out.message(told.into()).await;
                    }
                }
                Ok(Message::Response {
                    outcome: Outcome::Result(_),
                    ..
                }) => return false,
                Ok(Message::Response { .. }) => {
                    self.pass(call, message).await;
                    return true;
                }
                _ => self.out.message(message).await,
            }
        }
        false
    }
}

/// Notifications that make a client reload everything it has subscribed to.
fn changes(id: &RawValue, filter: Option<&RawValue>) -> Vec<Vec<u8>> {
    let Some(filter) = filter else {
        return Vec::new();
    };
    let lists = [
        ("toolsListChanged", "notifications/tools/list_changed"),
        ("promptsListChanged", "notifications/prompts/list_changed"),
        (
            "resourcesListChanged",
            "notifications/resources/list_changed",
        ),
    ];
    let asked = |name: &str| member(filter, name).is_some_and(|flag| flag.get() == "true");
    let params = set_meta_member(empty(), SUBSCRIPTION_ID, id);
    let mut told: Vec<Vec<u8>> = lists
        .into_iter()
        .filter(|(name, _)| asked(name))
        .map(|(_, method)| wire::notification(method, Some(&params)))
        .collect();
    if let Some(uris) = member(filter, "resourceSubscriptions") {
        each_element(uris, |uri| {
            if text(uri).is_some() {
                let params = set_member(&params, "uri", uri);
                told.push(wire::notification(
                    "notifications/resources/updated",
                    Some(&params),
                ));
            }
        });
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_a_subscriber_is_told_to_look_again_at_what_it_follows() {
        let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
        let filter = raw(
            r#"{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1"]}"#,
        );
        let told = changes(&raw("\"s\""), Some(&filter));
        let told: Vec<_> = told
            .iter()
            .map(|message| std::str::from_utf8(message).unwrap())
            .collect();
        assert_eq!(
            told,
            [
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"uri":"a:1"}}"#,
            ]
        );
    }
}
