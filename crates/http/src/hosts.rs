//! The host names that this server accepts, and the origins that may call it.
//!
//! A web page can make a browser send requests here, also under a name of its
//! own that it points at 127.0.0.1 (DNS rebinding). So the name in a request
//! must be one of ours, and so must the page's origin.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderValue, Uri, header};

use super::error::ApiError;
use config::authority::{Authority, Host, Origin};

#[derive(Clone, Debug, Default)]
pub struct HostPolicy {
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
}

impl HostPolicy {
    /// `bound` and the loopback names are always allowed.
    pub fn new(bound: SocketAddr, hosts: Vec<Authority>, origins: Vec<Origin>) -> HostPolicy {
        let own = Authority {
            host: Host::Ip(bound.ip()),
            port: None,
        };
        let hosts = hosts.into_iter().chain([own]).collect();
        HostPolicy { hosts, origins }
    }

    /// Refuses a request that is not for us or comes from a foreign page.
    /// `local` is the local address of the connection.
    pub fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        local: Option<IpAddr>,
    ) -> Result<(), ApiError> {
        let host = self.check_host(only_host(headers)?, local)?;
        if let Some(authority) = uri.authority() {
            self.check_host(authority.as_str(), local)?;
        }
        self.check_origin(headers, &host)?;
        let mut sites = headers.get_all("sec-fetch-site").iter();
        if sites.any(|site| site == "cross-site") {
            return Err(ApiError::forbidden("requests from other sites are refused"));
        }
        Ok(())
    }

    fn check_host(&self, text: &str, local: Option<IpAddr>) -> Result<Authority, ApiError> {
        let asked = Authority::parse(text)
            .ok_or_else(|| ApiError::bad_request("the Host of the request is not `host[:port]`"))?;
        // An attacker can make a browser use a false name for our address, but
        // not a false address.
        let by_address =
            matches!((&asked.host, local), (Host::Ip(ip), Some(local)) if *ip == local);
        let listed = || self.hosts.iter().any(|known| known.covers(&asked));
        if asked.host.is_loopback() || by_address || listed() {
            return Ok(asked);
        }
        Err(ApiError::forbidden(
            "this server does not answer to that Host; PORTWAY_ALLOWED_HOSTS adds names",
        ))
    }

    fn check_origin(&self, headers: &HeaderMap, host: &Authority) -> Result<(), ApiError> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), more) = (origins.next(), origins.next()) else {
            return Ok(());
        };
        if more.is_none() && self.origin_allowed(origin, host) {
            return Ok(());
        }
        Err(ApiError::forbidden(
            "requests from that Origin are refused; PORTWAY_ALLOWED_ORIGINS adds origins",
        ))
    }

    fn origin_allowed(&self, origin: &HeaderValue, host: &Authority) -> bool {
        let Some(origin) = origin.to_str().ok().and_then(Origin::parse) else {
            return false;
        };
        let ours = || origin.authority.host.is_loopback() || origin.authority == *host;
        self.origins.contains(&origin) || (origin.is_web() && ours())
    }
}

fn only_host(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host
            .to_str()
            .map_err(|_| ApiError::bad_request("the Host of the request is not `host[:port]`")),
        (None, _) => Err(ApiError::bad_request("the request has no Host header")),
        (Some(_), Some(_)) => Err(ApiError::bad_request(
            "the request has more than one Host header",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(lines: &[(&str, &str)]) -> u16 {
        let policy = HostPolicy::new(
            "10.1.2.3:7420".parse().unwrap(),
            ["portway.example", "one.example:8443"]
                .map(|h| Authority::parse(h).unwrap())
                .into(),
            ["https://app.example", "vscode-webview://abc"]
                .map(|o| Origin::parse(o).unwrap())
                .into(),
        );
        let mut headers = HeaderMap::new();
        let mut uri = Uri::from_static("/mcp");
        for (name, value) in lines {
            if *name == "uri" {
                uri = value.parse().unwrap();
            } else {
                let name = http::HeaderName::try_from(*name).unwrap();
                headers.append(name, HeaderValue::from_str(value).unwrap());
            }
        }
        let local = Some("192.168.7.7".parse().unwrap());
        match policy.check(&uri, &headers, local) {
            Ok(()) => 200,
            Err(error) => error.code().status().as_u16(),
        }
    }

    #[test]
    fn t_b1_hosts() {
        let table = [
            ("localhost", 200),
            ("LocalHost:1", 200),
            ("127.0.0.1:7420", 200),
            ("[::1]:7420", 200),
            ("[0:0:0:0:0:0:0:1]", 200),
            ("10.1.2.3:9", 200),
            ("192.168.7.7:7420", 200),
            ("192.168.7.8:7420", 403),
            ("portway.example:1234", 200),
            ("one.example:8443", 200),
            ("one.example", 403),
            ("one.example:8444", 403),
            ("evil.example", 403),
            ("localhost.", 403),
            ("localhost.evil.com", 403),
            ("127.0.0.1.evil.com", 403),
            ("2130706433", 403),
            ("[::ffff:127.0.0.1]", 403),
            ("", 400),
            (":80", 400),
            ("localhost:", 400),
            ("localhost:99999", 400),
            ("localhost:+80", 400),
            ("localhost/#@x", 400),
            ("evil@localhost", 400),
            ("localhost localhost", 400),
            ("localhost,evil", 400),
            ("::1", 400),
            ("[::1", 400),
            ("[::1]x", 400),
        ];
        for (host, status) in table {
            assert_eq!(verdict(&[("host", host)]), status, "Host: {host}");
        }
        assert_eq!(verdict(&[]), 400);
        assert_eq!(
            verdict(&[("host", "localhost"), ("host", "localhost")]),
            400
        );
        assert_eq!(
            verdict(&[("host", "localhost"), ("uri", "http://evil.example/mcp")]),
            403
        );
        assert_eq!(
            verdict(&[("host", "localhost"), ("uri", "http://localhost/mcp")]),
            200
        );
        assert_eq!(
            verdict(&[("host", "evil.example"), ("uri", "http://localhost/mcp")]),
            403
        );
    }

    #[test]
    fn t_b1_origins() {
        let table = [
            ("http://localhost:3000", 200),
            ("http://127.0.0.1", 200),
            ("https://[::1]:1", 200),
            ("http://portway.example", 200),
            ("https://app.example", 200),
            ("vscode-webview://abc", 200),
            ("http://app.example", 403),
            ("https://app.example:444", 403),
            ("https://app.example.evil.com", 403),
            ("http://localhost.evil.com", 403),
            ("http://localhost@evil.com", 403),
            ("ftp://localhost", 403),
            ("http://evil.example", 403),
            ("null", 403),
            ("", 403),
        ];
        for (origin, status) in table {
            let lines = [("host", "portway.example"), ("origin", origin)];
            assert_eq!(verdict(&lines), status, "Origin: {origin}");
        }
        let two = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil"),
        ];
        assert_eq!(verdict(&two), 403);
    }

    #[test]
    fn t_b2_fetch_metadata() {
        for (site, status) in [("cross-site", 403), ("same-origin", 200), ("none", 200)] {
            assert_eq!(
                verdict(&[("host", "localhost"), ("sec-fetch-site", site)]),
                status
            );
        }
    }
}
