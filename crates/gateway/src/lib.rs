//! The MCP server that clients talk to: a caller and a request in, a reply or a
//! stream of messages out. This crate filters, renames and bridges eras. It
//! knows no header, no status code and no process.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use fleet::Fleet;
use store::Store;
use store::memory::{Account, Budget, default_budget};
use wire::meta::RequestParams;
use wire::object::{find_members, parse_part, unquote};
use wire::{Era, RpcError, code};

mod ability;
pub mod activity;
mod body;
mod call;
mod changes;
mod completion;
pub mod control;
mod elicit;
mod failure;

pub mod format;
mod legacy;
mod lifetime;
mod listening;
mod local;
mod members;
mod modern;
pub mod naming;

mod parked;
mod permission;
mod questions;
pub mod record;
mod renames;
mod reply;
mod request;
mod resolve;
mod resource_updates;
mod scope;
mod seal;
pub mod servers;
mod session;
mod tools;

mod uris;
mod users;
mod view;

pub use ability::{all_capabilities, forwardable_capabilities, no_capabilities};
pub use body::{MessageBody, PreparedResult};
pub use completion::run_to_completion;
pub use lifetime::StreamLifetime;
pub use renames::Renames;
pub use reply::{Reply, ReplyItem, ReplyStream};
pub use request::{Client, ClientRequest, OwnedRequest};
pub use scope::{Caller, EntryScope, Scope};
pub use seal::Seal;
pub use session::{
    ClientAnswer, MessageStream, NoSession, RunningRequest, Session, Sessions, StreamEvent,
    StreamReader,
};
pub use tools::AskError;
pub use users::UserServers;
pub use view::{RouteTarget, ToolList, View, Views};

use activity::Activity;
use call::Call;
use changes::Hub;
use control::Control;
use legacy::LegacyCall;
use listening::SessionFeeds;
use modern::ModernCall;
use parked::{ParkedCall, ParkedCalls};
use reply::ReplyState;
use resolve::resolve;

/// Renames that a subscriber may be behind by.
const RENAMES: usize = 256;

/// The MCP server of all endpoints; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub fleet: Fleet,
    pub views: Arc<Views>,
    pub sessions: Arc<Sessions>,
    pub activity: Activity,
    pub users: UserServers,
    store: Arc<Store>,
    hub: Hub,
    feeds: SessionFeeds,
    renames: broadcast::Sender<Arc<Renames>>,
    parked: ParkedCalls,
    closing: CancellationToken,
    budget: Arc<Budget>,
}

impl Gateway {
    /// Must be called inside the runtime. Streams end when `closing` is
    /// cancelled.
    pub fn new(
        fleet: Fleet,
        store: Arc<Store>,
        users: UserServers,
        control: Option<Arc<Control>>,
        sessions: Sessions,
        seal: Arc<Seal>,
        closing: CancellationToken,
    ) -> Gateway {
        let (renames, _) = broadcast::channel(RENAMES);
        let hub = Hub::new(&fleet, &store, &users, control.clone(), &renames);
        let feeds = SessionFeeds::default();
        elicit::attend(&fleet, &feeds);
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
            parked: ParkedCalls::new(seal),
            closing,
            budget: Budget::new(default_budget()),
        }
    }

    /// Replaces the default memory budget.
    pub fn with_budget(mut self, budget: Arc<Budget>) -> Gateway {
        self.views.set_room(budget.limit() / 4);
        self.sessions.set_room(budget.limit() / 8);
        self.budget = budget;
        self
    }

    /// The caller's share of memory: its requests and answers count against
    /// it.
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

    pub fn view(&self, caller: &Caller) -> Arc<View> {
        self.views.get(&caller.scope, &self.fleet.snapshot())
    }

    /// Handles one request: nearly all are answered, or sent on, without
    /// waiting.
    pub fn request(
        &self,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> ReplyStream {
        self.request_in(self.view(caller), caller, client, incoming)
    }

    /// As [`Gateway::request`], where the caller's view is at hand.
    pub fn request_in(
        &self,
        view: Arc<View>,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> ReplyStream {
        let state = match incoming.method {
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => view
                .list(incoming.method, client.era, incoming.params)
                .map(|list| Reply::prepared(incoming.id, list).into()),
            "tools/call" | "prompts/get" | "resources/read" | "completion/complete" => {
                self.call(view, caller, client, incoming)
            }
            _ => Ok(self.answer_locally(view, caller, client, incoming)),
        };
        let state = state.unwrap_or_else(|error| Reply::error(incoming.id, &error).into());
        let params = incoming.params.map_or(0, |params| params.get().len());
        ReplyStream::new(self.account(caller), params, state)
    }

    /// Sends a call to its server. These are all steps of a call, in their
    /// order: a step that must see or may refuse every call gets a line here.
    fn call(
        &self,
        view: Arc<View>,
        caller: &Caller,
        client: &Client,
        incoming: ClientRequest<'_>,
    ) -> Result<ReplyState, RpcError> {
        view.offers(incoming.method)?;
        let mut call = resolve(&self.store, view, caller, client, incoming)?;
        let responses = incoming.found.input_responses.and_then(parse_part);
        if let Some(parked) = self.parked_call(&call, &incoming.found)? {
            let call = ModernCall::resume(call, self.parked.clone(), parked, responses);
            return Ok(ReplyState::Modern(Box::new(call)));
        }
        call.watch = self.activity.watch(&call);
        let stream = call.send(&self.fleet, call.request.clone());
        Ok(match client.era {
            Era::Legacy => {
                let call = LegacyCall::new(call, self.fleet.clone(), stream);
                ReplyState::Legacy(Box::new(call))
            }
            Era::Modern => {
                let call = ModernCall::new(call, self.parked.clone(), stream, responses);
                ReplyState::Modern(Box::new(call))
            }
        })
    }

    /// The parked call that a modern client continues, if there is one.
    fn parked_call(
        &self,
        call: &Call,
        params: &RequestParams<'_>,
    ) -> Result<Option<ParkedCall>, RpcError> {
        if call.client.era == Era::Legacy {
            return Ok(None);
        }
        let answers = params.input_responses;
        if answers.is_some_and(|all| !all.starts_with('{')) {
            let text = "inputResponses: must be an object";
            return Err(RpcError::new(code::INVALID_PARAMS, text));
        }
        match params.request_state.and_then(parse_part) {
            // The state of a modern server is its own, and passed on to it.
            Some(state) if !self.is_modern(&call.request.server) => self.parked.take(call, state),
            _ => Ok(None),
        }
    }

    fn is_modern(&self, server: &str) -> bool {
        let snapshot = self.fleet.snapshot();
        let server = snapshot.servers.get(server);
        let peer = server.and_then(|server| server.state.peer());
        peer.is_some_and(|peer| peer.era == Era::Modern)
    }
}

fn text_param(params: Option<&RawValue>, name: &str) -> Result<String, RpcError> {
    let [value] = params.map_or([None], |params| find_members(params.get(), [name]));
    text_of(value, name)
}

fn text_of(json: Option<&str>, name: &str) -> Result<String, RpcError> {
    json.and_then(unquote)
        .map(|text| text.into_owned())
        .ok_or_else(|| RpcError::new(code::INVALID_PARAMS, format!("{name}: must be a string")))
}
