//! Who is signed in to the console, and a new admin token.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::app::{App, HttpAnswer, PATIENCE, TOKEN, setup};
use crate::e_served::hung_up::closed;
use crate::k_cli::{CommandOutput, command, ended};

const SESSIONS: &str = "/api/console/sessions";
const ROTATE: &str = "/api/token/rotate";

/// One that has made its token itself.
async fn own_token() -> (App, String) {
    let app = setup().without("PORTWAY_ADMIN_TOKEN").start().await;
    let token = std::fs::read_to_string(app.path("data/admin_token")).unwrap();
    (app, token.trim().to_owned())
}

/// The cookie of a browser that has followed the link.
async fn sign_in(app: &App, token: &str) -> String {
    let answer = app
        .request("GET", &format!("/?token={token}"), None, &[])
        .await;
    cookie_of(&answer)
}

fn cookie_of(answer: &HttpAnswer) -> String {
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

async fn with_cookie(app: &App, method: &str, path: &str, cookie: &str) -> HttpAnswer {
    let headers = [("cookie", cookie), ("x-portway-console", "1")];
    app.request(method, path, None, &headers).await
}

async fn with_token(app: &App, method: &str, path: &str, token: &str) -> HttpAnswer {
    let bearer = format!("Bearer {token}");
    app.request(method, path, None, &[("authorization", &bearer)])
        .await
}

async fn is_in(app: &App, cookie: &str) -> bool {
    with_cookie(app, "GET", "/api/mcp/servers", cookie)
        .await
        .status
        == 200
}

#[tokio::test]
async fn k3_sessions_are_listed_ended_and_survive_a_restart() {
    let app = setup().start().await;
    let one = sign_in(&app, TOKEN).await;
    let two = sign_in(&app, TOKEN).await;
    let three = sign_in(&app, TOKEN).await;
    assert!(is_in(&app, &one).await && is_in(&app, &two).await);
    let listed = with_cookie(&app, "GET", SESSIONS, &one).await.expect(200);
    let listed = listed.as_array().unwrap().clone();
    assert_eq!(listed.len(), 3);
    let current: Vec<&Value> = listed.iter().filter(|one| one["current"] == true).collect();
    assert_eq!(current.len(), 1);
    assert!(!json!(listed).to_string().contains(&one[20..]), "no cookie");

    let app = app.again().await;
    assert!(is_in(&app, &one).await && is_in(&app, &two).await);
    let id = current[0]["id"].as_str().unwrap();
    let ended = with_cookie(&app, "DELETE", &format!("{SESSIONS}/{id}"), &two).await;
    assert_eq!(ended.status, 204, "{}", ended.text);
    assert!(!is_in(&app, &one).await && is_in(&app, &two).await);
    let again = with_cookie(&app, "DELETE", &format!("{SESSIONS}/{id}"), &two).await;
    assert_eq!(again.status, 404, "{}", again.text);

    let app = app.again().await;
    assert!(!is_in(&app, &one).await, "ended is ended");
    assert!(is_in(&app, &three).await);
    let others = with_cookie(&app, "DELETE", SESSIONS, &two).await;
    assert_eq!(others.status, 204, "{}", others.text);
    assert!(is_in(&app, &two).await && !is_in(&app, &three).await);
    assert_eq!(app.stop().await, Some(0));
}

#[tokio::test]
async fn k3_a_session_has_a_lifetime() {
    let app = setup().env("PORTWAY_SESSION_LIFETIME", "2s").start().await;
    let cookie = sign_in(&app, TOKEN).await;
    let start = Instant::now();
    while is_in(&app, &cookie).await {
        assert!(start.elapsed() < PATIENCE, "it never ends");
        sleep(Duration::from_millis(50)).await;
    }
    let listed = app.get(SESSIONS).await.expect(200);
    assert_eq!(listed, json!([]));
}

async fn run(app: &App, args: &[&str]) -> CommandOutput {
    let mut command = command(app.setup.path(), args);
    command.env_remove("PORTWAY_ADMIN_TOKEN");
    ended(command).await
}

/// A stream of events, open with a token.
async fn events(app: &App, token: &str) -> TcpStream {
    events_with(app, &format!("authorization: Bearer {token}")).await
}

async fn events_with(app: &App, credential: &str) -> TcpStream {
    let address = app.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request =
        format!("GET /api/mcp/events HTTP/1.1\r\nhost: localhost\r\n{credential}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    let read = timeout(PATIENCE, socket.read_exact(&mut start)).await;
    read.unwrap().unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    socket
}

#[tokio::test]
async fn k3_a_session_that_is_over_has_no_stream_of_events() {
    let app = setup().start().await;
    let [one, two] = [sign_in(&app, TOKEN).await, sign_in(&app, TOKEN).await];
    let mut stays = events_with(&app, &format!("cookie: {one}")).await;
    let mut ends = events_with(&app, &format!("cookie: {two}")).await;
    let listed = with_cookie(&app, "GET", SESSIONS, &two).await.expect(200);
    let listed = listed.as_array().unwrap();
    let own = listed.iter().find(|one| one["current"] == true).unwrap();
    let path = format!("{SESSIONS}/{}", own["id"].as_str().unwrap());
    assert_eq!(app.send("DELETE", &path, None).await.status, 204);
    closed(&mut ends, "the ended session's").await;
    let mut byte = [0];
    let waits = timeout(Duration::from_millis(1), async {
        while stays.read(&mut byte).await.unwrap() > 0 {}
    });
    assert!(waits.await.is_err(), "the other session's is still open");
    assert_eq!(app.stop().await, Some(0));

    let app = setup().env("PORTWAY_SESSION_LIFETIME", "2s").start().await;
    let cookie = sign_in(&app, TOKEN).await;
    let mut ends = events_with(&app, &format!("cookie: {cookie}")).await;
    closed(&mut ends, "the expired session's").await;
}

#[tokio::test]
async fn k3_a_rotated_token_is_refused_at_once_with_all_it_opened() {
    let (app, old) = own_token().await;
    let cookie = sign_in(&app, &old).await;
    let mut stream = events(&app, &old).await;
    let said = run(&app, &["token", "rotate", "--yes"]).await.ok();
    let new = said.trim().to_owned();
    assert!(new.starts_with("pwa_") && new != old, "{new}");
    assert_eq!(with_token(&app, "GET", SESSIONS, &old).await.status, 401);
    assert_eq!(with_token(&app, "GET", SESSIONS, &new).await.status, 200);
    assert!(!is_in(&app, &cookie).await);
    closed(&mut stream, "the stream of the old token").await;
    assert!(!app.log().contains(&new) && !app.log().contains(&old));
    // The commands find it where the old one was.
    assert_eq!(
        run(&app, &["sessions", "ls", "--json"]).await.json(),
        json!([])
    );

    // Over the console, whose own session goes on.
    let (asking, other) = (sign_in(&app, &new).await, sign_in(&app, &new).await);
    let answer = with_cookie(&app, "POST", ROTATE, &asking).await;
    let renewed = cookie_of(&answer);
    let newest = answer.expect(200)["token"].as_str().unwrap().to_owned();
    assert!(is_in(&app, &renewed).await, "who asked stays signed in");
    assert!(!is_in(&app, &asking).await && !is_in(&app, &other).await);
    let app = app.again().await;
    assert_eq!(with_token(&app, "GET", SESSIONS, &new).await.status, 401);
    assert_eq!(with_token(&app, "GET", SESSIONS, &newest).await.status, 200);
    let listed = with_token(&app, "GET", SESSIONS, &newest).await.expect(200);
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    run(&app, &["sessions", "end", &id]).await.ok();
    assert!(!is_in(&app, &renewed).await);
}

#[tokio::test]
async fn k3_a_token_of_the_environment_is_changed_there() {
    let app = setup().start().await;
    let refused = app.send("POST", ROTATE, None).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(
        refused.text.contains("PORTWAY_ADMIN_TOKEN"),
        "{}",
        refused.text
    );
    let said = ended(command(app.setup.path(), &["token", "rotate", "--yes"])).await;
    said.fails(1, "PORTWAY_ADMIN_TOKEN");
    assert_eq!(app.get(SESSIONS).await.status, 200);
}
