//! Keeps the tools of a live session up to date with a source.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use github_copilot_sdk::Tool;
use github_copilot_sdk::session::Session;
use github_copilot_sdk::subscription::{EventSubscription, RecvErrorKind};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::{ToolOptions, ToolSource, tool};

/// Changes are applied together: when nothing has changed for `SETTLE`, or
/// after `LONGEST_SETTLE` at the latest.
const SETTLE: Duration = Duration::from_millis(200);
const LONGEST_SETTLE: Duration = Duration::from_secs(2);

/// Keeps a session up to date; ends with the session, or when dropped.
#[must_use = "dropping it ends the following"]
pub struct FollowHandle {
    offered: watch::Receiver<Arc<[String]>>,
    _task: AbortOnDropHandle<()>,
}

impl FollowHandle {
    /// The names of the source's tools that the session has; empty until the
    /// first update.
    pub fn offered(&self) -> watch::Receiver<Arc<[String]>> {
        self.offered.clone()
    }
}

/// Sets the session's tools again whenever the source's change: `own`, and all
/// of the source's. If both have a tool of the same name, the caller's own
/// stays and the log reports it. Must be called inside the runtime, and before
/// the session is sent its next message.
///
/// The model's next request has the new tools, also within a turn. A removed
/// tool stays until the turn is over: the model may be about to call it, and
/// then gets the error that it is gone.
pub fn follow<S>(
    source: &S,
    session: &Arc<Session>,
    own: Vec<Tool>,
    options: ToolOptions,
) -> FollowHandle
where
    S: ToolSource + Clone,
{
    let (sender, offered) = watch::channel(Arc::default());
    let follower = ToolFollower {
        source: source.clone(),
        session: Arc::downgrade(session),
        own,
        options,
        tag: None,
        tools: Vec::new(),
        gone: Vec::new(),
        offered: sender,
    };
    let ended = session.cancellation_token();
    let events = session.subscribe();
    let work = async move {
        ended.run_until_cancelled(follower.run(events)).await;
    };
    FollowHandle {
        offered,
        _task: AbortOnDropHandle::new(tokio::spawn(work)),
    }
}

struct ToolFollower<S> {
    source: S,
    /// Weak: the owner of the session decides how long it lives.
    session: Weak<Session>,
    own: Vec<Tool>,
    options: ToolOptions,
    /// The tag of the session's catalog.
    tag: Option<String>,
    tools: Vec<Tool>,
    /// Tools that the source no longer has and the session still has.
    gone: Vec<Tool>,
    offered: watch::Sender<Arc<[String]>>,
}

impl<S: ToolSource + Clone> ToolFollower<S> {
    async fn run(mut self, events: EventSubscription) {
        let news = Notify::new();
        news.notify_one();
        let source = self.source.clone();
        let (sender, busy) = watch::channel(false);
        tokio::select! {
            () = source.watch(&news) => {}
            () = turns(events, sender) => {}
            () = self.keep(&news, busy) => {}
        }
    }

    async fn keep(&mut self, news: &Notify, busy: watch::Receiver<bool>) {
        let mut turn = busy.clone();
        loop {
            tokio::select! {
                () = news.notified() => {
                    settle(news).await;
                    let busy = *busy.borrow();
                    self.look(busy).await;
                }
                () = over(&mut turn), if !self.gone.is_empty() => {
                    self.gone.clear();
                    self.set().await;
                }
            }
        }
    }

    async fn look(&mut self, busy: bool) {
        let look = self
            .source
            .catalog(self.options.filter.as_deref(), self.tag.as_deref());
        let catalog = match tokio::time::timeout(self.options.timeout, look).await {
            Ok(Ok(Some(catalog))) => catalog,
            Ok(Ok(None)) => return,
            // The source may come back: no tool is removed.
            Ok(Err(error)) => return tracing::debug!("the tools cannot be looked up: {error}"),
            Err(_) => return tracing::debug!("the tools cannot be looked up in time"),
        };
        let tag = catalog.tag.clone();
        let mut tools = tool::all(&self.source, catalog, &self.options);
        let own: HashSet<&str> = self.own.iter().map(|tool| tool.name.as_str()).collect();
        tools.retain(|tool| {
            let free = !own.contains(tool.name.as_str());
            if !free {
                tracing::warn!("{:?} is left out: there is an own one", tool.name);
            }
            free
        });
        let before = std::mem::replace(&mut self.tools, tools);
        let now: HashSet<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        self.gone.extend(before);
        self.gone
            .retain(|tool| busy && !now.contains(tool.name.as_str()));
        self.tag = self.set().await.then_some(tag);
    }

    /// Returns whether the session accepted the tools.
    async fn set(&self) -> bool {
        let Some(session) = self.session.upgrade() else {
            return false;
        };
        let all = self.own.iter().chain(&self.tools).chain(&self.gone);
        let taken = session.set_tools(all.cloned()).await;
        if let Err(error) = &taken {
            tracing::warn!("the session does not take its new tools: {error}");
        } else {
            let names = self.tools.iter().map(|tool| tool.name.clone()).collect();
            self.offered.send_replace(names);
        }
        taken.is_ok()
    }
}

/// Waits until nothing changes any more.
async fn settle(news: &Notify) {
    let end = Instant::now() + LONGEST_SETTLE;
    while Instant::now() < end {
        let quiet = end.min(Instant::now() + SETTLE);
        if timeout_at(quiet, news.notified()).await.is_err() {
            return;
        }
    }
}

/// Waits until the agent's turn is over.
async fn over(busy: &mut watch::Receiver<bool>) {
    let _ = busy.wait_for(|busy| !busy).await;
}

/// Reports whether the agent is at work, until the session ends.
async fn turns(mut events: EventSubscription, busy: watch::Sender<bool>) {
    loop {
        let at_work = match events.recv().await {
            // Events of a sub-agent are within a turn of the agent.
            Ok(event) if event.agent_id.is_some() => continue,
            Ok(event) => match event.event_type.as_str() {
                "user.message" | "assistant.turn_start" => true,
                "session.idle" => false,
                _ => continue,
            },
            Err(error) if matches!(error.kind(), RecvErrorKind::Lagged(_)) => continue,
            Err(_) => return,
        };
        busy.send_if_modified(|busy| std::mem::replace(busy, at_work) != at_work);
    }
}
