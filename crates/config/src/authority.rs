//! `host[:port]` and `scheme://host[:port]`, as settings and requests spell
//! them. Stricter than a URL: ambiguous text is refused.

use std::net::{IpAddr, Ipv6Addr};

/// Names are in lower case; an IP address is compared as an address, so that
/// all its spellings are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    Name(String),
    Ip(IpAddr),
}

impl Host {
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Name(name) => name == "localhost",
            Host::Ip(ip) => ip.is_loopback(),
        }
    }
}

impl Authority {
    pub fn parse(text: &str) -> Option<Authority> {
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, after) = rest.split_once(']')?;
            let host = Host::Ip(ip.parse::<Ipv6Addr>().ok()?.into());
            let port = match after.strip_prefix(':') {
                Some(port) => Some(parse_port(port)?),
                None if after.is_empty() => None,
                None => return None,
            };
            return Some(Authority { host, port });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(port)?)),
            None => (text, None),
        };
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if name.is_empty() || name.len() > 253 || !name.bytes().all(fits) {
            return None;
        }
        let host = match name.parse::<IpAddr>() {
            Ok(ip) => Host::Ip(ip),
            Err(_) => Host::Name(name.to_ascii_lowercase()),
        };
        Some(Authority { host, port })
    }

    /// Whether `asked` is this authority; without a port this matches any port.
    pub fn covers(&self, asked: &Authority) -> bool {
        self.host == asked.host && (self.port.is_none() || self.port == asked.port)
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The origin of a page, as a browser writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: String,
    pub authority: Authority,
}

impl Origin {
    pub fn parse(text: &str) -> Option<Origin> {
        let (scheme, rest) = text.split_once("://")?;
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.bytes().all(fits) {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut authority = Authority::parse(rest)?;
        // A browser omits the default port.
        let usual = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        if authority.port == usual {
            authority.port = None;
        }
        Some(Origin { scheme, authority })
    }

    pub fn is_web(&self) -> bool {
        self.scheme == "http" || self.scheme == "https"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_meaning_in_all_its_spellings() {
        assert_eq!(
            Authority::parse("[::1]"),
            Authority::parse("[0:0:0:0:0:0:0:1]")
        );
        assert_eq!(
            Authority::parse("LOCALHOST:80"),
            Authority::parse("localhost:80")
        );
        assert_ne!(
            Authority::parse("localhost"),
            Authority::parse("localhost:80")
        );
    }

    #[test]
    fn what_is_not_a_host_is_none() {
        let wrong = [
            "", ":80", "a:", "a:x", "a:+1", "a:65536", "a:1:2", "a/b", "a@b", "a b", "a,b", "a#",
            "a?b", "::1", "[::1", "[::1]x", "[::1]:", "[1.2.3.4]", "ä",
        ];
        for text in wrong {
            assert_eq!(Authority::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_origin_is_scheme_and_host() {
        assert_eq!(
            Origin::parse("https://a.example:443"),
            Origin::parse("https://A.example")
        );
        assert_ne!(
            Origin::parse("https://a.example"),
            Origin::parse("http://a.example")
        );
        assert!(Origin::parse("vscode-webview://abc").is_some());
        for text in [
            "null", "", "a.example", "https://", "https://a/", "https://a/b", "://a",
        ] {
            assert_eq!(Origin::parse(text), None, "{text:?}");
        }
    }
}
