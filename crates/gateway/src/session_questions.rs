//! Questions of a server outside any call. A server that serves one legacy
//! session alone asks that session's client, on the session's own stream; the
//! questions of any other server are refused, because the client is unknown.

use std::sync::Arc;

use super::ability::Abilities;
use super::elicit;
use super::listening::SessionFeeds;
use super::parked::PATIENCE;
use super::session::{ClientQuestion, Session};
use fleet::Fleet;
use upstream::ServerRequest;
use wire::{Era, RpcError, code};

/// Passes such questions on from now on.
pub(super) fn attend(fleet: &Fleet, feeds: &SessionFeeds) {
    let feeds = feeds.clone();
    fleet.attend(Box::new(move |session: Arc<str>, request| {
        // Dropping the question refuses it: a client without an open stream
        // cannot receive it.
        if let Some(session) = feeds.session(&session)
            && session.own().is_read()
        {
            ask(&session, request);
        }
    }));
}

fn ask(session: &Arc<Session>, request: ServerRequest) {
    let params = request.params.as_deref();
    let abilities = Abilities::read(&session.capabilities);
    if abilities.lacks(&request.method, params).is_some() {
        return;
    }
    let spelled = elicit::for_legacy(&request.method, params, session.version, Era::Legacy);
    let Some(params) = spelled else { return };
    let ClientQuestion {
        message, answer, ..
    } = session.ask(&request.method, params.as_deref());
    session.send(message);
    let ended = session.ended().clone();
    tokio::spawn(async move {
        let answer = tokio::select! {
            answer = tokio::time::timeout(PATIENCE, answer) => answer,
            () = ended.cancelled() => return,
        };
        let silent = || RpcError::new(code::INTERNAL, "the client did not answer");
        match answer {
            Ok(Ok(answer)) => request.answer(answer),
            _ => request.answer(Err(silent())),
        }
    });
}
