//! The calls that run, the last ones that ended, and how many ended in each
//! second. No arguments and no results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::rate::{CallRate, SecondStats};
use super::{CallEnd, StartedCall};
use crate::seal::unix_seconds;
use fleet::history::epoch_millis;

/// Calls remembered after their end.
const RECENT: usize = 500;
/// Calls published in one second: more than a person can follow.
const PUBLISHED_PER_SECOND: u32 = 100;
/// Bytes of an error's text.
const ERROR_TEXT: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    Ok,
    /// The tool returned an error result.
    ToolError,
    /// The call ended without a result.
    Error,
    /// The client cancelled it or disconnected.
    Cancelled,
}

/// A call as the API shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    pub id: u64,
    pub server: Arc<str>,
    pub tool: Arc<str>,
    /// The entry that it came through.
    pub entry: Option<i64>,
    pub principal: Arc<str>,
    /// Milliseconds since the epoch.
    pub at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
}

/// The calls of the last two minutes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityReport {
    /// Newest first.
    pub in_flight: Vec<CallRecord>,
    /// Newest first.
    pub recent: Vec<Arc<CallRecord>>,
    /// Oldest first, without gaps; the last second still runs.
    pub per_second: Vec<SecondStats>,
    /// Events dropped because too many came at once.
    pub dropped: u64,
}

#[derive(Default)]
pub(super) struct CallHistory {
    running: BTreeMap<u64, RunningCall>,
    recent: VecDeque<Arc<CallRecord>>,
    rate: CallRate,
    dropped: u64,
    published: PublishQuota,
}

struct RunningCall {
    started: Arc<StartedCall>,
    /// The end of a call is published if its start was.
    published: bool,
}

/// How many calls were published in the current second.
#[derive(Default)]
struct PublishQuota {
    second: u64,
    count: u32,
}

impl PublishQuota {
    fn take(&mut self, second: u64) -> bool {
        if self.second != second {
            *self = PublishQuota { second, count: 0 };
        }
        let free = self.count < PUBLISHED_PER_SECOND;
        self.count += u32::from(free);
        free
    }
}

impl CallHistory {
    /// The record to publish, if any; so for [`CallHistory::end`].
    pub(super) fn start(&mut self, started: Arc<StartedCall>) -> Option<Arc<CallRecord>> {
        let published = self.published.take(unix_seconds());
        let record = published.then(|| Arc::new(record(&started)));
        let call = RunningCall { started, published };
        self.running.insert(call.started.id, call);
        record
    }

    pub(super) fn end(&mut self, started: &StartedCall, end: CallEnd) -> Option<Arc<CallRecord>> {
        let running = self.running.remove(&started.id);
        let failed = matches!(end.outcome, OutcomeKind::ToolError | OutcomeKind::Error);
        self.rate.count(unix_seconds(), end.took, failed);
        let error = end.error.map(|error| {
            let short = error.floor_char_boundary(ERROR_TEXT);
            error[..short].into()
        });
        let ended = Arc::new(CallRecord {
            // To the microsecond.
            duration_ms: Some(end.took.as_micros() as f64 / 1000.0),
            outcome: Some(end.outcome),
            error,
            ..record(started)
        });
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(ended.clone());
        running.filter(|call| call.published).map(|_| ended)
    }

    /// Ends the calls whose end was dropped: only this history still holds
    /// them.
    pub(super) fn settle(&mut self, dropped: u64) -> Vec<Arc<CallRecord>> {
        self.dropped = dropped;
        let running = self.running.values().map(|running| &running.started);
        let lost = running.filter(|started| Arc::strong_count(started) == 1);
        let lost: Vec<_> = lost.cloned().collect();
        let end = |started: &StartedCall| CallEnd {
            outcome: OutcomeKind::Error,
            took: started.since.elapsed(),
            error: Some("outcome unknown: too many calls at once to record it".into()),
        };
        lost.into_iter()
            .filter_map(|started| self.end(&started, end(&started)))
            .collect()
    }

    pub(super) fn report(&mut self, limit: usize) -> ActivityReport {
        let running = self.running.values().rev();
        ActivityReport {
            in_flight: running
                .take(limit)
                .map(|running| record(&running.started))
                .collect(),
            recent: self.recent.iter().rev().take(limit).cloned().collect(),
            per_second: self.rate.seconds(unix_seconds()),
            dropped: self.dropped,
        }
    }
}

fn record(started: &StartedCall) -> CallRecord {
    let request = &started.request;
    let principal = &request.slot.principal;
    let tool = started.tool.as_ref().or(request.name.as_ref());
    let entry = principal.strip_prefix("entry:");
    CallRecord {
        id: started.id,
        server: request.server.clone(),
        tool: tool.cloned().unwrap_or_default(),
        entry: entry.and_then(|id| id.parse().ok()),
        principal: principal.clone(),
        at: epoch_millis(started.at),
        duration_ms: None,
        outcome: None,
        error: None,
    }
}
