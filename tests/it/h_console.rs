//! SPEC H, K3: how the console's files are served. What the page does is
//! tried in a browser, elsewhere.

use std::sync::Arc;

use config::Secret;
use portway_http::{self, Access, AdminToken, Console, EdgeLimits, Guard, HostPolicy, Vitals};
use rust_embed::RustEmbed;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::{App, HttpAnswer, setup};

#[derive(RustEmbed)]
#[folder = "tests/it/fake_console"]
struct FakeConsole;

/// Portway's door with a console of three files behind it.
struct ConsoleServer {
    url: String,
    stop: CancellationToken,
}

impl Drop for ConsoleServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve() -> ConsoleServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = Access::Token(AdminToken::new(Secret::new("the-token")));
    let hosts = HostPolicy::new(address, Vec::new(), Vec::new());
    let guard = Arc::new(Guard::new(access, hosts, 1 << 20));
    let console = Console::of::<FakeConsole>();
    let router = portway_http::router(guard, Vitals::default(), console, axum::Router::new());
    let stop = CancellationToken::new();
    tokio::spawn(portway_http::serve(
        listener,
        router,
        EdgeLimits::default(),
        stop.clone(),
    ));
    ConsoleServer {
        url: format!("http://{address}"),
        stop,
    }
}

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

async fn get(served: &ConsoleServer, path: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    request(served, "GET", path, headers).await
}

async fn request(
    served: &ConsoleServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> HttpAnswer {
    let child = tokio::process::Command::new("true").spawn().unwrap();
    let app = App::at(setup(), child, &served.url);
    app.request(method, path, None, headers).await
}

#[tokio::test]
async fn h7_the_console_comes_from_the_binary_with_the_right_lifetimes() {
    let served = serve().await;
    let index = get(&served, "/", &[]).await;
    assert_eq!(index.status, 200);
    assert!(index.text.contains("A console"), "{}", index.text);
    assert_eq!(index.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(index.headers["cache-control"], "no-cache");
    let policy = index.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'self'"), "{policy}");
    for foreign in ["unsafe", "data:", "http:", "https:", "*"] {
        assert!(!policy.contains(foreign), "{policy}");
    }
    let tag = index.headers["etag"].to_str().unwrap();
    let again = get(&served, "/", &[("if-none-match", tag)]).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));

    let path = "/assets/index-abc123.js";
    let script = get(&served, path, &[]).await;
    assert_eq!(script.status, 200);
    assert_eq!(
        script.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
    let lasting = script.headers["cache-control"].to_str().unwrap();
    assert!(lasting.contains("immutable"), "{lasting}");
    assert!(!script.headers.contains_key("content-encoding"));

    let health = get(&served, "/healthz", &[]).await;
    assert_eq!(health.body["console"], "embedded");
}

#[tokio::test]
async fn h7_the_console_is_served_compressed_to_clients_that_accept_it() {
    let served = serve().await;
    let path = "/assets/index-abc123.js";
    let plain = get(&served, path, &[]).await;
    assert_eq!(plain.text, "console.log('a console');\n");
    let mut tags = Vec::new();
    for (accepted, coding) in [
        ("gzip, deflate, br, zstd", Some("br")),
        ("br;q=0.5, gzip;q=0.8", Some("gzip")),
        ("br;q=0, gzip;q=0.0", None),
        ("identity", None),
    ] {
        let asked = ("accept-encoding", accepted);
        let answer = get(&served, path, &[asked]).await;
        let said = answer.headers.get("content-encoding");
        assert_eq!(
            said.map(|said| said.to_str().unwrap()),
            coding,
            "{accepted}"
        );
        assert_eq!(answer.headers["vary"], "accept-encoding");
        assert_eq!(
            answer.headers["content-type"],
            "text/javascript; charset=utf-8"
        );
        let tag = answer.headers["etag"].to_str().unwrap().to_owned();
        let listed = format!("\"other\", W/{tag}");
        for known in [tag.as_str(), listed.as_str(), "*"] {
            let again = get(&served, path, &[asked, ("if-none-match", known)]).await;
            assert_eq!(
                (again.status, again.text.as_str()),
                (304, ""),
                "{accepted} {known}"
            );
            assert_eq!(again.headers["etag"], tag.as_str());
            assert_eq!(again.headers["vary"], "accept-encoding");
        }
        // A range of one coding would be garbage in another: the whole file.
        let part = get(&served, path, &[asked, ("range", "bytes=0-3")]).await;
        assert_eq!(
            (
                part.status,
                &part.headers["accept-ranges"].to_str().unwrap()
            ),
            (200, &"none")
        );
        let length = answer.headers["content-length"].to_str().unwrap();
        assert_eq!(part.headers["content-length"], length);
        let head = request(&served, "HEAD", path, &[asked]).await;
        assert_eq!((head.status, head.text.as_str()), (200, ""));
        assert_eq!(head.headers["content-length"], length);
        assert_eq!(head.headers["etag"], tag.as_str());
        tags.push(tag);
    }
    // A cached form must not be taken for another one.
    assert_ne!(tags[0], tags[1]);
    assert_ne!(tags[1], tags[2]);
    assert_eq!(tags[2], tags[3]);
    let other = [
        ("accept-encoding", "br"),
        ("if-none-match", tags[1].as_str()),
    ];
    assert_eq!(get(&served, path, &other).await.status, 200);
}

#[tokio::test]
async fn h1_pages_of_the_console_are_its_own_and_the_api_stays_json() {
    let served = serve().await;
    for path in ["/servers", "/servers/files", "/tools", "/settings/sources"] {
        let page = get(&served, path, &[BROWSER]).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.text.contains("A console"), "{path}");
        // A program that asks for no page is asked for a credential.
        assert_eq!(get(&served, path, &[]).await.status, 401, "{path}");
    }
    let bearer = ("authorization", "Bearer the-token");
    for path in [
        "/api",
        "/api/none",
        "/mcp",
        "/servers/a/mcp",
        "/sse",
        "/messages",
        "/.well-known/oauth-protected-resource",
    ] {
        let without = get(&served, path, &[BROWSER]).await;
        assert_eq!(without.status, 401, "{path}");
        let with = get(&served, path, &[BROWSER, bearer]).await;
        assert_eq!(with.status, 404, "{path}");
        assert_eq!(with.body["error"]["code"], "NOT_FOUND", "{path}");
    }
    for path in ["/assets/none.js", "/assets/../index.html"] {
        let gone = get(&served, path, &[BROWSER]).await;
        assert_eq!(gone.status, 404, "{path}");
        assert_eq!(gone.body["error"]["code"], "NOT_FOUND", "{path}");
    }
}

#[tokio::test]
async fn k3_the_program_says_whether_it_has_a_console() {
    let app = setup().start().await;
    let health = app.request("GET", "/healthz", None, &[]).await.expect(200);
    let page = app.request("GET", "/", None, &[]).await;
    assert_eq!(page.status, 200);
    match health["console"].as_str().unwrap() {
        "missing" => assert!(page.text.contains("make build"), "{}", page.text),
        "embedded" => assert!(page.text.contains("<script"), "{}", page.text),
        other => panic!("{other}"),
    }
}
