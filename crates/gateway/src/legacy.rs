//! A legacy client's call. Questions of the server, of either era, go to the
//! client as requests on the call's own stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;

use super::ReplyItem;
use super::call::{Call, received};
use super::elicit;
use super::failure::CallFailure;
use super::members::ObjectWriter;
use super::parked::PATIENCE;
use super::questions::{is_about, withdraws};
use super::session::{ClientAnswer, ClientQuestion, Session};
use fleet::{CallItem, CallOutcome, CallRequest, CallStream, Fleet};
use upstream::{Notification, ServerRequest};
use wire::meta::number;
use wire::object::{each_member, member, set_member, text};
use wire::result::{ResultType, result_type};
use wire::{Era, RpcError, code};

/// How often a modern server may request input in one call.
const MAX_ROUNDS: u32 = 8;
/// The pause before a round in which the server requested no input.
const EMPTY_ROUND: Duration = Duration::from_millis(250);

/// One request of a legacy client.
pub(super) struct LegacyCall {
    call: Call,
    fleet: Fleet,
    /// `None` for a request without a session, whose client accepts no
    /// requests.
    session: Option<Arc<Session>>,
    /// `None` while a modern server's input is gathered.
    stream: Option<CallStream>,
    round: Option<InputRound>,
    rounds: u32,
    /// `None` until the first question.
    answers: Option<FuturesUnordered<PendingAnswer>>,
    questions: Vec<OpenQuestion>,
    ready: VecDeque<ReplyItem>,
}

/// A legacy server's question that the client has not answered.
struct OpenQuestion {
    server_id: Box<RawValue>,
    client_id: u64,
    withdrawn: bool,
}

/// An answer of the client, still to come.
type PendingAnswer = Pin<Box<dyn Future<Output = (QuestionSource, ClientAnswer)> + Send>>;

/// Where the client's answer goes.
enum QuestionSource {
    /// To a legacy server, which waits for it.
    Server(ServerRequest),
    /// To a modern server, with the next round.
    Round { key: String, method: String },
    /// No answer: the round requested no input.
    EmptyRound,
}

/// The input that a modern server requests before it continues.
struct InputRound {
    responses: ObjectWriter,
    open: usize,
    state: Option<Box<RawValue>>,
    failed: Option<String>,
}

impl LegacyCall {
    pub(crate) fn new(call: Call, fleet: Fleet, stream: CallStream) -> LegacyCall {
        LegacyCall {
            session: call.client.session.clone(),
            call,
            fleet,
            stream: Some(stream),
            round: None,
            rounds: 0,
            answers: None,
            questions: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn take(&mut self, item: CallItem) -> Option<ReplyItem> {
        match item {
            CallItem::Notification(note) if withdraws(&note) => self.withdrawn(&note),
            CallItem::Notification(note) => {
                let message = self.call.notification(&note)?;
                Some(ReplyItem::Message(message.into()))
            }
            CallItem::Request(request) => self.relay(request),
            CallItem::Done(outcome) => self.done(outcome),
        }
    }

    /// Passes a legacy server's question on. A question that this client does
    /// not support is dropped, which refuses it.
    fn relay(&mut self, request: ServerRequest) -> Option<ReplyItem> {
        let (method, params) = (&request.method, request.params.as_deref());
        let posed = self.pose(method, params, Era::Legacy)?;
        Some(self.ask(posed, QuestionSource::Server(request)))
    }

    fn pose(&self, method: &str, params: Option<&RawValue>, server: Era) -> Option<ClientQuestion> {
        let session = self.session.as_deref()?;
        elicit::pose(session, self.call.abilities, method, params, server)
    }

    /// The server cancelled its question: the client is notified too.
    fn withdrawn(&mut self, note: &Notification) -> Option<ReplyItem> {
        let mut questions = self.questions.iter_mut();
        let question = questions.find(|question| is_about(note, &question.server_id))?;
        question.withdrawn = true;
        let id = question.client_id;
        let reason = RpcError::new(code::INTERNAL, "the server cancelled its question");
        self.session.as_ref()?.settle(id, Err(reason));
        let params = set_member(note.params.as_deref()?, "requestId", &number(id));
        let message = wire::notification(&note.method, Some(&params));
        Some(ReplyItem::Message(message.into()))
    }

    /// Waits for the answer to a question; returns the message to send.
    fn ask(&mut self, posed: ClientQuestion, question: QuestionSource) -> ReplyItem {
        let ClientQuestion {
            id,
            message,
            answer,
        } = posed;
        if let QuestionSource::Server(request) = &question {
            self.questions.push(OpenQuestion {
                server_id: request.id().to_owned(),
                client_id: id,
                withdrawn: false,
            });
        }
        self.wait_for(Box::pin(async move {
            let answer = match tokio::time::timeout(PATIENCE, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(RpcError::new(code::INTERNAL, "the client has disconnected")),
                Err(_) => Err(RpcError::new(code::INTERNAL, "the client did not answer")),
            };
            (question, answer)
        }));
        ReplyItem::Message(message)
    }

    fn wait_for(&mut self, answer: PendingAnswer) {
        self.answers.get_or_insert_default().push(answer);
    }

    fn done(&mut self, outcome: CallOutcome) -> Option<ReplyItem> {
        self.stream = None;
        let peer = outcome.peer.as_ref();
        let modern = peer.is_some_and(|peer| peer.era == Era::Modern);
        if let Ok(result) = &outcome.result
            && modern
        {
            match result_type(result.get()) {
                ResultType::Complete => {}
                ResultType::InputRequired => {
                    return self.next_round(&result.to_raw());
                }
                ResultType::Task | ResultType::Unknown => {
                    let text = "the server sent a result type that the client does not support";
                    return Some(self.fail(text.into()));
                }
            }
        }
        Some(ReplyItem::Last(self.call.reply(outcome)))
    }

    fn next_round(&mut self, result: &RawValue) -> Option<ReplyItem> {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return Some(self.fail(format!(
                "the server asked for input more than {MAX_ROUNDS} times"
            )));
        }
        let mut entries: Vec<(String, Box<RawValue>)> = Vec::new();
        if let Some(requests) = member(result, "inputRequests") {
            each_member(requests, |key, value| {
                entries.push((key.decoded().into_owned(), value.to_owned()));
            });
        }
        let state = member(result, "requestState").map(ToOwned::to_owned);
        // Repeating the same call would only give the same result.
        if entries.is_empty() && state.is_none() {
            let text = "the server requires input without naming any";
            return Some(self.fail(text.into()));
        }
        self.round = Some(InputRound {
            responses: ObjectWriter::new(),
            open: entries.len().max(1),
            state,
            failed: None,
        });
        if entries.is_empty() {
            self.wait_for(Box::pin(async {
                tokio::time::sleep(EMPTY_ROUND).await;
                let nothing = RpcError::new(code::INTERNAL, "nothing was asked");
                (QuestionSource::EmptyRound, Err(nothing))
            }));
        }
        for (key, request) in entries {
            self.ask_for_round(key, &request);
        }
        self.ready.pop_front()
    }

    fn ask_for_round(&mut self, key: String, request: &RawValue) {
        let method = member(request, "method").and_then(text).unwrap_or_default();
        let params = member(request, "params");
        let question = QuestionSource::Round {
            key,
            method: method.clone().into_owned(),
        };
        match self.pose(&method, params, Era::Modern) {
            Some(posed) => {
                let item = self.ask(posed, question);
                self.ready.push_back(item);
            }
            None => {
                let text = format!("this client cannot be asked for {method}");
                let refusal = Err(RpcError::new(code::METHOD_NOT_FOUND, text));
                self.wait_for(Box::pin(async { (question, refusal) }));
            }
        }
    }

    fn client_answered(
        &mut self,
        question: QuestionSource,
        answer: ClientAnswer,
    ) -> Option<ReplyItem> {
        let round = match question {
            QuestionSource::Server(request) => {
                let is_it = |one: &OpenQuestion| one.server_id.get() == request.id().get();
                let at = self.questions.iter().position(is_it);
                match at.map(|at| self.questions.swap_remove(at)) {
                    Some(question) if question.withdrawn => request.forget(),
                    _ => request.answer(answer),
                }
                return None;
            }
            QuestionSource::EmptyRound => self.round.as_mut()?,
            QuestionSource::Round { key, method } => {
                let round = self.round.as_mut()?;
                match answer {
                    Ok(result) => round.responses.json(&key, result.get()),
                    // The only answer that Portway may give for the user.
                    Err(_) if method == "elicitation/create" => {
                        round.responses.json(&key, r#"{"action":"cancel"}"#);
                    }
                    Err(error) => round.failed = Some(error.message),
                }
                round
            }
        };
        round.open -= 1;
        if round.open > 0 {
            return None;
        }
        let round = self.round.take()?;
        if let Some(reason) = round.failed {
            return Some(self.fail(reason));
        }
        self.call_again(round);
        None
    }

    /// Sends the same request with this round's answers.
    fn call_again(&mut self, round: InputRound) {
        let mut request = CallRequest::clone(&self.call.request);
        let empty = wire::object::empty();
        let params = request.params.as_deref().unwrap_or(empty);
        let mut params = if round.responses.is_empty() {
            params.to_owned()
        } else {
            set_member(params, "inputResponses", &round.responses.done())
        };
        if let Some(state) = &round.state {
            params = set_member(&params, "requestState", state);
        }
        request.params = Some(params);
        self.stream = Some(self.call.send(&self.fleet, Arc::new(request)));
    }

    fn fail(&self, reason: String) -> ReplyItem {
        let text = format!("{}: {reason}", self.call.subject());
        let failure = CallFailure::text(&self.call, text, false);
        ReplyItem::Last(self.call.fail(failure))
    }

    /// Cancel-safe; not to be called after [`ReplyItem::Last`].
    pub(crate) async fn next(&mut self) -> ReplyItem {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return item;
            }
            let item = tokio::select! {
                item = received(&mut self.stream) => self.take(item),
                (question, answer) = answered(&mut self.answers) => {
                    self.client_answered(question, answer)
                }
            };
            if let Some(item) = item {
                return item;
            }
        }
    }
}

/// The next answer of the client; none comes without a question.
async fn answered(
    answers: &mut Option<FuturesUnordered<PendingAnswer>>,
) -> (QuestionSource, ClientAnswer) {
    if let Some(answers) = answers
        && let Some(answer) = answers.next().await
    {
        return answer;
    }
    std::future::pending().await
}
