//! The forms a setting's value may have. Each parser's error lists the accepted
//! forms; none repeats a value that could be a secret.

use std::net::SocketAddr;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use url::Url;

use crate::Secret;
use crate::authority::{Authority, Origin};

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        format!("`{text}` is not IP:port, such as 127.0.0.1:7420 (port 0 picks a free one)")
    })
}

/// `1d`, `1h`, `2m`, `30s`, `500ms`; a bare number counts seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration, such as 30s, 500ms or 2m");
    let (number, unit) = split_unit(text);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number
        .checked_mul(millis)
        .map(Duration::from_millis)
        .ok_or_else(wrong)
}

/// `4MiB`, `512KiB`; a bare number counts bytes.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size, such as 4MiB, 512KiB or 65536");
    let (number, unit) = split_unit(text);
    let number: usize = number.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number"))
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is not on or off")),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A secret that travels in a header: printable and long enough.
pub(super) fn secret(text: &str, at_least: usize) -> Result<Secret, String> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("must be printable ASCII without spaces".into());
    }
    if text.len() < at_least || text.len() > 512 {
        return Err(format!("must have {at_least} to 512 characters"));
    }
    Ok(Secret::new(text))
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "`{text}` is not a filter, such as info or portway=debug,warn"
        )),
    }
}

pub(super) fn web_url(text: &str) -> Result<Url, String> {
    url_of(text, &["http", "https"]).ok_or_else(|| "must be an http:// or https:// URL".into())
}

pub(super) fn database_url(text: &str) -> Result<Secret, String> {
    url_of(text, &["postgres", "postgresql"]).ok_or("must be a postgres:// URL")?;
    Ok(Secret::new(text))
}

fn url_of(text: &str, schemes: &[&str]) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (schemes.contains(&url.scheme()) && url.has_host()).then_some(url)
}

pub(super) fn hosts(text: &str) -> Result<Vec<Authority>, String> {
    list(text, |item| {
        Authority::parse(item)
            .ok_or_else(|| format!("`{item}` is not host[:port]; give several with commas between"))
    })
}

pub(super) fn origins(text: &str) -> Result<Vec<Origin>, String> {
    list(text, |item| {
        Origin::parse(item.trim_end_matches('/')).ok_or_else(|| {
            format!("`{item}` is not scheme://host[:port]; give several with commas between")
        })
    })
}

pub(super) fn server_globs(text: &str) -> Result<Vec<String>, String> {
    list(text, |item| {
        crate::globs::check_server(item).map(|()| item.to_owned())
    })
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let items = text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    items.map(parse).collect()
}
