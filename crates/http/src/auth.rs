//! Credentials in headers. Everything but a short list of public paths needs a
//! credential, on loopback too (SPEC K3).

use std::sync::OnceLock;

use http::header::AsHeaderName;
use http::{HeaderMap, Method, header};
use ring::hmac;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::api::{AccessRule, access_rule};
use super::console::PAGES;
use super::error::ApiError;
use super::sessions::{ConsoleSessions, SessionTicket};
use config::Secret;

/// A page that uses the console's cookie must send this header with every
/// change: other pages cannot do that without a preflight request.
pub(crate) const CONSOLE_HEADER: &str = "x-portway-console";
const COOKIE: &str = "portway_session";
const API_KEY: &str = "x-api-key";

/// The credential that requests need.
#[derive(Debug)]
pub enum Access {
    Token(AdminToken),
    /// `--no-auth`.
    Open,
}

/// The admin token, and the console sessions that depend on it.
#[derive(Debug)]
pub struct AdminToken {
    first: Box<Generation>,
    sessions: Box<ConsoleSessions>,
}

/// A list of tokens: a reader takes the last one and needs no lock.
#[derive(Debug)]
struct Generation {
    token: Secret,
    /// Seals the console's cookies, which therefore end with the token.
    seal: hmac::Key,
    next: OnceLock<Box<Generation>>,
}

impl Generation {
    fn new(token: Secret) -> Generation {
        // Browsers send the cookie to every port of this host, so it must
        // reveal nothing about the token.
        let digest = Sha256::new()
            .chain_update(b"portway console session\0")
            .chain_update(token.expose())
            .finalize();
        Generation {
            seal: hmac::Key::new(hmac::HMAC_SHA256, &digest),
            token,
            next: OnceLock::new(),
        }
    }
}

impl AdminToken {
    pub fn new(token: Secret) -> AdminToken {
        AdminToken {
            first: Box::new(Generation::new(token)),
            sessions: Box::default(),
        }
    }

    #[must_use]
    pub fn with_sessions(self, sessions: ConsoleSessions) -> AdminToken {
        AdminToken {
            sessions: Box::new(sessions),
            ..self
        }
    }

    pub(super) fn sessions(&self) -> &ConsoleSessions {
        &self.sessions
    }

    fn current(&self) -> &Generation {
        let mut current: &Generation = &self.first;
        while let Some(next) = current.next.get() {
            current = next;
        }
        current
    }

    pub fn matches(&self, given: &str) -> bool {
        let token = self.current().token.expose();
        token.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// The value of `Set-Cookie` that signs the console in.
    pub(crate) fn begin_session(&self, headers: &HeaderMap) -> Option<String> {
        let begun = self.sessions.begin(&self.current().seal, agent(headers));
        begun.map(|session| set_cookie(&session))
    }

    /// The session of the console's cookie, if it is valid.
    pub(super) fn session_of(&self, headers: &HeaderMap) -> Option<SessionTicket> {
        let session = session_cookie(headers)?;
        let seal = &self.current().seal;
        self.sessions.accept(seal, session, agent(headers))
    }

    /// A new cookie for one that will soon expire as unused.
    pub(super) fn renewed_cookie(&self, headers: &HeaderMap) -> Option<String> {
        let ticket = self.session_of(headers)?;
        let renewed = self.sessions.renewed(&self.current().seal, ticket);
        renewed.map(|session| set_cookie(&session))
    }

    /// Replaces the token. All sessions end but the one of the request, which
    /// gets a new cookie.
    pub(super) fn replace(&self, token: Secret, headers: &HeaderMap) -> Option<String> {
        let asking = self.session_of(headers);
        let asks = asking.as_ref().map(|ticket| &*ticket.id);
        self.sessions.end_where(|id| asks != Some(id));
        // The only caller replaces one token at a time.
        let _ = self.current().next.set(Box::new(Generation::new(token)));
        let seal = &self.current().seal;
        asking.map(|ticket| set_cookie(&ticket.resealed(seal)))
    }
}

fn set_cookie(session: &str) -> String {
    // Only the API needs it; the console's files are public.
    format!("{COOKIE}={session}; Path=/api; HttpOnly; SameSite=Strict")
}

/// The browser's `User-Agent`.
fn agent(headers: &HeaderMap) -> &str {
    let agent = headers.get(header::USER_AGENT);
    agent
        .and_then(|agent| agent.to_str().ok())
        .unwrap_or_default()
}

pub(super) fn is_public(method: &Method, matched: Option<&str>) -> bool {
    (method == Method::GET || method == Method::HEAD)
        && matched
            .is_some_and(|path| access_rule(path) == AccessRule::Public || PAGES.contains(&path))
}

/// A request's credential, before users and keys are looked up.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShownCredential<'a> {
    Admin,
    /// Not the admin's, and in the header that is for keys only.
    Key(&'a str),
    /// Not the admin's; it may be a user's token or an entry's key.
    Other(&'a str),
}

impl Access {
    pub(super) fn token(&self) -> Option<&AdminToken> {
        match self {
            Access::Token(token) => Some(token),
            Access::Open => None,
        }
    }

    /// Reads the credential of a non-public request. `endpoint`: it is for an
    /// MCP endpoint, where a key has a header of its own (SPEC E8).
    pub(super) fn look<'a>(
        &self,
        method: &Method,
        headers: &'a HeaderMap,
        endpoint: bool,
    ) -> Result<ShownCredential<'a>, ApiError> {
        match self {
            Access::Token(token) => match given(headers, endpoint) {
                None => token.session(method, headers),
                Some(Ok(ShownCredential::Key(text) | ShownCredential::Other(text)))
                    if token.matches(text) =>
                {
                    Ok(ShownCredential::Admin)
                }
                Some(shown) => shown.map_err(|UnclearCredential| refused()),
            },
            Access::Open => {
                // A page of another local server may have sent it, unless the
                // browser needed a preflight request for it.
                if changes(method) && from_browser(headers) && !needs_preflight(method, headers) {
                    return Err(missing_header());
                }
                let shown = given(headers, endpoint).and_then(Result::ok);
                Ok(shown.unwrap_or(ShownCredential::Admin))
            }
        }
    }
}

impl AdminToken {
    /// Accepts the console's cookie, where there is no other credential.
    fn session(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<ShownCredential<'static>, ApiError> {
        if headers_say_foreign(headers) || self.session_of(headers).is_none() {
            return Err(refused());
        }
        if changes(method) && !headers.contains_key(CONSOLE_HEADER) {
            return Err(missing_header());
        }
        Ok(ShownCredential::Admin)
    }
}

/// A credential that is repeated or unreadable.
struct UnclearCredential;

/// A credential that is present decides; there is no fallback to another. If
/// both headers have one, they must be equal.
fn given(
    headers: &HeaderMap,
    endpoint: bool,
) -> Option<Result<ShownCredential<'_>, UnclearCredential>> {
    let key = || only(headers, API_KEY);
    let has_key = endpoint && headers.contains_key(API_KEY);
    let shown = if headers.contains_key(header::AUTHORIZATION) {
        let bearer = bearer(headers).filter(|bearer| !has_key || key() == Some(bearer));
        bearer.map(ShownCredential::Other)
    } else if has_key {
        key().map(ShownCredential::Key)
    } else {
        return None;
    };
    Some(shown.ok_or(UnclearCredential))
}

fn changes(method: &Method) -> bool {
    !method.is_safe()
}

pub(super) fn from_browser(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site")
}

fn needs_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method != Method::POST
        || headers.contains_key(CONSOLE_HEADER)
        || headers
            .get(header::CONTENT_TYPE)
            .is_some_and(super::guard::is_json)
}

/// Another port of this host is the same site, and gets the cookie, but it is
/// not the same origin.
fn headers_say_foreign(headers: &HeaderMap) -> bool {
    headers
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none")
}

/// The value of a header that is not repeated.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next().filter(|_| lines.next().is_none());
    line?.to_str().ok()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

pub(super) fn refused() -> ApiError {
    ApiError::unauthorized(
        "this needs a credential that is in force, as `Authorization: Bearer <token>`: the \
         admin token, or, to list and call tools, an entry's key",
    )
}

fn missing_header() -> ApiError {
    ApiError::forbidden(format!(
        "a change made from a browser needs the header {CONSOLE_HEADER}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "pw_admin_0123456789abcdef";

    fn admin() -> AdminToken {
        AdminToken::new(Secret::new(TOKEN.to_owned()))
    }

    fn session() -> String {
        admin()
            .begin_session(&HeaderMap::new())
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    }

    fn verdict(access: &Access, method: Method, lines: &[(&'static str, String)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        match access.look(&method, &headers, true) {
            Ok(ShownCredential::Admin) => 200,
            Ok(ShownCredential::Key(_) | ShownCredential::Other(_)) => 401,
            Err(error) => error.code().status().as_u16(),
        }
    }

    #[test]
    fn k3_the_token_is_asked_for_and_nothing_else_will_do() {
        let access = Access::Token(admin());
        let is = |value: String| verdict(&access, Method::POST, &[("authorization", value)]);
        assert_eq!(is(format!("Bearer {TOKEN}")), 200);
        assert_eq!(is(format!("bearer {TOKEN}")), 200);
        let wrong = [
            String::new(),
            "Bearer".into(),
            "Bearer ".into(),
            format!("Basic {TOKEN}"),
            TOKEN.into(),
            format!("Bearer {TOKEN}x"),
            format!("Bearer {}", &TOKEN[1..]),
            "Bearer anything".into(),
            format!("Bearer {}", session().split_once('=').unwrap().1),
        ];
        for value in wrong {
            assert_eq!(is(value.clone()), 401, "{value}");
        }
        assert_eq!(verdict(&access, Method::GET, &[]), 401);
        let two = [
            ("authorization", format!("Bearer {TOKEN}")),
            ("authorization", format!("Bearer {TOKEN}")),
        ];
        assert_eq!(verdict(&access, Method::GET, &two), 401);
    }

    #[test]
    fn e8_an_endpoint_takes_the_token_as_a_key_too() {
        let access = Access::Token(admin());
        let key = |value: &str| ("x-api-key", value.to_owned());
        let bearer = |value: &str| ("authorization", format!("Bearer {value}"));
        let is = |lines: &[_]| verdict(&access, Method::POST, lines);
        assert_eq!(is(&[key(TOKEN)]), 200);
        assert_eq!(is(&[key(TOKEN), bearer(TOKEN)]), 200);
        assert_eq!(is(&[key("wrong")]), 401);
        assert_eq!(is(&[key("")]), 401);
        assert_eq!(is(&[key("wrong"), bearer(TOKEN)]), 401);
        assert_eq!(is(&[key(TOKEN), bearer("wrong")]), 401);
        assert_eq!(is(&[key(TOKEN), key(TOKEN)]), 401);
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", TOKEN.parse().unwrap());
        assert!(access.look(&Method::POST, &headers, false).is_err());
    }

    #[test]
    fn t_b2_the_cookie_changes_nothing_without_the_header() {
        let access = Access::Token(admin());
        let cookie = || ("cookie", format!("a=b; {}", session()));
        let site = |s: &str| ("sec-fetch-site", s.to_owned());
        assert_eq!(verdict(&access, Method::GET, &[cookie()]), 200);
        assert_eq!(verdict(&access, Method::POST, &[cookie()]), 403);
        assert_eq!(verdict(&access, Method::DELETE, &[cookie()]), 403);
        let with_header = [cookie(), (CONSOLE_HEADER, "1".into()), site("same-origin")];
        assert_eq!(verdict(&access, Method::POST, &with_header), 200);
        assert_eq!(
            verdict(&access, Method::GET, &[cookie(), site("same-site")]),
            401
        );
        let token_as_cookie = ("cookie", format!("portway_session={TOKEN}"));
        assert_eq!(verdict(&access, Method::GET, &[token_as_cookie]), 401);
        let wrong_bearer = ("authorization", "Bearer wrong".to_owned());
        assert_eq!(
            verdict(&access, Method::GET, &[cookie(), wrong_bearer]),
            401
        );
    }

    #[test]
    fn k1_no_auth_still_refuses_what_another_page_could_send() {
        let page = || ("origin", "http://localhost:3000".to_owned());
        let json = ("content-type", "application/json".to_owned());
        assert_eq!(verdict(&Access::Open, Method::POST, &[]), 200);
        assert_eq!(verdict(&Access::Open, Method::GET, &[page()]), 200);
        assert_eq!(verdict(&Access::Open, Method::POST, &[page()]), 403);
        assert_eq!(verdict(&Access::Open, Method::POST, &[page(), json]), 200);
        assert_eq!(verdict(&Access::Open, Method::DELETE, &[page()]), 200);
    }

    #[test]
    fn k3_a_replaced_token_is_refused_at_once_and_its_sessions_end() {
        let token = admin();
        let cookie = |value: String| {
            let mut headers = HeaderMap::new();
            let pair = value.split(';').next().unwrap().to_owned();
            headers.insert("cookie", pair.parse().unwrap());
            headers
        };
        let begin = || cookie(token.begin_session(&HeaderMap::new()).unwrap());
        let (asking, other) = (begin(), begin());
        let renewed = token.replace(Secret::new("pw_admin_new"), &asking).unwrap();
        assert!(token.matches("pw_admin_new") && !token.matches(TOKEN));
        assert!(token.session_of(&asking).is_none(), "it has a new cookie");
        assert!(token.session_of(&cookie(renewed)).is_some());
        assert!(token.session_of(&other).is_none());
        assert_eq!(token.sessions().list(None).len(), 1);
    }

    #[test]
    fn g3_nothing_prints_the_token() {
        let shown = format!("{:?}", Access::Token(admin()));
        assert!(!shown.contains("0123456789"), "{shown}");
        assert!(!session().contains(TOKEN));
    }

    #[test]
    fn k3_public_paths_are_for_reading() {
        assert!(is_public(&Method::GET, Some("/healthz")));
        assert!(is_public(&Method::HEAD, Some("/assets/{*path}")));
        assert!(!is_public(&Method::POST, Some("/healthz")));
        assert!(!is_public(&Method::GET, Some("/api/mcp/servers")));
        assert!(!is_public(&Method::GET, None));
    }
}
