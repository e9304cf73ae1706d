//! A modern client's call. What a legacy server asks meanwhile becomes the
//! result of this request; the client's next request brings the answers.

use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::errand::Job;
use super::exchange::{Answered, Exchange, Happening};
use super::members::Members;
use super::parked::{Parked, ParkedCall};
use super::state::{Kept, RequestState};
use super::{Item, Reply, Source};
use crate::fleet::CallError;
use crate::upstream::{ServerRequest, UpstreamError};
use crate::wire::object::{member, remove_members};
use crate::wire::{RpcError, code};

/// Questions that come together are asked together.
const GATHER: Duration = Duration::from_millis(30);

/// One request of a modern client.
pub(super) struct ModernCall {
    pub job: Job,
    pub exchange: Exchange,
    pub parked: Parked,
    pub states: RequestState,
    /// What the server waits for, by the key the client knows it by.
    pub asked: IndexMap<String, ServerRequest>,
    pub count: u32,
    /// An answer that came while questions were still gathered.
    pub answered: Option<Answered>,
}

#[async_trait]
impl Source for ModernCall {
    async fn next(&mut self) -> Item {
        loop {
            let happening = match self.answered.take() {
                Some(answered) => Happening::Answered(answered),
                None if self.asked.is_empty() => self.exchange.next().await,
                None => return Item::Last(self.ask().await),
            };
            match happening {
                Happening::Said(note) => {
                    if let Some(message) = self.job.note(&note) {
                        return Item::Message(message.into());
                    }
                }
                Happening::Asked(request) => {
                    if let Some(refusal) = self.take_question(request) {
                        return Item::Last(refusal);
                    }
                }
                Happening::Answered(answered) => return Item::Last(self.finish(answered)),
            }
        }
    }
}

impl ModernCall {
    /// Notes a question, or ends the call if this client cannot be asked it.
    fn take_question(&mut self, request: ServerRequest) -> Option<Reply> {
        let lacking = self
            .job
            .abilities
            .lacks(&request.method, request.params.as_deref());
        if let Some(lacking) = lacking {
            return Some(self.missing(&request.method, lacking));
        }
        self.count += 1;
        self.asked.insert(format!("ask-{}", self.count), request);
        None
    }

    fn missing(&self, method: &str, lacking: &'static str) -> Reply {
        let text = format!("{} needs the client's {method}", self.job.what);
        let data = format!(r#"{{"requiredCapabilities":{lacking}}}"#);
        let mut error = RpcError::new(code::MISSING_CAPABILITY, text);
        if let Ok(data) = RawValue::from_string(data) {
            error = error.with_data(data);
        }
        Reply::error(&self.job.id, &error)
    }

    /// Gathers what else is asked, then hands the questions to the client.
    async fn ask(&mut self) -> Reply {
        let until = Instant::now() + GATHER;
        while let Ok(happening) = tokio::time::timeout_at(until, self.exchange.next()).await {
            match happening {
                Happening::Asked(request) => {
                    if let Some(refusal) = self.take_question(request) {
                        return refusal;
                    }
                }
                // Nothing can be said on a stream that is about to end.
                Happening::Said(_) => {}
                Happening::Answered(answered) => {
                    // It went on without waiting for an answer.
                    self.asked.clear();
                    return self.finish(answered);
                }
            }
        }
        self.park()
    }

    /// Keeps the exchange for the client's return and tells it what to bring.
    fn park(&mut self) -> Reply {
        let questions = questions(&self.asked);
        let digest = self.job.digest();
        let call = ParkedCall {
            exchange: std::mem::replace(&mut self.exchange, Exchange::nothing()),
            asked: std::mem::take(&mut self.asked),
            count: self.count,
        };
        let Some(number) = self.parked.put(&self.job.principal, call) else {
            let text = "too many calls of this client wait for answers already";
            return self.job.error(code::INTERNAL, text);
        };
        let state = self
            .states
            .seal(&self.job.principal, &digest, Kept::Parked(number));
        input_required(&self.job.id, &questions, &state)
    }

    fn finish(&mut self, answered: Answered) -> Reply {
        // A server of 2025-11-25 that wants a page opened first has ended the
        // call with an error; the client's retry is a call of its own.
        if let Err(CallError::Upstream(UpstreamError::Rpc(error))) = &answered.answer
            && error.code == code::URL_ELICITATION
        {
            return self.pages_first(error);
        }
        self.job.reply(answered)
    }

    fn pages_first(&self, error: &RpcError) -> Reply {
        if !self.job.abilities.url {
            return self.missing("elicitation/create", r#"{"elicitation":{"url":{}}}"#);
        }
        let pages = error
            .data
            .as_deref()
            .and_then(|data| member(data, "elicitations"))
            .and_then(|pages| serde_json::from_str::<Vec<&RawValue>>(pages.get()).ok())
            .unwrap_or_default();
        let mut questions = Members::new();
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
        let digest = self.job.digest();
        let state = self
            .states
            .seal(&self.job.principal, &digest, Kept::Nothing);
        input_required(&self.job.id, &questions.done(), &state)
    }

    /// Gives the server what the client brought. False if something it waits
    /// for is still missing: then it is asked for again.
    pub fn answer(&mut self, responses: Option<&RawValue>) {
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

/// The questions as `inputRequests`.
fn questions(asked: &IndexMap<String, ServerRequest>) -> Box<RawValue> {
    let mut all = Members::new();
    for (key, request) in asked {
        let params = request.params.as_deref().map(|params| {
            // These mean nothing to a modern client.
            remove_members(params, &["_meta", "task", "elicitationId"])
        });
        let params = params.as_deref().map_or("{}", RawValue::get);
        let method = &request.method;
        all.json(
            key,
            &format!(r#"{{"method":"{method}","params":{params}}}"#),
        );
    }
    all.done()
}

fn input_required(id: &RawValue, questions: &RawValue, state: &str) -> Reply {
    let mut result = Members::new();
    result.text("resultType", "input_required");
    result.json("inputRequests", questions.get());
    result.text("requestState", state);
    Reply::result(id, &result.done())
}
