//! The MCP server that clients talk to: a caller and a request, to a reply or a
//! stream of messages. This room filters, renames and bridges
//! eras. It knows no header, no status code and no process.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use fleet::Fleet;
use store::Store;
use store::memory::{Account, Budget, default_budget};
use wire::meta::LogLevel;
use wire::object::{self, member};
use wire::{Era, RpcError, code};

mod ability;
pub mod activity;
mod arrival;
mod ask;
mod call;
mod changes;
pub mod control;
mod elicit;
mod finish;
pub mod format;
mod hub;
mod legacy;
mod listening;
mod members;
mod modern;
pub mod naming;
mod outside;
mod parked;
mod questions;
pub mod record;
mod renames;
mod replies;
mod reply;
mod request;
mod resolve;
mod right;
mod said;
mod scope;
mod seal;
pub mod servers;
mod session;
mod state;
mod text;
mod tools;
mod trouble;
mod until;
mod updated;
mod uris;
mod users;
mod view;

pub use ability::{everything, kept, nothing};
pub use ask::AskError;
pub use finish::to_the_end;
pub use renames::Renames;
pub use replies::ReplyStream;
pub use reply::Reply;
pub use request::OwnedRequest;
pub use scope::{Caller, EntryScope, Scope};
pub use seal::Seal;
pub use session::{
    ClientAnswer, MessageStream, NoSession, RunningRequest, Session, Sessions, StreamEvent,
    StreamReader,
};
pub use text::{MessageBody, PreparedResult};
pub use tools::Called;
pub use until::StreamLifetime;
pub use users::UserServers;
pub use view::{Reader, RouteTarget, ToolList, View, Views};

use activity::Activity;
use call::Call;
use control::Control;
use hub::Hub;
use legacy::LegacyCall;
use listening::{ListenStream, ResourceFollower, SessionFeeds};
use modern::ModernCall;
use parked::{ParkedCall, ParkedCalls};
use replies::ReplyState;
use resolve::{CallParams, resolve};
use state::{Kept, RequestState};

/// Renames that a subscriber may be behind by.
const RENAMES: usize = 256;

/// The client of one request: modern ones say all this in the request, legacy
/// ones once, when they open their session.
#[derive(Clone)]
pub struct Client {
    pub era: Era,
    pub version: &'static str,
    pub capabilities: Arc<RawValue>,
    pub log_level: Option<LogLevel>,
    /// Legacy clients only.
    pub session: Option<Arc<Session>>,
}

/// One request. `params` are as the client sent them.
#[derive(Clone, Copy)]
pub struct ClientRequest<'a> {
    pub id: &'a RawValue,
    pub method: &'a str,
    pub params: Option<&'a RawValue>,
}

/// One thing on the way to a client.
#[derive(Debug)]
pub enum ReplyItem {
    /// A notification or, to a legacy client, a request: a whole message.
    Message(Bytes),
    /// The answer; nothing follows.
    Last(Reply),
}

/// What a gateway is made of; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub fleet: Fleet,
    pub views: Arc<Views>,
    pub sessions: Arc<Sessions>,
    pub activity: Activity,
    pub users: UserServers,
    store: Arc<dyn Store>,
    hub: Hub,
    feeds: SessionFeeds,
    renames: broadcast::Sender<Arc<Renames>>,
    parked: ParkedCalls,
    states: RequestState,
    closing: CancellationToken,
    budget: Arc<Budget>,
}

impl Gateway {
    /// Must be called inside the runtime. Streams end when `closing` does.
    pub fn new(
        fleet: Fleet,
        store: Arc<dyn Store>,
        users: UserServers,
        control: Option<Arc<Control>>,
        sessions: Sessions,
        seal: Arc<Seal>,
        closing: CancellationToken,
    ) -> Gateway {
        let (renames, _) = broadcast::channel(RENAMES);
        let hub = Hub::new(&fleet, &store, &users, control.clone(), &renames);
        let feeds = SessionFeeds::default();
        outside::attend(&fleet, &feeds);
        Gateway {
            hub,
            activity: Activity::new(fleet.clone()),
            fleet,
            store,
            views: Arc::new(Views::new(users.clone(), seal.clone(), control)),
            sessions: Arc::new(sessions),
            users,
            feeds,
            renames,
            parked: ParkedCalls::default(),
            states: RequestState(seal),
            closing,
            budget: Budget::new(default_budget()),
        }
    }

    /// With another budget than the default one.
    pub fn with_budget(mut self, budget: Arc<Budget>) -> Gateway {
        self.views.set_room(budget.limit() / 4);
        self.sessions.set_room(budget.limit() / 8);
        self.budget = budget;
        self
    }

    /// What a caller's requests and answers count against.
    pub fn account<'a>(&'a self, caller: &'a Caller) -> &'a Arc<Account> {
        match caller.scope.grant() {
            Some(grant) => grant.account(&self.budget),
            None => self.budget.admin(),
        }
    }

    /// Names that change because of other servers, from now on.
    pub fn renames(&self) -> broadcast::Receiver<Arc<Renames>> {
        self.renames.subscribe()
    }

    /// What this caller sees now.
    pub fn view(&self, caller: &Caller) -> Arc<View> {
        self.views.get(&caller.scope, &self.fleet.snapshot())
    }

    /// Takes one request: nearly all are answered, or sent on, without waiting.
    pub fn request(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> ReplyStream {
        let begun = match incoming.method {
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                self.list(caller, client, incoming)
            }
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete" => {
                self.call(caller, client, incoming)
            }
            _ => Ok(self.open(caller, client, incoming)),
        };
        let state = begun.unwrap_or_else(|error| Reply::error(incoming.id, &error).into());
        let params = incoming.params.map_or(0, |params| params.get().len());
        ReplyStream::new(self.account(caller), params, state)
    }

    fn list(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<ReplyState, RpcError> {
        let reader = Reader {
            era: client.era,
            version: client.version,
        };
        let view = self.view(caller);
        let list = view.list(incoming.method, reader, incoming.params)?;
        Ok(Reply::prepared(incoming.id, list).into())
    }

    /// Sends a call to its server. These are all the steps of every call, in
    /// their order: what must see or may refuse a call gets a line here.
    fn call(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<ReplyState, RpcError> {
        let view = self.view(caller);
        view.offers(incoming.method)?;
        let params = CallParams::read(incoming.params);
        let mut call = resolve(&self.store, caller, client, incoming, params, view)?;
        let mut returned = self.returned(&call, params)?;
        call.watch = match &mut returned {
            // The same call goes on.
            Some(parked) => std::mem::take(&mut parked.watch),
            None => self.activity.watch(&call),
        };
        Ok(match (client.era, returned) {
            (Era::Legacy, _) => {
                ReplyState::Legacy(Box::new(LegacyCall::new(call, self.fleet.clone())))
            }
            (Era::Modern, Some(parked)) => {
                ReplyState::Modern(Box::new(self.modern(call).resume(parked, params.responses)))
            }
            (Era::Modern, None) => {
                let stream = call.send(&self.fleet, call.request.clone());
                ReplyState::Modern(Box::new(self.modern(call).start(stream, params.responses)))
            }
        })
    }

    fn modern(&self, call: Call) -> ModernCall {
        ModernCall::new(call, self.parked.clone(), self.states.clone())
    }

    fn open(&self, caller: &Caller, client: &Client, incoming: ClientRequest<'_>) -> ReplyState {
        let (gateway, caller, client) = (self.clone(), caller.clone(), client.clone());
        let request = OwnedRequest::of(incoming);
        ReplyState::Opening(Box::pin(async move {
            let incoming = request.incoming();
            let answer = gateway.answer(&caller, &client, incoming).await;
            answer.unwrap_or_else(|error| Reply::error(incoming.id, &error).into())
        }))
    }

    /// Answers a request that belongs to no server, and may have to wait.
    async fn answer(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<ReplyState, RpcError> {
        let view = self.view(caller);
        let done = |result: &RawValue| ReplyState::from(Reply::result(incoming.id, result));
        match (client.era, incoming.method) {
            (Era::Modern, "server/discover") => {
                let view = self.arrived(caller, view).await;
                view.offers(incoming.method)?;
                Ok(done(&view.discover()))
            }
            (Era::Modern, "subscriptions/listen") => {
                let until = self.until(caller);
                let (id, params) = (incoming.id, incoming.params);
                let who = ResourceFollower {
                    scope: &caller.scope,
                    slot: &resolve::slot_of(caller, client),
                };
                let listening = ListenStream::open(&self.hub, who, view, id, params, until).await?;
                Ok(ReplyState::ListenStream(Box::new(listening)))
            }
            (Era::Legacy, "initialize") => {
                let view = self.arrived(caller, view).await;
                view.offers(incoming.method)?;
                Ok(done(&view.initialize(client.version)))
            }
            (Era::Legacy, "ping") => Ok(done(object::empty())),
            (Era::Legacy, "logging/setLevel") => {
                said::set_level(client, incoming.params)?;
                Ok(done(object::empty()))
            }
            (Era::Legacy, "resources/subscribe" | "resources/unsubscribe") => {
                self.subscription(caller, client, incoming, &view).await?;
                Ok(done(object::empty()))
            }
            (_, method) => {
                let text = format!("method {method:?} is not known here");
                Err(RpcError::new(code::METHOD_NOT_FOUND, text))
            }
        }
    }

    /// The call that a client comes back to, if it does. A state that is not
    /// ours belongs to a modern server.
    fn returned(
        &self,
        call: &Call,
        params: CallParams<'_>,
    ) -> Result<Option<ParkedCall>, RpcError> {
        if call.client.era == Era::Legacy {
            return Ok(None);
        }
        if params.responses.is_some_and(|all| !object::is_object(all)) {
            let text = "inputResponses: must be an object";
            return Err(RpcError::new(code::INVALID_PARAMS, text));
        }
        let Some(state) = params.state else {
            return Ok(None);
        };
        let snapshot = self.fleet.snapshot();
        let server = snapshot.servers.get(&call.request.server);
        let peer = server
            .and_then(|view| view.state.connection())
            .map(|one| one.peer_arc());
        if peer.is_some_and(|peer| peer.era == Era::Modern) {
            return Ok(None);
        }
        let expired = || {
            let text = "requestState: is not valid any more; make the call again without it";
            RpcError::new(code::INVALID_PARAMS, text)
        };
        let state = object::text(state).ok_or_else(expired)?;
        let kept = self.states.open(&call.principal, &call.digest(), &state);
        match kept.ok_or_else(expired)? {
            Kept::Nothing => Ok(None),
            Kept::Parked(number) => {
                let parked = self.parked.take(&call.principal, number);
                parked.map(Some).ok_or_else(expired)
            }
        }
    }
}

pub(crate) fn text_param(params: Option<&RawValue>, name: &str) -> Result<String, RpcError> {
    text_of(params.and_then(|params| member(params, name)), name)
}

fn text_of(value: Option<&RawValue>, name: &str) -> Result<String, RpcError> {
    value
        .and_then(object::text)
        .map(|text| text.into_owned())
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("{name}: must be a string")))
}
