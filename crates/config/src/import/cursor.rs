//! Cursor's `mcp.json`: Claude's shape, with VS Code's references.

use super::draft::{ImportDraft, NO_LOGIN};
use super::{FileContext, ImportDirs, vscode};

pub(super) fn server(draft: &mut ImportDraft, around: &ImportDirs<'_>) {
    draft.standard();
    draft.leave(&["envFile"], vscode::ENV_FILE);
    draft.leave(&["auth"], NO_LOGIN);
    draft.warn_of_references(vscode::THEIRS);
    vscode::fill_in(draft, &FileContext::default(), around, "Cursor");
}
