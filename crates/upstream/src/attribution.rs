//! The attribution of a server's questions to calls. A message on a pipe does
//! not name its call: a question belongs to the one call in flight that can
//! have caused it. If several can, the question is held until the others have
//! ended, for a limited time; then it is refused.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::asking::QuestionHistory;
use super::pending::{LINGERS, PendingRequests};
use super::{CallEvent, LogSink, LogStream, ServerRequest};
use wire::{RpcError, code};

/// How long a question waits for other calls to end.
const HOLD: Duration = Duration::from_secs(5);
/// Added for each further question: the end of the one before may settle it.
const STAGGER: Duration = Duration::from_secs(1);
/// The limit of waiting questions per connection.
const HELD: usize = 64;

/// The calls that can have caused a server's question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub calls: Vec<u64>,
    /// The calls belong to several clients.
    pub mixed: bool,
}

impl Candidates {
    /// The only call that can have caused the server's message.
    pub(crate) fn sole(&self) -> Option<u64> {
        match self.calls[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

/// The questions of one connection.
pub(crate) struct Attribution {
    pending: Arc<PendingRequests>,
    asking: Arc<QuestionHistory>,
    log: LogSink,
    /// Notified at every question.
    asked: Notify,
    /// Every open question holds a receiver of it.
    open: watch::Sender<()>,
    held: Mutex<Vec<HeldQuestion>>,
}

/// A question that is not attributed to a call yet.
struct HeldQuestion {
    id: Box<RawValue>,
    withdrawn: CancellationToken,
}

impl Attribution {
    pub(crate) fn new(
        pending: &Arc<PendingRequests>,
        asking: &Arc<QuestionHistory>,
        log: &LogSink,
    ) -> Arc<Attribution> {
        Arc::new(Attribution {
            pending: pending.clone(),
            asking: asking.clone(),
            log: log.clone(),
            asked: Notify::new(),
            open: watch::Sender::new(()),
            held: Mutex::default(),
        })
    }

    /// Resolves when the server asks a question.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Resolves once the server has no open question.
    pub(crate) async fn answered(&self) {
        self.open.closed().await;
    }

    /// Takes a question; returns it if no call can have caused it.
    pub(crate) fn take(self: &Arc<Self>, request: ServerRequest) -> Option<ServerRequest> {
        self.asked.notify_waiters();
        let request = request.open(self.open.subscribe());
        let candidates = self.pending.candidates();
        if self.pending.concerns_clients(&candidates) {
            self.asking.see();
        }
        match candidates.calls[..] {
            [] => return Some(request),
            [call] => self.give(call, request),
            _ => self.hold(candidates, request),
        }
        None
    }

    /// A full queue drops the request, which refuses it.
    fn give(&self, call: u64, request: ServerRequest) {
        if let Some(turn) = self.pending.turn(call) {
            self.asking.learn(&turn.subject, true);
        }
        self.pending.event(call, CallEvent::Request(request));
    }

    fn hold(self: &Arc<Self>, candidates: Candidates, request: ServerRequest) {
        let withdrawn = CancellationToken::new();
        let until = {
            let mut held = self.held.lock();
            if held.len() >= HELD {
                drop(held);
                return self.refuse(&candidates, request);
            }
            let until = Instant::now() + HOLD + STAGGER * held.len() as u32;
            held.push(HeldQuestion {
                id: request.id().to_owned(),
                withdrawn: withdrawn.clone(),
            });
            until
        };
        let this = self.clone();
        tokio::spawn(async move {
            let settled = tokio::select! {
                candidates = this.settled(candidates, until) => Some(candidates),
                () = withdrawn.cancelled() => None,
            };
            let id = request.id().get();
            this.held.lock().retain(|held| held.id.get() != id);
            let Some(candidates) = settled else {
                return request.forget();
            };
            match candidates.sole().or_else(|| this.likely(&candidates)) {
                Some(call) => this.give(call, request),
                None => this.refuse(&candidates, request),
            }
        });
    }

    /// Waits until at most one of the candidates is left.
    async fn settled(&self, mut candidates: Candidates, until: Instant) -> Candidates {
        loop {
            let left = self.pending.left();
            tokio::pin!(left);
            left.as_mut().enable();
            self.pending.keep_running(&mut candidates);
            if candidates.calls.len() <= 1 || Instant::now() >= until {
                return candidates;
            }
            // An abandoned call leaves without a notification.
            let look = until.min(Instant::now() + LINGERS);
            tokio::select! {
                () = left => {}
                () = tokio::time::sleep_until(look) => {}
            }
        }
    }

    /// Among the calls of one client, the only one that is known to ask.
    fn likely(&self, candidates: &Candidates) -> Option<u64> {
        if candidates.mixed {
            return None;
        }
        let mut calls = self.pending.subjects(candidates);
        calls.retain(|(_, turn)| self.asking.asks(&turn.subject) == Some(true));
        match &calls[..] {
            [(call, _)] => Some(*call),
            _ => None,
        }
    }

    fn refuse(&self, candidates: &Candidates, request: ServerRequest) {
        // The calls have ended: dropping the request refuses it.
        if candidates.calls.is_empty() {
            return;
        }
        let text = format!(
            "cannot tell which of {} calls in flight asks for {}; make the call again {}",
            candidates.calls.len(),
            request.method,
            // The isolation is not known here: the question itself may have
            // just moved an "auto" server to one process per client.
            match candidates.mixed {
                true => {
                    "(with isolation \"auto\" or \"principal\" each client now has its own \
                     process; with \"shared\", make it while no other client's call runs)"
                }
                false => "while no other call runs",
            }
        );
        (self.log)(LogStream::Portway, &text);
        request.answer(Err(RpcError::new(code::INTERNAL, text)));
    }

    /// Handles the server's cancellation of a question; a held one is dropped.
    pub(crate) fn withdrawn(&self, id: &RawValue) {
        let held = self.held.lock();
        let given_up = held.iter().filter(|held| held.id.get() == id.get());
        given_up.for_each(|held| held.withdrawn.cancel());
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::pending::PendingRequest;
    use crate::permit::OutgoingMessage;
    use crate::{EventReceiver, UpstreamCall, event_queue};

    /// A connection with calls in flight, and the messages sent to its server.
    struct AttributionRig {
        attribution: Arc<Attribution>,
        outbox: mpsc::Sender<OutgoingMessage>,
        answers: mpsc::Receiver<OutgoingMessage>,
    }

    impl AttributionRig {
        fn new() -> AttributionRig {
            let (outbox, answers) = mpsc::channel(8);
            let log: LogSink = Arc::new(|_, _| {});
            let asking = Arc::new(QuestionHistory::default());
            AttributionRig {
                attribution: Attribution::new(&PendingRequests::new(), &asking, &log),
                outbox,
                answers,
            }
        }

        fn call(&self, id: u64, whose: &str) -> (PendingRequest, EventReceiver) {
            let (events, queue) = event_queue(8);
            let whose = whose.into();
            let able = RawValue::from_string(r#"{"elicitation":{}}"#.into()).unwrap();
            let call = UpstreamCall {
                events: Some(events),
                capabilities: Some(&able),
                whose: Some(&whose),
                ..UpstreamCall::new("tools/call", Duration::from_secs(30))
            };
            let ticket = self.attribution.pending.expect(id, &call);
            (ticket.unwrap(), queue)
        }

        fn ask(&self, id: &str) -> Option<ServerRequest> {
            let id = RawValue::from_string(id.into()).unwrap();
            let method = "elicitation/create";
            let request = ServerRequest::new(&id, method, None, self.outbox.clone().into());
            self.attribution.take(request)
        }

        async fn told(&mut self) -> String {
            let line = self.answers.recv().await.unwrap();
            String::from_utf8(line.bytes.to_vec()).unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn c7_a_question_waits_until_it_is_clear_whose_it_is() {
        let rig = AttributionRig::new();
        let (_first, mut first) = rig.call(1, "a");
        let (second, mut other) = rig.call(2, "b");
        assert!(rig.ask("7").is_none());
        tokio::task::yield_now().await;
        assert!(first.try_recv().is_none() && other.try_recv().is_none());
        drop(second);
        assert!(matches!(first.recv().await, Some(CallEvent::Request(_))));
        assert!(rig.attribution.asking.seen());
    }

    #[tokio::test(start_paused = true)]
    async fn c7_a_call_that_came_later_is_not_asked() {
        let rig = AttributionRig::new();
        let (_first, mut first) = rig.call(1, "a");
        let (second, _) = rig.call(2, "a");
        assert!(rig.ask("7").is_none());
        let (_late, mut late) = rig.call(3, "a");
        drop(second);
        assert!(matches!(first.recv().await, Some(CallEvent::Request(_))));
        assert!(late.try_recv().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn c7_what_stays_unclear_is_refused_with_the_reason() {
        let mut rig = AttributionRig::new();
        let calls = [rig.call(1, "a"), rig.call(2, "b")];
        assert!(rig.ask("7").is_none());
        let told = rig.told().await;
        assert!(told.contains("which of 2 calls in flight"), "{told}");
        assert!(!told.contains("set the server's isolation"), "{told}");
        // The server continues with one of them: the next question is clear.
        assert!(rig.ask("8").is_none());
        let [(first, _), (_second, mut second)] = calls;
        drop(first);
        assert!(matches!(second.recv().await, Some(CallEvent::Request(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn c7_a_held_question_that_is_withdrawn_gets_no_answer() {
        let mut rig = AttributionRig::new();
        let calls = [rig.call(1, "a"), rig.call(2, "b")];
        assert!(rig.ask("7").is_none());
        let id = RawValue::from_string("7".into()).unwrap();
        rig.attribution.withdrawn(&id);
        rig.attribution.answered().await;
        assert!(rig.answers.try_recv().is_err());
        drop(calls);
    }

    #[tokio::test(start_paused = true)]
    async fn c7_outside_any_call_nothing_is_learned() {
        let rig = AttributionRig::new();
        assert!(rig.ask("7").is_some());
        assert!(!rig.attribution.asking.seen());
    }
}
