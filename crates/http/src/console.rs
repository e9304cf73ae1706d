//! The console's files, and the sign-in with the URL printed at start-up.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, Method, StatusCode, Uri, header};
use parking_lot::Mutex;
use rust_embed::{EmbeddedFile, RustEmbed};
use zlib_rs::{InflateConfig, ReturnCode};

use super::auth::Access;
use super::coding::{self, Coding};
use super::error::{self, ApiError};
use super::extract::Path;
use super::guard::Guard;
use super::tag::{hex, is_known};

const INDEX: &str = "index.html";

/// Served where the build includes no console.
const PLAIN_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <title>Portway</title>\n<h1>Portway</h1>\n\
    <p>Portway is running, without its console: this build has none. To get one, install \
    Node.js and run <code>make build</code> in the source folder. The API is under \
    <code>/api</code>.</p>\n</html>\n";

/// First segments of paths that are never a page: clients expect no HTML there,
/// whatever their `Accept` is.
const NO_PAGES: [&str; 9] = [
    "api", "mcp", "sse", "messages", ".well-known", "assets", "healthz", "readyz", ".refused",
];

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct EmbeddedConsole;

/// The files of the console, if this build has them.
#[derive(Clone, Copy)]
pub struct Console {
    file: fn(&str) -> Option<EmbeddedFile>,
}

impl Console {
    pub fn built_in() -> Console {
        Console::of::<EmbeddedConsole>()
    }

    pub fn of<Files: RustEmbed>() -> Console {
        Console { file: Files::get }
    }

    pub fn missing() -> Console {
        Console { file: |_| None }
    }

    /// Whether there is a console, as `/healthz` reports it.
    pub(super) fn word(self) -> &'static str {
        match self.find(INDEX, &[Coding::Identity]) {
            Some(_) => "embedded",
            None => "missing",
        }
    }

    fn index(self, headers: &HeaderMap) -> Response {
        let plain = || ([(header::CACHE_CONTROL, NO_CACHE)], Html(PLAIN_PAGE)).into_response();
        self.answer(INDEX, headers).unwrap_or_else(plain)
    }

    /// A file in the coding that the client prefers. Range requests get the
    /// whole file, as RFC 9110 allows.
    fn answer(self, name: &str, headers: &HeaderMap) -> Option<Response> {
        let file = self.find(name, &coding::accepted(headers))?;
        // The names of assets change with their content.
        let lasting = name.starts_with("assets/");
        let cache = if lasting { LASTING } else { NO_CACHE };
        let known = is_known(headers, &file.tag);
        let head = [
            (header::CACHE_CONTROL, cache.to_owned()),
            (header::VARY, "accept-encoding".to_owned()),
            (header::ETAG, file.tag),
        ];
        if known {
            return Some((StatusCode::NOT_MODIFIED, head).into_response());
        }
        let kind = [
            (header::CONTENT_TYPE, kind(name)),
            (header::ACCEPT_RANGES, "none"),
        ];
        let coded = file.coding != Coding::Identity;
        let coding = coded.then(|| [(header::CONTENT_ENCODING, file.coding.name())]);
        Some((head, kind, coding, file.bytes).into_response())
    }

    /// The first of these codings that the build has of a file. The build omits
    /// the plain form of compressed files; a client that accepts no compression
    /// gets it inflated.
    fn find(self, name: &str, accepted: &[Coding]) -> Option<ConsoleFile> {
        // Debug builds read from disk: nothing outside the folder is served.
        if name.contains("..") {
            return None;
        }
        accepted.iter().find_map(|&coding| {
            let file = (self.file)(&format!("{name}{}", coding.suffix()));
            match (file, coding) {
                (Some(file), _) => Some(ConsoleFile::new(file, coding)),
                (None, Coding::Identity) => {
                    let packed = (self.file)(&format!("{name}{}", Coding::Gzip.suffix()))?;
                    ConsoleFile::inflated(&packed)
                }
                (None, _) => None,
            }
        })
    }
}

/// A file in one coding.
struct ConsoleFile {
    coding: Coding,
    /// Each coding of a file has its own tag, in quotes.
    tag: String,
    bytes: Bytes,
}

impl ConsoleFile {
    fn new(file: EmbeddedFile, coding: Coding) -> ConsoleFile {
        let tag = hex(&file.metadata.sha256_hash()[..12]);
        ConsoleFile {
            coding,
            tag: format!("\"{tag}\""),
            bytes: match file.data {
                Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                Cow::Owned(bytes) => bytes.into(),
            },
        }
    }

    /// Inflates a file once; the cache is bounded by the number of files.
    fn inflated(packed: &EmbeddedFile) -> Option<ConsoleFile> {
        static INFLATED: Mutex<BTreeMap<[u8; 32], Bytes>> = Mutex::new(BTreeMap::new());
        let hash = packed.metadata.sha256_hash();
        let mut known = INFLATED.lock();
        let bytes = match known.get(&hash) {
            Some(bytes) => bytes.clone(),
            None => {
                let bytes = inflate(&packed.data)?;
                known.insert(hash, bytes.clone());
                bytes
            }
        };
        Some(ConsoleFile {
            coding: Coding::Identity,
            tag: format!("\"{}-identity\"", hex(&hash[..12])),
            bytes,
        })
    }
}

/// Inflates a whole gzip file, which ends with the size of its content.
fn inflate(packed: &[u8]) -> Option<Bytes> {
    const GZIP_WINDOW: i32 = 16 + 15;
    let size = u32::from_le_bytes(*packed.last_chunk()?);
    let mut output = vec![0; usize::try_from(size).ok()?];
    let config = InflateConfig {
        window_bits: GZIP_WINDOW,
    };
    let (written, outcome) = zlib_rs::decompress_slice(&mut output, packed, config);
    let whole = outcome == ReturnCode::Ok && written.len() == output.len();
    whole.then(|| output.into())
}

const NO_CACHE: &str = "no-cache";
const LASTING: &str = "public, max-age=31536000, immutable";

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        _ => "application/octet-stream",
    }
}

const HOME: &str = "/";
const ICON: &str = "/favicon.ico";
const ASSETS: &str = "/assets/{*path}";
/// The paths of the console's files, as the router spells them.
pub(super) const PAGES: [&str; 3] = [HOME, ICON, ASSETS];

pub(super) fn router(guard: Arc<Guard>, console: Console) -> Router {
    let state = ConsoleState { guard, console };
    Router::new()
        .route(HOME, get(home))
        .route(ICON, get(icon))
        .route(ASSETS, get(asset))
        .with_state(state)
}

#[derive(Clone)]
struct ConsoleState {
    guard: Arc<Guard>,
    console: Console,
}

/// `/?token=…` becomes a cookie, and the token leaves the address bar.
async fn home(
    State(door): State<ConsoleState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = query.unwrap_or_default();
    let given = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    let Some((_, given)) = given else {
        return Ok(door.console.index(&headers));
    };
    match door.guard.access() {
        Access::Open => Ok(Redirect::to("/").into_response()),
        Access::Token(token) if token.matches(&given) => {
            let cookie = token.begin_session(&headers).ok_or_else(|| {
                ApiError::unavailable("no console session can be started now; try again later")
            })?;
            let guard = door.guard.clone();
            // The cookie is valid in any case; without this the session is not
            // listed after a restart.
            tokio::task::spawn_blocking(move || {
                if let Err(error) = guard.save_sessions() {
                    tracing::warn!("{error}");
                }
            });
            Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
        }
        Access::Token(_) => Err(ApiError::unauthorized(
            "the token in this link is not the admin token",
        )),
    }
}

async fn icon(State(door): State<ConsoleState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = door.console.answer("favicon.ico", &headers);
    found.ok_or_else(error::nothing_there)
}

async fn asset(
    State(door): State<ConsoleState>,
    Path(path): Path,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = door.console.answer(&format!("assets/{path}"), &headers);
    found.ok_or_else(error::nothing_there)
}

/// Handles every path that no other route has. The console has pages of its
/// own, which only it can distinguish.
pub(super) async fn elsewhere(
    console: Console,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if is_page(&method, uri.path(), &headers) {
        console.index(&headers)
    } else {
        error::nothing_there().into_response()
    }
}

/// Whether a browser requests a page at a path that the router does not know.
pub(super) fn is_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let reads = method == Method::GET || method == Method::HEAD;
    let html = coding::quality(headers, &header::ACCEPT, &["text/html"]);
    if !reads || html.is_none_or(|quality| quality == 0.0) {
        return false;
    }
    let mut segments = path.split('/').skip(1);
    let (first, _, third) = (segments.next(), segments.next(), segments.next());
    // A path with an escape is never a page.
    let plain = !path.contains(['%', ';', '\\']) && !path.contains("//") && !path.contains("..");
    let endpoint = first == Some("servers") && third.is_some();
    plain && !endpoint && first.is_some_and(|first| !NO_PAGES.contains(&first))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn h1_only_a_browser_gets_a_page_and_only_where_nobody_else_answers() {
        let mut headers = HeaderMap::new();
        assert!(!is_page(&Method::GET, "/tools", &headers));
        let page = HeaderValue::from_static("text/html,application/xml;q=0.9,*/*;q=0.8");
        headers.insert(header::ACCEPT, page);
        for path in ["/servers", "/servers/a", "/tools", "/entries/7/keys"] {
            assert!(is_page(&Method::GET, path, &headers), "{path}");
            assert!(!is_page(&Method::POST, path, &headers), "{path}");
        }
        let never = [
            "/api",
            "/api/none",
            "/mcp",
            "/mcp/x",
            "/servers/a/mcp",
            "/servers/a/sse",
            "/servers/a/mcp/x",
            "/sse/",
            "/messages",
            "/.well-known/x",
            "/assets/none.js",
            "/%61pi/x",
            "//api",
            "/a/../api",
        ];
        for path in never {
            assert!(!is_page(&Method::GET, path, &headers), "{path}");
        }
        let anything = HeaderValue::from_static("*/*, text/html;q=0");
        headers.insert(header::ACCEPT, anything);
        assert!(!is_page(&Method::GET, "/tools", &headers));
    }
}
