//! The console's door: its files, and signing in with the URL printed at
//! start-up.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::auth::Access;
use super::error::{self, ApiError};
use super::extract::Path;
use super::guard::Guard;

const INDEX: &str = "index.html";

/// Where no build of the console was there to be taken in.
const PLAIN_PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <title>Portway</title>\n<h1>Portway</h1>\n\
    <p>Portway is running, without its console: this build has none. To get one, install \
    Node.js and run <code>make build</code> in the source folder. The API is under \
    <code>/api</code>.</p>\n</html>\n";

/// First segments of paths that are never a page: whoever asks there expects
/// no HTML, whatever they accept.
const NO_PAGES: [&str; 9] = [
    "api",
    "mcp",
    "sse",
    "messages",
    ".well-known",
    "assets",
    "healthz",
    "readyz",
    ".refused",
];

#[derive(RustEmbed)]
#[folder = "ui/dist"]
#[allow_missing = true]
struct Built;

/// The files of the console, as far as this build has them.
#[derive(Clone, Copy)]
pub struct Console {
    file: fn(&str) -> Option<EmbeddedFile>,
}

impl Console {
    pub fn built_in() -> Console {
        Console::of::<Built>()
    }

    pub fn of<Files: RustEmbed>() -> Console {
        Console { file: Files::get }
    }

    pub fn missing() -> Console {
        Console { file: |_| None }
    }

    /// Whether there is one, as `/healthz` says it.
    pub(super) fn word(self) -> &'static str {
        match (self.file)(INDEX) {
            Some(_) => "embedded",
            None => "missing",
        }
    }

    fn index(self, headers: &HeaderMap) -> Response {
        match self.answer(INDEX, headers) {
            Some(response) => response,
            None => ([NO_CACHE], Html(PLAIN_PAGE)).into_response(),
        }
    }

    /// A file as it is, or as the build has compressed it beside it.
    fn answer(self, name: &str, headers: &HeaderMap) -> Option<Response> {
        // Where files are read from disk, in debug builds, the others stay
        // where they are.
        let plain = (self.file)(name).filter(|_| !name.contains(".."))?;
        let tag = format!("\"{}\"", hex(&plain.metadata.sha256_hash()[..12]));
        let packed = [("br", "br"), ("gzip", "gz")]
            .into_iter()
            .filter(|(coding, _)| accepts(headers, header::ACCEPT_ENCODING, coding))
            .find_map(|(coding, end)| Some((coding, (self.file)(&format!("{name}.{end}"))?)));
        let lasting = match name.starts_with("assets/") {
            true => LASTING,
            false => NO_CACHE,
        };
        let known = headers.get(header::IF_NONE_MATCH);
        if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            let head = [lasting, (header::VARY, VARY)];
            return Some((StatusCode::NOT_MODIFIED, head).into_response());
        }
        let mut response = match packed {
            Some((coding, file)) => {
                let coding = [(header::CONTENT_ENCODING, coding)];
                (coding, bytes(file)).into_response()
            }
            None => bytes(plain).into_response(),
        };
        let head = response.headers_mut();
        head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
        head.insert(lasting.0, lasting.1);
        head.insert(header::VARY, VARY);
        if let Ok(tag) = tag.try_into() {
            head.insert(header::ETAG, tag);
        }
        Some(response)
    }
}

const VARY: HeaderValue = HeaderValue::from_static("accept-encoding");
const NO_CACHE: (http::HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
/// Their names change with what is in them.
const LASTING: (http::HeaderName, HeaderValue) = (
    header::CACHE_CONTROL,
    HeaderValue::from_static("public, max-age=31536000, immutable"),
);

fn bytes(file: EmbeddedFile) -> Bytes {
    match file.data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a list such as `text/html, */*;q=0.8` names `word` itself.
fn accepts(headers: &HeaderMap, name: http::HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name);
    let mut named = lines
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(|one| one.split(';'));
    named.any(|mut one| {
        let wanted = one.next().unwrap_or_default().trim();
        wanted.eq_ignore_ascii_case(word) && !one.any(|rest| rest.trim() == "q=0")
    })
}

pub(super) fn router(guard: Arc<Guard>, console: Console) -> Router {
    let state = Door { guard, console };
    Router::new()
        .route("/", get(home))
        .route("/favicon.ico", get(icon))
        .route("/assets/{*path}", get(asset))
        .with_state(state)
}

#[derive(Clone)]
struct Door {
    guard: Arc<Guard>,
    console: Console,
}

/// `/?token=…` becomes a cookie, and the token leaves the address bar.
async fn home(
    State(door): State<Door>,
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
            let cookie = [(header::SET_COOKIE, token.session_cookie())];
            Ok((cookie, Redirect::to("/")).into_response())
        }
        Access::Token(_) => Err(ApiError::unauthorized(
            "the token in this link is not the admin token",
        )),
    }
}

async fn icon(State(door): State<Door>, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = door.console.answer("favicon.ico", &headers);
    found.ok_or_else(error::nothing_there)
}

async fn asset(
    State(door): State<Door>,
    Path(path): Path,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = door.console.answer(&format!("assets/{path}"), &headers);
    found.ok_or_else(error::nothing_there)
}

/// Every path that is not another's. The console shows itself on pages of its
/// own, which only it can tell apart.
pub(super) async fn elsewhere(
    console: Console,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match is_page(&method, uri.path(), &headers) {
        true => console.index(&headers),
        false => error::nothing_there().into_response(),
    }
}

/// Whether a path that the router does not know is asked for by a browser
/// that wants a page.
pub(super) fn is_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let reads = method == Method::GET || method == Method::HEAD;
    if !reads || !accepts(headers, header::ACCEPT, "text/html") {
        return false;
    }
    let mut segments = path.split('/').skip(1);
    let (first, _, third) = (segments.next(), segments.next(), segments.next());
    // Whatever hides behind an escape is not a page.
    let plain = !path.contains(['%', ';', '\\']) && !path.contains("//") && !path.contains("..");
    let endpoint = first == Some("servers") && third.is_some();
    plain && !endpoint && first.is_some_and(|first| !NO_PAGES.contains(&first))
}

#[cfg(test)]
mod tests {
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
