//! A modern client's call. Questions of a legacy server become the result of
//! this request; the client's next request brings the answers.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ability::is_question;
use super::activity::OutcomeKind;
use super::call::{Call, received};
use super::members::ObjectWriter;
use super::parked::{ParkedCall, ParkedCalls};
use super::questions::{Questions, answers, input_requests, is_about, key, pages, withdraws};
use super::{Reply, ReplyItem};
use fleet::{CallError, CallItem, CallOutcome, CallStream};
use upstream::{Notification, ServerRequest, UpstreamError};
use wire::object::{each_member, member, remove_members};
use wire::{RpcError, code};

/// Questions that arrive within this time go to the client together.
const GATHER: Duration = Duration::from_millis(30);

/// One request of a modern client.
pub(super) struct ModernCall {
    call: Call,
    parked: ParkedCalls,
    /// `None` once the call is parked: then the reply has been made.
    stream: Option<CallStream>,
    /// Questions that the server waits for.
    questions: Questions,
    /// Questions that this client does not support, and the capability that it
    /// lacks.
    unaskable: Vec<(ServerRequest, &'static str)>,
    /// The number of questions of the call so far.
    count: u32,
    /// Answers that came with the request, before any question.
    early_answers: Vec<Box<RawValue>>,
}

impl ModernCall {
    pub(crate) fn new(
        call: Call,
        parked: ParkedCalls,
        stream: CallStream,
        responses: Option<&RawValue>,
    ) -> ModernCall {
        let mut early_answers = Vec::new();
        if let Some(responses) = responses {
            each_member(responses, |_, answer| early_answers.push(answer.to_owned()));
        }
        ModernCall {
            call,
            parked,
            stream: Some(stream),
            questions: Questions::new(),
            unaskable: Vec::new(),
            count: 0,
            early_answers,
        }
    }

    /// Continues a parked call with the client's answers. Questions that are
    /// still open are sent again.
    pub(crate) fn resume(
        mut call: Call,
        parked: ParkedCalls,
        mut resumed: ParkedCall,
        responses: Option<&RawValue>,
    ) -> ModernCall {
        let keys: Vec<String> = resumed.questions.keys().cloned().collect();
        for key in keys {
            if let Some(answer) = responses.and_then(|all| member(all, &key))
                && let Some(question) = resumed.questions.shift_remove(&key)
            {
                question.answer(Ok(answer.to_owned()));
            }
        }
        call.watch = resumed.watch;
        ModernCall {
            call,
            parked,
            stream: resumed.stream,
            questions: resumed.questions,
            unaskable: Vec::new(),
            count: resumed.count,
            early_answers: Vec::new(),
        }
    }

    /// Cancel-safe; not to be called after [`ReplyItem::Last`].
    pub(crate) async fn next(&mut self) -> ReplyItem {
        loop {
            if self.is_asking() {
                match self.ask().await {
                    Some(reply) => return ReplyItem::Last(reply),
                    None => continue,
                }
            }
            match received(&mut self.stream).await {
                CallItem::Notification(note) if withdraws(&note) => self.withdrawn(&note),
                CallItem::Notification(note) => {
                    if let Some(message) = self.call.notification(&note) {
                        return ReplyItem::Message(message.into());
                    }
                }
                CallItem::Request(request) => self.take_question(request),
                CallItem::Done(outcome) => return ReplyItem::Last(self.finish(outcome)),
            }
        }
    }

    fn is_asking(&self) -> bool {
        !self.questions.is_empty() || !self.unaskable.is_empty()
    }

    fn take_question(&mut self, request: ServerRequest) {
        // Dropping the request refuses it: no client capability would help.
        if !is_question(&request.method) {
            return;
        }
        let abilities = self.call.abilities;
        if let Some(lacking) = abilities.lacks(&request.method, request.params.as_deref()) {
            self.unaskable.push((request, lacking));
            return;
        }
        let known = self
            .early_answers
            .iter()
            .position(|one| answers(one, &request));
        if let Some(known) = known {
            request.answer(Ok(self.early_answers.remove(known)));
            return;
        }
        self.count += 1;
        let key = key(&request, &self.questions, self.count);
        self.questions.insert(key, request);
    }

    fn missing(&self, method: &str, lacking: &'static str) -> Reply {
        let text = format!(
            "{} needs a client that supports {method}",
            self.call.client_name
        );
        let data = format!(r#"{{"requiredCapabilities":{lacking}}}"#);
        let mut error = RpcError::new(code::MISSING_CAPABILITY, text);
        if let Ok(data) = RawValue::from_string(data) {
            error = error.with_data(data);
        }
        self.call.error(&error)
    }

    /// The server cancelled a question.
    fn withdrawn(&mut self, note: &Notification) {
        let is_it = |request: &ServerRequest| is_about(note, request.id());
        let key = self.questions.iter().find(|(_, request)| is_it(request));
        let key = key.map(|(key, _)| key.clone());
        if let Some(request) = key.and_then(|key| self.questions.shift_remove(&key)) {
            return request.forget();
        }
        if let Some(at) = self
            .unaskable
            .iter()
            .position(|(request, _)| is_it(request))
        {
            self.unaskable.remove(at).0.forget();
        }
    }

    /// Waits a moment for further questions, then gives all of them to the
    /// client; `None` if the server has cancelled them meanwhile.
    async fn ask(&mut self) -> Option<Reply> {
        let until = Instant::now() + GATHER;
        while let Ok(item) = tokio::time::timeout_at(until, received(&mut self.stream)).await {
            match item {
                CallItem::Request(request) => self.take_question(request),
                CallItem::Notification(note) if withdraws(&note) => self.withdrawn(&note),
                // The reply is next: a notification would only make a stream of it.
                CallItem::Notification(_) => {}
                CallItem::Done(outcome) => {
                    // The server continued without an answer.
                    self.questions.clear();
                    self.unaskable.clear();
                    return Some(self.finish(outcome));
                }
            }
        }
        if !self.is_asking() {
            return None;
        }
        // Of several questions, the client gets those that it supports and the
        // others are refused; with none left the call cannot continue.
        Some(match (self.questions.is_empty(), self.unaskable.first()) {
            (true, Some((request, lacking))) => self.missing(&request.method, lacking),
            _ => {
                self.unaskable.clear();
                self.park()
            }
        })
    }

    /// Parks the call and gives its questions to the client.
    fn park(&mut self) -> Reply {
        let questions = input_requests(&self.questions);
        let parked = ParkedCall {
            stream: self.stream.take(),
            questions: std::mem::take(&mut self.questions),
            watch: std::mem::take(&mut self.call.watch),
            count: self.count,
        };
        let state = self.parked.park(&self.call, parked);
        input_required(&self.call.id, &questions, &state)
    }

    fn finish(&mut self, outcome: CallOutcome) -> Reply {
        // A server of 2025-11-25 that wants a page opened first has ended the
        // call with an error; the client repeats it as a new call.
        if let Err(CallError::Upstream(UpstreamError::Rpc(error))) = &outcome.result
            && let Some(pages) = pages(error)
        {
            return self.page_requests(&pages);
        }
        self.call.reply(outcome)
    }

    fn page_requests(&self, pages: &[&RawValue]) -> Reply {
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
        self.call.watch.end(OutcomeKind::Ok, None);
        let state = self.parked.restart_state(&self.call);
        input_required(&self.call.id, &questions.done(), &state)
    }
}

fn input_required(id: &RawValue, questions: &RawValue, state: &str) -> Reply {
    let mut result = ObjectWriter::new();
    result.text("resultType", "input_required");
    result.json("inputRequests", questions.get());
    result.text("requestState", state);
    Reply::result(id, &result.done())
}
