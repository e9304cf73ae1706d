//! The end of a tool's call in each format.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Format;
use super::content::{ContentPiece, ResultContents, read};
use crate::failure::failed_tool;
use wire::Era;

/// The end of a tool's call.
#[derive(Debug)]
pub enum ToolOutcome {
    /// The tool's own result, as MCP has it.
    Result(Box<RawValue>),
    /// The call ended without a result.
    Failure(String),
    /// The call took longer than it may.
    Timeout(String),
}

impl ToolOutcome {
    fn contents(&self) -> ResultContents {
        match self {
            ToolOutcome::Result(result) => read(result),
            ToolOutcome::Failure(text) | ToolOutcome::Timeout(text) => ResultContents {
                pieces: vec![ContentPiece::Text(text.clone())],
                failed: true,
            },
        }
    }
}

/// The text of a failure without one: APIs refuse an empty failure, and a model
/// learns nothing from it.
const SILENT: &str = "The tool failed without saying why.";

/// The answer for the vendor's API. `id` is the model's name for the call.
pub fn answer(format: Format, outcome: &ToolOutcome, id: Option<&str>) -> String {
    let value = match format {
        Format::Mcp => {
            return match outcome {
                ToolOutcome::Result(result) => result.get().to_owned(),
                ToolOutcome::Failure(text) | ToolOutcome::Timeout(text) => {
                    failed_tool(text, Era::Modern).get().to_owned()
                }
            };
        }
        Format::OpenAi => openai(outcome.contents(), id),
        Format::Anthropic => anthropic(outcome.contents(), id),
        Format::Copilot => {
            let late = matches!(outcome, ToolOutcome::Timeout(_));
            copilot(outcome.contents(), late)
        }
    };
    value.to_string()
}

/// Messages of the role `tool` contain only text, and cannot mark a failure.
fn openai(contents: ResultContents, id: Option<&str>) -> Value {
    let texts = contents.pieces.into_iter().map(ContentPiece::in_words);
    let mark = if contents.failed { "Error: " } else { "" };
    let content = format!("{mark}{}", joined(texts, contents.failed));
    let mut message = Map::new();
    message.insert("role".into(), "tool".into());
    if let Some(id) = id {
        message.insert("tool_call_id".into(), id.into());
    }
    message.insert("content".into(), content.into());
    message.into()
}

/// Pictures of four kinds and PDFs have blocks of their own; blank texts, and
/// failures without a text, are refused.
fn anthropic(contents: ResultContents, id: Option<&str>) -> Value {
    let mut blocks: Vec<Value> = contents.pieces.into_iter().filter_map(block).collect();
    if blocks.is_empty() && contents.failed {
        blocks.push(json!({"type": "text", "text": SILENT}));
    }
    let mut result = Map::new();
    result.insert("type".into(), "tool_result".into());
    if let Some(id) = id {
        result.insert("tool_use_id".into(), id.into());
    }
    result.insert("content".into(), blocks.into());
    result.insert("is_error".into(), contents.failed.into());
    result.into()
}

fn block(piece: ContentPiece) -> Option<Value> {
    let source = |kind: &str, mime: String, data: String| {
        let source = json!({"type": "base64", "media_type": mime, "data": data});
        Some(json!({"type": kind, "source": source}))
    };
    match piece {
        ContentPiece::Image { mime, data } | ContentPiece::Blob { mime, data, .. }
            if is_picture(&mime) =>
        {
            source("image", mime, data)
        }
        ContentPiece::Blob { mime, data, .. } if mime == "application/pdf" => {
            source("document", mime, data)
        }
        other => {
            let text = other.in_words();
            (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
        }
    }
}

fn is_picture(mime: &str) -> bool {
    matches!(
        mime,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    )
}

fn copilot(contents: ResultContents, late: bool) -> Value {
    let failed = contents.failed;
    let (mut texts, mut binaries) = (Vec::new(), Vec::new());
    let binary = |kind: &str, mime: String, data: String, about: Option<String>| {
        let mut binary = json!({"type": kind, "data": data, "mimeType": mime});
        if let Some(about) = about {
            binary["description"] = about.into();
        }
        binary
    };
    for piece in contents.pieces {
        // Copilot passes only pictures to a model, and only to one that
        // supports them: a text describes the other content.
        texts.extend(piece.label());
        match piece {
            ContentPiece::Image { mime, data } => binaries.push(binary("image", mime, data, None)),
            ContentPiece::Audio { mime, data } => {
                binaries.push(binary("resource", mime, data, Some("audio".into())));
            }
            ContentPiece::Blob { uri, mime, data } => {
                let is_image = mime.starts_with("image/");
                let kind = if is_image { "image" } else { "resource" };
                binaries.push(binary(kind, mime, data, Some(uri)));
            }
            other => texts.push(other.in_words()),
        }
    }
    let text = joined(texts.into_iter(), failed);
    let kind = match (late, failed) {
        (true, _) => "timeout",
        (false, true) => "failure",
        (false, false) => "success",
    };
    let mut result = json!({"textResultForLlm": text, "resultType": kind});
    if late || failed {
        result["error"] = text.into();
    }
    if !binaries.is_empty() {
        result["binaryResultsForLlm"] = binaries.into();
    }
    result
}

fn joined(texts: impl Iterator<Item = String>, failed: bool) -> String {
    let texts: Vec<String> = texts.collect();
    let text = texts.join("\n");
    if failed && text.trim().is_empty() {
        return SILENT.to_owned();
    }
    text
}
