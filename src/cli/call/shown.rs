//! A result for a person: its text, and a description of its other content.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::failure::{CliResult, Failure};
use crate::cli::servers::{items, text};
use crate::cli::terminal::{Terminal, in_one_line, note, safe};
use wire::object;

/// The maximum number of file names tried for one block.
const NAMES: u32 = 10_000;

pub(super) fn is_error(result: &RawValue) -> bool {
    object::member(result, "isError").is_some_and(|raw| raw.get() == "true")
}

pub(super) fn print(result: &RawValue, dir: Option<&Path>, out: &mut Terminal) -> CliResult<()> {
    let failed = is_error(result);
    let result: Value = serde_json::from_str(result.get())
        .map_err(|error| Failure::other(format!("the result cannot be read: {error}")))?;
    let mut has_text = false;
    for (at, block) in items(&result["content"]).iter().enumerate() {
        if block["type"] == "text" {
            has_text = true;
            say(text(block, "text"), failed, out);
            continue;
        }
        let mut line = described(block);
        if let Some(path) = write(block, at, dir)? {
            line += &format!(" -> {}", path.display());
        }
        say(&in_one_line(&line), failed, out);
    }
    let structured = &result["structuredContent"];
    if !has_text && !structured.is_null() {
        say(&format!("{structured:#}"), failed, out);
    }
    if failed && !has_text && structured.is_null() {
        note("the tool reports an error, and does not say which");
    }
    Ok(())
}

/// The text of a failed call goes to stderr, because it is not output.
fn say(text: &str, failed: bool, out: &mut Terminal) {
    match (failed, out.is_terminal()) {
        (true, _) => note(text),
        (false, true) => out.line(&safe(text)),
        // A file or another program gets the server's text unchanged.
        (false, false) => out.line(text),
    }
}

/// Writes the files without printing their paths.
pub(super) fn save(result: &RawValue, dir: Option<&Path>) -> CliResult<()> {
    if dir.is_none() {
        return Ok(());
    }
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    for (at, block) in items(&result["content"]).iter().enumerate() {
        write(block, at, dir)?;
    }
    Ok(())
}

fn described(block: &Value) -> String {
    let kind = block["type"].as_str().unwrap_or("unknown content");
    let (holder, name) = match kind {
        "resource" => (&block["resource"], text(&block["resource"], "uri")),
        "resource_link" => (block, text(block, "uri")),
        _ => (block, ""),
    };
    let size = bytes(block).map(|bytes| bytes.len() as u64);
    let size = size.or_else(|| holder["size"].as_u64());
    let mut line = kind.replace('_', " ");
    for word in [name, text(holder, "mimeType")] {
        if !word.is_empty() {
            line += &format!(" {word}");
        }
    }
    if let Some(size) = size {
        line += &format!(", {size} bytes");
    }
    format!("[{line}]")
}

/// The decoded data of a block that is not a text block.
fn bytes(block: &Value) -> Option<Vec<u8>> {
    let resource = &block["resource"];
    let encoded = match text(block, "type") {
        "image" | "audio" => block["data"].as_str()?,
        "resource" => match resource["text"].as_str() {
            Some(text) => return Some(text.as_bytes().to_vec()),
            None => resource["blob"].as_str()?,
        },
        _ => return None,
    };
    STANDARD.decode(encoded).ok()
}

/// Names the file by its type and position: a name given by the server could be
/// the path of any file.
fn write(block: &Value, at: usize, dir: Option<&Path>) -> CliResult<Option<PathBuf>> {
    let (Some(dir), Some(bytes)) = (dir, bytes(block)) else {
        return Ok(None);
    };
    let told = |error: std::io::Error| Failure::of_path(dir, error);
    std::fs::create_dir_all(dir).map_err(told)?;
    let (kind, holder) = match text(block, "type") {
        "image" => ("image", block),
        "audio" => ("audio", block),
        _ => ("resource", &block["resource"]),
    };
    let ending = ending(text(holder, "mimeType"));
    for number in at as u32 + 1..NAMES {
        let path = dir.join(format!("{kind}-{number}.{ending}"));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => return file.write_all(&bytes).map(|()| Some(path)).map_err(told),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(told(error)),
        }
    }
    Err(Failure::of_path(dir, "is full of files"))
}

fn ending(mime: &str) -> &'static str {
    match mime.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/html" => "html",
        "text/markdown" => "md",
        "text/csv" => "csv",
        mime if mime.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn k7_other_content_is_described() {
        for (block, line) in [
            (
                json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
                "[image image/png, 3 bytes]",
            ),
            (
                json!({"type": "resource", "resource": {"uri": "a://b", "text": "four"}}),
                "[resource a://b, 4 bytes]",
            ),
            (
                json!({"type": "resource_link", "uri": "a://b", "mimeType": "text/plain", "size": 9}),
                "[resource link a://b text/plain, 9 bytes]",
            ),
            (json!({"type": "hologram"}), "[hologram]"),
        ] {
            assert_eq!(described(&block), line);
        }
    }

    #[test]
    fn k7_files_overwrite_nothing_and_stay_where_they_belong() {
        let dir = tempfile::tempdir().unwrap();
        let block = json!({"type": "resource", "resource":
            {"uri": "file:///../../etc/passwd", "mimeType": "../x", "blob": "AAAA"}});
        let first = write(&block, 0, Some(dir.path())).unwrap().unwrap();
        let second = write(&block, 0, Some(dir.path())).unwrap().unwrap();
        assert_eq!(first, dir.path().join("resource-1.bin"));
        assert_eq!(second, dir.path().join("resource-2.bin"));
        assert!(write(&block, 0, None).unwrap().is_none());
    }
}
