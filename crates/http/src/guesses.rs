//! Wrong keys, counted by address. A client that sends many must wait. A valid
//! key is looked up first and never waits, so no client can lock out another
//! behind the same address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::warn;

use super::connections::source_of;
use super::error::{ApiError, Code};

/// Wrong keys that one address may send at once.
const FREE: u32 = 20;
/// The time after which one more is allowed; also sent as `Retry-After`.
const PACE: Duration = Duration::from_secs(3);
/// The most addresses counted; the one that was quiet longest is dropped.
const SOURCES: usize = 1024;

#[derive(Default)]
pub(super) struct Guesses {
    /// The lock is held for a map operation, never across an await.
    wrong: Mutex<HashMap<IpAddr, GuessCount>>,
}

struct GuessCount {
    wrong: u32,
    since: Instant,
    /// Whether it has been logged.
    told: bool,
}

impl Guesses {
    /// Counts a wrong key, and returns whether it was one too many. Loopback is
    /// exempt: all clients of this machine and, with a proxy, all clients at
    /// all come from there, and the proxy must count them.
    pub(super) fn is_one_too_many(&self, from: IpAddr) -> bool {
        self.at(from, Instant::now())
    }

    fn at(&self, from: IpAddr, now: Instant) -> bool {
        let source = source_of(from);
        if source.is_loopback() {
            return false;
        }
        let mut counts = self.wrong.lock();
        if counts.len() >= SOURCES && !counts.contains_key(&source) {
            make_room(&mut counts, now);
        }
        let count = counts.entry(source).or_insert(GuessCount::new(now));
        count.forget(now);
        if count.wrong < FREE {
            count.wrong += 1;
            return false;
        }
        if !count.told {
            count.told = true;
            warn!(
                "{FREE} wrong keys in a row from {source}: further attempts are limited to one every 3 s"
            );
        }
        true
    }
}

impl GuessCount {
    fn new(now: Instant) -> GuessCount {
        GuessCount {
            wrong: 0,
            since: now,
            told: false,
        }
    }

    /// Removes wrong keys that are old enough.
    fn forget(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let paces = u32::try_from(passed.as_secs() / PACE.as_secs()).unwrap_or(u32::MAX);
        if paces >= self.wrong {
            *self = GuessCount::new(now);
        } else {
            self.wrong -= paces;
            self.since += PACE * paces;
        }
    }
}

fn make_room(counts: &mut HashMap<IpAddr, GuessCount>, now: Instant) {
    counts.retain(|_, count| {
        count.forget(now);
        count.wrong > 0
    });
    if counts.len() >= SOURCES {
        let quiet = counts.iter().min_by_key(|(_, count)| count.since);
        if let Some(quiet) = quiet.map(|(source, _)| *source) {
            counts.remove(&quiet);
        }
    }
}

/// The same error for every wrong key, whatever is wrong with it.
pub(super) fn too_many() -> ApiError {
    let message = "too many wrong keys have come from this address; try again later";
    ApiError::new(Code::TooManyRequests, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::{BodyLength, RequestInfo};
    use crate::{Access, AdminToken, Guard, HostPolicy};
    use config::Secret;
    use http::{HeaderMap, Method};

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn t_d5_wrong_keys_have_a_pace_and_each_source_its_own() {
        let guesses = Guesses::default();
        let start = Instant::now();
        let let_by = |from: &str, tries: u32, now: Instant| {
            let tries = 0..tries;
            let by = tries.filter(|_| !guesses.at(ip(from), now));
            u32::try_from(by.count()).unwrap()
        };
        assert_eq!(let_by("10.0.0.1", 100, start), FREE);
        assert_eq!(let_by("::ffff:10.0.0.1", 100, start), 0);
        assert_eq!(let_by("10.0.0.2", 10, start), 10);
        assert_eq!(let_by("2001:db8::1", 100, start), FREE);
        assert_eq!(let_by("2001:db8::2", 100, start), 0);
        assert_eq!(let_by("10.0.0.1", 100, start + PACE * 4), 4);
        assert_eq!(let_by("10.0.0.1", 100, start + PACE * 400), FREE);
        for here in ["127.0.0.1", "::1"] {
            assert_eq!(let_by(here, 100, start), 100);
        }
    }

    #[tokio::test]
    async fn t_d5_who_guesses_is_told_to_wait_and_a_right_key_never() {
        let token = "pw_admin_0123456789abcdef";
        let bound = std::net::SocketAddr::from(([10, 0, 0, 9], 80));
        let hosts = HostPolicy::new(bound, Vec::new(), Vec::new());
        let admin = AdminToken::new(Secret::new(token));
        let guard = Guard::new(Access::Token(admin), hosts, 1 << 20);
        let info = async |path: &str, from: &str, given: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("host", "10.0.0.9".parse().unwrap());
            if let Some(given) = given {
                let value = format!("Bearer {given}").parse().unwrap();
                headers.insert("authorization", value);
            }
            let uri = path.parse().unwrap();
            let info = RequestInfo {
                method: &Method::GET,
                uri: &uri,
                headers: &headers,
                length: BodyLength::None,
                local: Some(ip("10.0.0.9")),
                remote: Some(ip(from)),
                matched: Some(path),
                connection: None,
                accepted: None,
            };
            match guard.pass(&info).await {
                Ok(_) => 200,
                Err(error) => error.code().status().as_u16(),
            }
        };
        let (api, guesser) = ("/api/mcp/servers", "10.0.0.1");
        let entry = "/api/v1/mcp_v2/server/pwk_wrong";
        for _ in 0..FREE / 2 {
            assert_eq!(info(api, guesser, Some("wrong")).await, 401);
            assert_eq!(info(entry, guesser, None).await, 404);
        }
        assert_eq!(info(api, guesser, Some("wrong")).await, 429);
        assert_eq!(info(entry, guesser, None).await, 429);
        // A request without a credential is not a guess.
        assert_eq!(info(api, guesser, None).await, 401);
        assert_eq!(info(api, guesser, Some(token)).await, 200);
        assert_eq!(info(api, "10.0.0.2", Some("wrong")).await, 401);
    }

    #[test]
    fn t_d5_however_many_come_from_wherever_the_count_is_bounded() {
        let guesses = Guesses::default();
        let start = Instant::now();
        for n in 0..5_000u32 {
            let from = IpAddr::V4((0x0a00_0000 + n).into());
            assert!(!guesses.at(from, start + Duration::from_millis(n.into())));
        }
        assert!(guesses.wrong.lock().len() <= SOURCES);
    }
}
