//! Claude Desktop's `claude_desktop_config.json` and Claude Code's
//! `~/.claude.json` and `.mcp.json`.

use super::draft::{ImportDraft, NO_LOGIN};

/// Claude Desktop starts commands and expands nothing.
pub(super) fn desktop(draft: &mut ImportDraft) {
    draft.standard();
    draft.warn_of_references(&[]);
}

/// Claude Code's `${VAR}` and `${VAR:-default}` are the same in Portway.
pub(super) fn code(draft: &mut ImportDraft) {
    draft.standard();
    draft.leave(
        &["headersHelper"],
        "a program that makes headers is not run here; set `headers` yourself",
    );
    draft.leave(&["oauth"], NO_LOGIN);
    draft.leave(&["alwaysLoad"], "every server is loaded here");
    if draft.has("enabled") || draft.has("disabled") {
        draft.note("enabled, disabled: Claude Code pays no attention to them, Portway does");
    }
    if draft.has("url") && !draft.has("type") && !draft.has("transport") {
        draft.note("type: is missing, so Claude Code skips this server; taken as http");
    }
}
