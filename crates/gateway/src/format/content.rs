//! A tool's result piece by piece. A piece that a format cannot carry becomes a
//! text that describes it.

use serde::Deserialize;
use serde_json::value::RawValue;

use wire::object::{each_element, is_null, pick};

/// A result as all formats read it.
pub(super) struct ResultContents {
    pub pieces: Vec<ContentPiece>,
    pub failed: bool,
}

pub(super) enum ContentPiece {
    Text(String),
    Image {
        mime: String,
        data: String,
    },
    Audio {
        mime: String,
        data: String,
    },
    /// Bytes of a resource.
    Blob {
        uri: String,
        mime: String,
        data: String,
    },
    /// A description: of a link, of a resource with its text, of unknown content.
    Words(String),
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    data: Option<String>,
    #[serde(rename = "mimeType")]
    mime: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    description: Option<String>,
    size: Option<f64>,
    resource: Option<EmbeddedResource>,
}

#[derive(Deserialize)]
struct EmbeddedResource {
    uri: String,
    #[serde(rename = "mimeType")]
    mime: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

pub(super) fn read(result: &RawValue) -> ResultContents {
    let [content, structured, failed] = pick(result, ["content", "structuredContent", "isError"]);
    let mut pieces = Vec::new();
    if let Some(content) = content {
        each_element(content, |block| pieces.push(piece(block)));
    }
    let texts =
        |piece: &ContentPiece| matches!(piece, ContentPiece::Text(text) if !text.trim().is_empty());
    // A server that sends both has the same content in both.
    if let Some(structured) = structured.filter(|value| !is_null(value))
        && !pieces.iter().any(texts)
    {
        pieces.push(ContentPiece::Text(structured.get().to_owned()));
    }
    ResultContents {
        pieces,
        failed: failed.is_some_and(|failed| failed.get() == "true"),
    }
}

fn piece(raw: &RawValue) -> ContentPiece {
    let unknown = |kind: &str| {
        let size = raw.get().len();
        ContentPiece::Words(format!("[{kind}: {size} bytes of JSON]"))
    };
    let Ok(block) = serde_json::from_str::<ContentBlock>(raw.get()) else {
        return unknown("content that cannot be read");
    };
    let mime = block.mime.clone().unwrap_or_else(nothing_known);
    match (block.kind.as_str(), block.text, block.data, block.resource) {
        ("text", Some(text), _, _) => ContentPiece::Text(text),
        ("image", _, Some(data), _) => ContentPiece::Image { mime, data },
        ("audio", _, Some(data), _) => ContentPiece::Audio { mime, data },
        ("resource", _, _, Some(resource)) => embedded(resource),
        ("resource_link", None, None, None) if let Some(uri) = block.uri => {
            let name = block
                .name
                .map_or(String::new(), |name| format!(" {name:?}"));
            let size = block
                .size
                .map_or(String::new(), |size| format!(", {size} bytes"));
            let mime = block.mime.map_or(String::new(), |mime| format!(", {mime}"));
            let about = block
                .description
                .map_or(String::new(), |about| format!(" {about}"));
            ContentPiece::Words(format!(
                "[link to resource{name}: {uri}{mime}{size}]{about}"
            ))
        }
        (kind, ..) => unknown(&format!("content of type {kind:?}")),
    }
}

fn embedded(resource: EmbeddedResource) -> ContentPiece {
    let uri = resource.uri;
    match (resource.text, resource.blob) {
        (Some(text), _) => {
            let mime = resource
                .mime
                .map_or(String::new(), |mime| format!(", {mime}"));
            ContentPiece::Words(format!("[resource {uri}{mime}]\n{text}"))
        }
        (None, Some(data)) => ContentPiece::Blob {
            uri,
            mime: resource.mime.unwrap_or_else(nothing_known),
            data,
        },
        (None, None) => ContentPiece::Words(format!("[resource {uri}, without content]")),
    }
}

fn nothing_known() -> String {
    "application/octet-stream".to_owned()
}

impl ContentPiece {
    /// The piece as text; a description if a format cannot carry it.
    pub(super) fn in_words(self) -> String {
        match self {
            ContentPiece::Text(text) | ContentPiece::Words(text) => text,
            binary => binary.label().unwrap_or_default(),
        }
    }

    /// The description of a piece that is not text.
    pub(super) fn label(&self) -> Option<String> {
        match self {
            ContentPiece::Text(_) | ContentPiece::Words(_) => None,
            ContentPiece::Image { mime, data } => {
                Some(format!("[image: {mime}, {} bytes]", size(data)))
            }
            ContentPiece::Audio { mime, data } => {
                Some(format!("[audio: {mime}, {} bytes]", size(data)))
            }
            ContentPiece::Blob { uri, mime, data } => {
                Some(format!("[resource {uri}: {mime}, {} bytes]", size(data)))
            }
        }
    }
}

/// The size of the decoded base64.
fn size(data: &str) -> usize {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    (data.len() / 4 * 3 + data.len() % 4 * 3 / 4).saturating_sub(padding)
}
