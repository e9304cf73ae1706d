//! A modern client's call. What a legacy server asks meanwhile becomes the
//! result of this request; the client's next request brings the answers.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ability::is_question;
use super::activity::OutcomeKind;
use super::call::Call;
use super::members::ObjectWriter;
use super::parked::{ParkedCall, ParkedCalls};
use super::questions::{Questions, answers, input_requests, is_about, key, pages, withdraws};
use super::state::{Kept, RequestState};
use super::{Reply, ReplyItem};
use fleet::{CallError, CallItem, CallOutcome, CallStream};
use upstream::{Notification, ServerRequest, UpstreamError};
use wire::object::{each_member, member, remove_members};
use wire::{RpcError, code};

/// Questions that come together are asked together.
const GATHER: Duration = Duration::from_millis(30);

/// One request of a modern client.
pub(super) struct ModernCall {
    call: Call,
    /// None once the call is parked: the reply has been made.
    stream: Option<CallStream>,
    parked: ParkedCalls,
    states: RequestState,
    /// What the server waits for.
    asked: Questions,
    /// What it asks that this client cannot be asked, and what is missing.
    lacking: Vec<(ServerRequest, &'static str)>,
    count: u32,
    /// Answers that came with the request, before anything was asked.
    brought: Vec<Box<RawValue>>,
}

impl ModernCall {
    pub(crate) fn new(call: Call, parked: ParkedCalls, states: RequestState) -> ModernCall {
        ModernCall {
            call,
            stream: None,
            parked,
            states,
            asked: Questions::new(),
            lacking: Vec::new(),
            count: 0,
            brought: Vec::new(),
        }
    }

    /// A call that begins; its client may bring answers to what it expects.
    pub(crate) fn start(mut self, stream: CallStream, responses: Option<&RawValue>) -> ModernCall {
        self.stream = Some(stream);
        if let Some(responses) = responses {
            each_member(responses, |_, one| self.brought.push(one.to_owned()));
        }
        self
    }

    /// A call that goes on with what its client brought.
    pub(crate) fn resume(mut self, parked: ParkedCall, responses: Option<&RawValue>) -> ModernCall {
        self.stream = parked.stream;
        self.asked = parked.asked;
        self.count = parked.count;
        self.answer(responses);
        self
    }

    /// Cancel-safe. Not to be called again after [`ReplyItem::Last`].
    pub(crate) async fn next(&mut self) -> ReplyItem {
        loop {
            if self.is_asking() {
                match self.ask().await {
                    Some(reply) => return ReplyItem::Last(reply),
                    None => continue,
                }
            }
            match self.received().await {
                CallItem::Notification(note) if withdraws(&note) => self.withdrawn(&note),
                CallItem::Notification(note) => {
                    if let Some(message) = self.call.note(&note) {
                        return ReplyItem::Message(message.into());
                    }
                }
                CallItem::Request(request) => self.take_question(request),
                CallItem::Done(outcome) => return ReplyItem::Last(self.finish(outcome)),
            }
        }
    }

    async fn received(&mut self) -> CallItem {
        match &mut self.stream {
            Some(stream) => stream.next().await,
            None => std::future::pending().await,
        }
    }

    fn is_asking(&self) -> bool {
        !self.asked.is_empty() || !self.lacking.is_empty()
    }

    fn take_question(&mut self, request: ServerRequest) {
        // Refused by being dropped: nothing the client could declare helps.
        if !is_question(&request.method) {
            return;
        }
        let abilities = self.call.abilities;
        if let Some(lacking) = abilities.lacks(&request.method, request.params.as_deref()) {
            self.lacking.push((request, lacking));
            return;
        }
        let known = self.brought.iter().position(|one| answers(one, &request));
        if let Some(known) = known {
            request.answer(Ok(self.brought.remove(known)));
            return;
        }
        self.count += 1;
        let key = key(&request, &self.asked, self.count);
        self.asked.insert(key, request);
    }

    fn missing(&self, method: &str, lacking: &'static str) -> Reply {
        let text = format!("{} needs the client's {method}", self.call.what);
        let data = format!(r#"{{"requiredCapabilities":{lacking}}}"#);
        let mut error = RpcError::new(code::MISSING_CAPABILITY, text);
        if let Ok(data) = RawValue::from_string(data) {
            error = error.with_data(data);
        }
        self.call
            .watch
            .over(OutcomeKind::Error, Some(&error.message));
        Reply::error(&self.call.id, &error)
    }

    /// The server no longer wants to know.
    fn withdrawn(&mut self, note: &Notification) {
        let is_it = |request: &ServerRequest| is_about(note, request.id());
        let key = self.asked.iter().find(|(_, request)| is_it(request));
        let key = key.map(|(key, _)| key.clone());
        if let Some(request) = key.and_then(|key| self.asked.shift_remove(&key)) {
            return request.forget();
        }
        if let Some(at) = self.lacking.iter().position(|(request, _)| is_it(request)) {
            self.lacking.remove(at).0.forget();
        }
    }

    /// Gathers what else is asked, then hands the questions to the client;
    /// `None` if the server has given them up meanwhile.
    async fn ask(&mut self) -> Option<Reply> {
        let until = Instant::now() + GATHER;
        while let Ok(item) = tokio::time::timeout_at(until, self.received()).await {
            match item {
                CallItem::Request(request) => self.take_question(request),
                CallItem::Notification(note) if withdraws(&note) => self.withdrawn(&note),
                // Nothing can be said on a stream that is about to end.
                CallItem::Notification(_) => {}
                CallItem::Done(outcome) => {
                    // It went on without waiting for an answer.
                    self.asked.clear();
                    self.lacking.clear();
                    return Some(self.finish(outcome));
                }
            }
        }
        if !self.is_asking() {
            return None;
        }
        // Where it asks several things, those that can be asked are, and the
        // others refused; where there is nothing else, the call cannot go on.
        Some(match (self.asked.is_empty(), self.lacking.first()) {
            (true, Some((request, lacking))) => self.missing(&request.method, lacking),
            _ => {
                self.lacking.clear();
                self.park()
            }
        })
    }

    /// Keeps the call for the client's return and tells it what to bring.
    fn park(&mut self) -> Reply {
        let questions = input_requests(&self.asked);
        let digest = self.call.digest();
        let call = ParkedCall {
            stream: self.stream.take(),
            asked: std::mem::take(&mut self.asked),
            watch: std::mem::take(&mut self.call.watch),
            count: self.count,
        };
        let number = self.parked.put(&self.call.request.slot, call);
        let state = self
            .states
            .seal(&self.call.principal, &digest, Kept::Parked(number));
        input_required(&self.call.id, &questions, &state)
    }

    fn finish(&mut self, outcome: CallOutcome) -> Reply {
        // A server of 2025-11-25 that wants a page opened first has ended the
        // call with an error; the client's retry is a call of its own.
        if let Err(CallError::Upstream(UpstreamError::Rpc(error))) = &outcome.result
            && let Some(pages) = pages(error)
        {
            return self.pages_first(&pages);
        }
        self.call.reply(outcome)
    }

    fn pages_first(&self, pages: &[&RawValue]) -> Reply {
        if !self.call.abilities.url {
            return self.missing("elicitation/create", r#"{"elicitation":{"url":{}}}"#);
        }
        let mut questions = ObjectWriter::new();
        for (number, page) in pages.iter().enumerate() {
            let params = remove_members(page, &["elicitationId", "_meta"]);
            questions.json(
                &format!("page-{}", number + 1),
                &format!(
                    r#"{{"method":"elicitation/create","params":{}}}"#,
                    params.get()
                ),
            );
        }
        self.call.watch.over(OutcomeKind::Ok, None);
        let digest = self.call.digest();
        let state = self
            .states
            .seal(&self.call.principal, &digest, Kept::Nothing);
        input_required(&self.call.id, &questions.done(), &state)
    }

    /// Gives the server what the client brought. What is still missing is
    /// asked for again.
    fn answer(&mut self, responses: Option<&RawValue>) {
        let keys: Vec<String> = self.asked.keys().cloned().collect();
        for key in keys {
            let Some(response) = responses.and_then(|all| member(all, &key)) else {
                continue;
            };
            if let Some(request) = self.asked.shift_remove(&key) {
                request.answer(Ok(response.to_owned()));
            }
        }
    }
}

fn input_required(id: &RawValue, questions: &RawValue, state: &str) -> Reply {
    let mut result = ObjectWriter::new();
    result.text("resultType", "input_required");
    result.json("inputRequests", questions.get());
    result.text("requestState", state);
    Reply::result(id, &result.done())
}
