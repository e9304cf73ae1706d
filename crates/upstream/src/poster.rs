//! Sends queued messages to a server that takes each message as a separate HTTP
//! request.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::permit::OutgoingMessage;
use wire::Message;

const AT_ONCE: usize = 16;

/// Posts the messages of `queue`, several at a time: a message that the server
/// is slow to accept delays no other. Only the messages after the end of the
/// handshake wait for it.
pub(crate) async fn run<F, P>(mut queue: mpsc::Receiver<OutgoingMessage>, post: P)
where
    P: Fn(OutgoingMessage) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut flying = JoinSet::new();
    while let Some(message) = queue.recv().await {
        while flying.try_join_next().is_some() {}
        if flying.len() >= AT_ONCE {
            flying.join_next().await;
        }
        if ends_handshake(&message.bytes) {
            post(message).await;
        } else {
            flying.spawn(post(message));
        }
    }
}

fn ends_handshake(message: &[u8]) -> bool {
    matches!(
        wire::parse_upstream(message),
        Ok(Message::Notification { method, .. }) if method == "notifications/initialized"
    )
}
