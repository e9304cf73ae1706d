//! What is remembered of calls: those that run, the last ones, and how many
//! there were each second. No arguments and no results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::rate::{Rate, Second};
use super::{Begun, Ending};

/// Calls remembered after their end.
const RECENT: usize = 500;
/// Calls told to followers in one second: more than a person can follow.
const TOLD_A_SECOND: u32 = 100;
const ERROR_TEXT: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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
pub struct Call {
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
    pub outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
}

/// A call began, or ended: then it has an outcome.
pub type CallNews = Arc<Call>;

/// What is going on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Newest first.
    pub in_flight: Vec<Call>,
    /// Newest first.
    pub recent: Vec<CallNews>,
    /// Oldest first, without gaps; the last second still runs.
    pub per_second: Vec<Second>,
    /// How often something went by too fast to be written down.
    pub dropped: u64,
}

#[derive(Default)]
pub(super) struct Book {
    running: BTreeMap<u64, Running>,
    recent: VecDeque<CallNews>,
    rate: Rate,
    dropped: u64,
    told: Told,
}

struct Running {
    begun: Arc<Begun>,
    /// Its end is told if its beginning was.
    told: bool,
}

/// How many were told of in the second that runs.
#[derive(Default)]
struct Told {
    second: u64,
    count: u32,
}

impl Book {
    pub(super) fn begun(&mut self, begun: Arc<Begun>) -> Option<CallNews> {
        let now = seconds(SystemTime::now());
        if self.told.second != now {
            self.told = Told {
                second: now,
                count: 0,
            };
        }
        let told = self.told.count < TOLD_A_SECOND;
        self.told.count += u32::from(told);
        let news = told.then(|| Arc::new(call(&begun)));
        self.running.insert(begun.id, Running { begun, told });
        news
    }

    pub(super) fn ended(&mut self, begun: &Begun, ending: Ending) -> Option<CallNews> {
        let running = self.running.remove(&begun.id);
        let failed = matches!(ending.outcome, Outcome::ToolError | Outcome::Error);
        let now = seconds(SystemTime::now());
        self.rate.count(now, ending.took, failed);
        let mut error = ending.error.map(String::from);
        if let Some(error) = &mut error {
            error.truncate(error.floor_char_boundary(ERROR_TEXT));
        }
        let ended = Arc::new(Call {
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
    pub(super) fn settle(&mut self, dropped: u64) -> Vec<CallNews> {
        self.dropped = dropped;
        let lost = |running: &Running| Arc::strong_count(&running.begun) == 1;
        let over: Vec<_> = self
            .running
            .values()
            .filter(|running| lost(running))
            .map(|running| running.begun.clone())
            .collect();
        let ending = |begun: &Begun| Ending {
            outcome: Outcome::Error,
            took: begun.since.elapsed(),
            error: Some("too many calls at once to know how it ended".into()),
        };
        over.into_iter()
            .filter_map(|begun| self.ended(&begun, ending(&begun)))
            .collect()
    }

    pub(super) fn report(&mut self, limit: usize) -> Report {
        let running = self.running.values().rev();
        Report {
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

fn call(begun: &Begun) -> Call {
    let request = &begun.request;
    let tool = begun.tool.as_deref().or(request.name.as_deref());
    let entry = begun.principal.strip_prefix("entry:");
    Call {
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
