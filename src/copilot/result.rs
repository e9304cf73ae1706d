//! Results as the model reads them.

use std::time::Duration;

use github_copilot_sdk::ToolResultExpanded;

use super::ToolSourceError;

/// The text for the model when there is no result.
pub(super) fn failed(name: &str, error: &ToolSourceError) -> ToolResultExpanded {
    match error {
        ToolSourceError::Silent(limit) => timed_out(name, *limit),
        other => said("failure", format!("{name} could not be called: {other}")),
    }
}

pub(super) fn timed_out(name: &str, limit: Duration) -> ToolResultExpanded {
    let limit = limit.as_secs_f64();
    said(
        "timeout",
        format!("{name} timed out: no answer within {limit} s"),
    )
}

fn said(kind: &str, text: String) -> ToolResultExpanded {
    ToolResultExpanded::new(text.clone(), kind).with_error(text)
}
