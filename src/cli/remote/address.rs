//! Addresses of a gateway: their validation, and which may get a credential.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use url::{Host, Url};

use crate::cli::failure::{CliResult, Failure};
use store::AddressOwner;

/// The process that holds the data directory must listen at the address that
/// the directory names: a credential goes there.
pub(super) fn check_holder(directory: &Path, url: &str) -> CliResult<()> {
    let address = store::socket_address(url);
    let good = address.is_some_and(|address| match store::address_owner(directory, address) {
        AddressOwner::Holder => true,
        AddressOwner::Unknown => address.ip().to_canonical().is_loopback(),
        AddressOwner::Other => false,
    });
    if !good {
        let what = format!("it is not the process that has {}", directory.display());
        return Err(Failure::unreachable(url, what));
    }
    Ok(())
}

/// The base URL. It is printed and written into files, so a password in it is
/// refused; it would not be sent either.
pub(super) fn base(text: &str) -> CliResult<Url> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| Failure::usage("--url: must be an http or https address"))?;
    let bare = url.username().is_empty() && url.password().is_none();
    if !bare || url.query().is_some() || url.fragment().is_some() {
        return Err(Failure::usage(
            "--url: must be an address alone, without a user, a password or a query; \
             the token is taken from PORTWAY_ADMIN_TOKEN",
        ));
    }
    Ok(url)
}

/// A name as a segment of a path.
pub(crate) fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The URL of a path below the gateway's own, with escaped segments.
pub(crate) fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// The MCP endpoint for everything, or for one server.
pub(crate) fn endpoint(base: &Url, server: Option<&str>) -> Url {
    match server {
        Some(name) => below(base, &["servers", name, "mcp"]),
        None => below(base, &["mcp"]),
    }
}

/// The URL under which this machine reaches a listener.
pub(crate) fn reached(listen: SocketAddr) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, listen.port()))
}

pub(super) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k7_an_address_holds_no_secret() {
        assert!(base("http://127.0.0.1:7420/at/a/path").is_ok());
        for text in [
            "http://u:s3cret@h",
            "http://s3cret@h",
            "http://h/?token=s3cret",
            "http://h/#s3cret",
            "file:///s3cret",
            "s3cret",
        ] {
            let failure = base(text).unwrap_err();
            assert!(matches!(failure, Failure::Usage(_)), "{text}");
            assert!(!failure.to_string().contains("s3cret"), "{failure}");
        }
    }
}
