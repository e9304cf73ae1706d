//! Users of a Supabase project, by the tokens it signs: what is good, and
//! each way of forging one.

pub(crate) mod project;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use config::Secret;
use portway_http::{self, Access, AdminToken, EdgeLimits, Guard, HostPolicy, Principal, Users};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::app::{PATIENCE, TOKEN};
use project::{PublishedKeys, SupabaseProject, ec, encoded, now, rsa, sign_with};

const SECRET: &str = "the-legacy-secret-of-a-project-0123";

/// The guard around a handler that says who asked.
struct GuardedEcho {
    address: std::net::SocketAddr,
    stop: CancellationToken,
}

impl Drop for GuardedEcho {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn who(principal: Principal) -> String {
    principal.owner().to_string()
}

impl GuardedEcho {
    async fn new(project: Option<&str>, secret: Option<&str>) -> GuardedEcho {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = project.map(|url| url.parse().unwrap());
        let users = Users::new(url.as_ref(), secret.map(Secret::new).as_ref()).unwrap();
        let access = Access::Token(AdminToken::new(Secret::new(TOKEN)));
        let hosts = HostPolicy::new(address, Vec::new(), Vec::new());
        let guard = Guard::new(access, hosts, 1 << 20).with_users(users);
        let api = Router::new()
            .route("/api/v1/tools", get(who))
            .route("/api/mcp/servers", get(who))
            .route("/mcp", get(who));
        let router = portway_http::router(
            Arc::new(guard),
            portway_http::Vitals::default(),
            portway_http::Console::missing(),
            api,
        );
        let stop = CancellationToken::new();
        tokio::spawn(portway_http::serve(
            listener,
            router,
            EdgeLimits::default(),
            stop.clone(),
        ));
        GuardedEcho { address, stop }
    }

    /// Status and body.
    async fn ask(&self, path: &str, headers: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = tokio::time::timeout(PATIENCE, socket.read_to_string(&mut answer));
        read.await.expect("an answer in time").unwrap();
        let status = answer[9..12].parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, body.to_owned())
    }

    async fn bearer(&self, token: &str) -> (u16, String) {
        let line = format!("authorization: Bearer {token}\r\n");
        self.ask("/api/v1/tools", &line).await
    }

    async fn status(&self, token: &str) -> u16 {
        self.bearer(token).await.0
    }
}

fn claims(project: &str) -> Value {
    json!({
        "iss": format!("{project}/auth/v1"), "aud": "authenticated", "role": "authenticated",
        "sub": "0b7f6e52-9a4c-4a5b-8f5e-1f0e6a3c2d11", "exp": now() + 600, "iat": now(),
    })
}

#[tokio::test]
async fn e2_a_user_is_known_by_a_signed_token() {
    let (one, other) = (ec("k1"), rsa("k2"));
    let project = SupabaseProject::with(&[&one, &other]).await;
    let door = GuardedEcho::new(Some(&format!("{}/", project.url)), Some(SECRET)).await;
    let user = "0b7f6e52-9a4c-4a5b-8f5e-1f0e6a3c2d11";
    let claims = claims(&project.url);
    let hs256 = sign_with(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims);
    for token in [one.sign(&claims), other.sign(&claims), hs256] {
        assert_eq!(door.bearer(&token).await, (200, user.to_owned()));
        let line = format!("authorization: Bearer {token}\r\n");
        for path in ["/api/mcp/servers", "/mcp", "/nothing"] {
            assert_eq!(door.ask(path, &line).await.0, 403, "{path}");
        }
    }
    assert_eq!(door.bearer(TOKEN).await, (200, "admin".to_owned()));
    assert_eq!(project.asked(), 1, "the keys are kept");
}

#[tokio::test]
async fn e2_a_forged_token_is_refused() {
    let (one, other) = (ec("k1"), rsa("k2"));
    let project = SupabaseProject::with(&[&one, &other]).await;
    let door = GuardedEcho::new(Some(&project.url), Some(SECRET)).await;
    let claims = claims(&project.url);
    let good = one.sign(&claims);
    assert_eq!(door.status(&good).await, 200);

    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let more = encoded(&json!({"sub": "admin", "exp": now() + 600, "aud": "authenticated"}));
    let none = encoded(&json!({"alg": "none", "kid": "k1"}));
    let hs256 = json!({"alg": "HS256", "kid": "k1"});
    let swapped = encoded(&json!({"alg": "RS256", "kid": "k1"}));
    let padded = format!("{good}{}", "A".repeat(9000));
    let other_ec = ec("k1");
    let forged = [
        ("none", format!("{none}.{body}.")),
        ("none, signed", format!("{none}.{body}.{signature}")),
        (
            "public key as secret",
            sign_with(&one.public(), &hs256, &claims),
        ),
        (
            "published key as secret",
            sign_with(one.jwk().to_string().as_bytes(), &hs256, &claims),
        ),
        ("no secret", sign_with(b"", &hs256, &claims)),
        ("wrong secret", sign_with(b"guess", &hs256, &claims)),
        (
            "kind of another key",
            format!("{swapped}.{body}.{signature}"),
        ),
        ("another's key", other_ec.sign(&claims)),
        ("unknown key", ec("k9").sign(&claims)),
        ("other claims", format!("{head}.{more}.{signature}")),
        ("no signature", format!("{head}.{body}.")),
        (
            "cut signature",
            format!("{head}.{body}.{}", &signature[..signature.len() - 4]),
        ),
        ("huge", padded),
    ];
    for (what, token) in &forged {
        assert_eq!(door.status(token).await, 401, "{what}");
    }
    let twice = format!("authorization: Bearer {good}\r\n").repeat(2);
    assert_eq!(door.ask("/api/v1/tools", &twice).await.0, 401);
    assert_eq!(project.asked(), 1, "made-up key ids do not make us ask");

    let changes = [
        ("exp", json!(now() - 60)),
        ("exp", Value::Null),
        ("nbf", json!(now() + 600)),
        ("iss", json!("https://else.example/auth/v1")),
        ("iss", Value::Null),
        ("aud", json!("other")),
        ("aud", Value::Null),
        ("sub", Value::Null),
        ("sub", json!("admin")),
        ("role", json!("anon")),
        ("role", json!("service_role")),
    ];
    for (name, value) in changes {
        let mut claims = claims.clone();
        claims[name] = value.clone();
        assert_eq!(door.status(&one.sign(&claims)).await, 401, "{name} {value}");
    }
    assert_eq!(door.status(&good).await, 200);
}

#[tokio::test]
async fn e2_each_kind_of_key_needs_its_setting() {
    let key = ec("k1");
    let project = SupabaseProject::with(&[&key]).await;
    let claims = claims(&project.url);
    let hs256 = sign_with(SECRET.as_bytes(), &json!({"alg": "HS256"}), &claims);
    let by_url = GuardedEcho::new(Some(&project.url), None).await;
    assert_eq!(by_url.status(&key.sign(&claims)).await, 200);
    assert_eq!(by_url.status(&hs256).await, 401);
    let by_secret = GuardedEcho::new(None, Some(SECRET)).await;
    assert_eq!(by_secret.status(&key.sign(&claims)).await, 401);
    assert_eq!(by_secret.status(&hs256).await, 200);
    let neither = GuardedEcho::new(None, None).await;
    assert_eq!(neither.status(&hs256).await, 401);
    assert_eq!(neither.status(&key.sign(&claims)).await, 401);
}

#[tokio::test]
async fn e2_a_project_that_cannot_be_asked_lets_nobody_in() {
    let key = ec("k1");
    let huge = format!("{}{}", json!({"keys": [key.jwk()]}), " ".repeat(1 << 20));
    for (what, published) in [
        ("gone", PublishedKeys::Nothing),
        ("slow", PublishedKeys::Never),
        ("huge", PublishedKeys::Text(huge)),
        ("odd", PublishedKeys::Text("<html>".to_owned())),
    ] {
        let project = SupabaseProject::new(published).await;
        let door = GuardedEcho::new(Some(&project.url), None).await;
        let token = key.sign(&claims(&project.url));
        let status = tokio::time::timeout(PATIENCE, door.status(&token)).await;
        assert_eq!(status.ok(), Some(503), "{what}");
        assert_eq!(door.bearer(TOKEN).await.0, 200, "{what}");
    }
}

#[tokio::test]
async fn e2_a_project_that_goes_away_costs_no_key() {
    let key = ec("k1");
    let project = SupabaseProject::with(&[&key]).await;
    let door = GuardedEcho::new(Some(&project.url), None).await;
    let token = key.sign(&claims(&project.url));
    assert_eq!(door.status(&token).await, 200);
    project.publish(PublishedKeys::Nothing);
    assert_eq!(
        door.status(&ec("k2").sign(&claims(&project.url))).await,
        401
    );
    assert_eq!(door.status(&token).await, 200);
}
