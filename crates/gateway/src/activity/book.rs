//! What is remembered of calls: those that run, the last ones, and how many
//! there were each second. No arguments and no results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::rate::{CallRate, SecondStats};
use super::{CallEnd, StartedCall};

/// Calls remembered after their end.
const RECENT: usize = 500;
/// Calls told to followers in one second: more than a person can follow.
const TOLD_A_SECOND: u32 = 100;
const ERROR_TEXT: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    Ok,
    /// The tool itself said that it failed.
    ToolError,
    /// The call did not come to a result.
    Error,
    /// The client gave it up, or went away.
    Cancelled,
}

/// A call as it is shown.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    pub id: u64,
    pub server: Arc<str>,
    pub tool: Box<str>,
    /// The entry it came through.
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

/// What is going on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityReport {
    /// Newest first.
    pub in_flight: Vec<CallRecord>,
    /// Newest first.
    pub recent: Vec<Arc<CallRecord>>,
    /// Oldest first, without gaps; the last second still runs.
    pub per_second: Vec<SecondStats>,
    /// How often something went by too fast to be written down.
    pub dropped: u64,
}

#[derive(Default)]
pub(super) struct CallHistory {
    running: BTreeMap<u64, RunningCall>,
    recent: VecDeque<Arc<CallRecord>>,
    rate: CallRate,
    dropped: u64,
    told: NewsQuota,
}

struct RunningCall {
    begun: Arc<StartedCall>,
    /// Its end is told if its beginning was.
    told: bool,
}

/// How many were told of in the second that runs.
#[derive(Default)]
struct NewsQuota {
    second: u64,
    count: u32,
}

impl CallHistory {
    pub(super) fn begun(&mut self, begun: Arc<StartedCall>) -> Option<Arc<CallRecord>> {
        let now = seconds(SystemTime::now());
        if self.told.second != now {
            self.told = NewsQuota {
                second: now,
                count: 0,
            };
        }
        let told = self.told.count < TOLD_A_SECOND;
        self.told.count += u32::from(told);
        let news = told.then(|| Arc::new(call(&begun)));
        self.running.insert(begun.id, RunningCall { begun, told });
        news
    }

    pub(super) fn ended(
        &mut self,
        begun: &StartedCall,
        ending: CallEnd,
    ) -> Option<Arc<CallRecord>> {
        let running = self.running.remove(&begun.id);
        let failed = matches!(ending.outcome, OutcomeKind::ToolError | OutcomeKind::Error);
        let now = seconds(SystemTime::now());
        self.rate.count(now, ending.took, failed);
        let mut error = ending.error.map(String::from);
        if let Some(error) = &mut error {
            error.truncate(error.floor_char_boundary(ERROR_TEXT));
        }
        let ended = Arc::new(CallRecord {
            duration_ms: Some(millis(ending.took)),
            outcome: Some(ending.outcome),
            error: error.map(Into::into),
            ..call(begun)
        });
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(ended.clone());
        running.is_some_and(|running| running.told).then_some(ended)
    }

    /// Ends what nobody but this book knows of any more.
    pub(super) fn settle(&mut self, dropped: u64) -> Vec<Arc<CallRecord>> {
        self.dropped = dropped;
        let lost = |running: &RunningCall| Arc::strong_count(&running.begun) == 1;
        let over: Vec<_> = self
            .running
            .values()
            .filter(|running| lost(running))
            .map(|running| running.begun.clone())
            .collect();
        let ending = |begun: &StartedCall| CallEnd {
            outcome: OutcomeKind::Error,
            took: begun.since.elapsed(),
            error: Some("too many calls at once to know how it ended".into()),
        };
        over.into_iter()
            .filter_map(|begun| self.ended(&begun, ending(&begun)))
            .collect()
    }

    pub(super) fn report(&mut self, limit: usize) -> ActivityReport {
        let running = self.running.values().rev();
        ActivityReport {
            in_flight: running
                .take(limit)
                .map(|running| call(&running.begun))
                .collect(),
            recent: self.recent.iter().rev().take(limit).cloned().collect(),
            per_second: self.rate.seconds(seconds(SystemTime::now())),
            dropped: self.dropped,
        }
    }
}

fn call(begun: &StartedCall) -> CallRecord {
    let request = &begun.request;
    let tool = begun.tool.as_deref().or(request.name.as_deref());
    let entry = begun.principal.strip_prefix("entry:");
    CallRecord {
        id: begun.id,
        server: request.server.clone(),
        tool: tool.unwrap_or_default().into(),
        entry: entry.and_then(|id| id.parse().ok()),
        principal: begun.principal.clone(),
        at: since_epoch(begun.at).as_millis() as u64,
        duration_ms: None,
        outcome: None,
        error: None,
    }
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn seconds(time: SystemTime) -> u64 {
    since_epoch(time).as_secs()
}

/// To the microsecond.
fn millis(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}
