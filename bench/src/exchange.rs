//! Just enough HTTP/1.1 for two programs that know each other.

use anyhow::{Context, bail};

/// Where the parts of one message are in a buffer.
pub struct Parts {
    pub body: std::ops::Range<usize>,
    /// Where the next message begins.
    pub end: usize,
}

/// The message at the start of `buffer`, if it has come whole.
pub fn whole(buffer: &[u8]) -> anyhow::Result<Option<Parts>> {
    let Some(head) = find(buffer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let body = head + 4;
    if let Some(length) = header(&buffer[..head], "content-length") {
        let end = body + length.parse::<usize>().context("content-length")?;
        return Ok((buffer.len() >= end).then_some(Parts {
            body: body..end,
            end,
        }));
    }
    if header(&buffer[..head], "transfer-encoding").is_some() {
        // Nothing follows the last chunk before the next request.
        let end = buffer.len();
        return Ok(buffer.ends_with(b"\r\n0\r\n\r\n").then(|| Parts {
            body: body..end - 7,
            end,
        }));
    }
    Ok(Some(Parts {
        body: body..body,
        end: body,
    }))
}

pub fn status(buffer: &[u8]) -> anyhow::Result<u16> {
    let digits = buffer.get(9..12).context("no status line")?;
    Ok(std::str::from_utf8(digits)?.parse()?)
}

/// A header's value; names are compared without regard to case.
pub fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    for line in head.split(|b| *b == b'\n').skip(1) {
        let Some(value) = line
            .get(name.len()..)
            .and_then(|rest| rest.strip_prefix(b":"))
        else {
            continue;
        };
        if line[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return std::str::from_utf8(value).ok().map(str::trim);
        }
    }
    None
}

/// The JSON in a body that may be an event stream.
pub fn json(body: &[u8]) -> anyhow::Result<&[u8]> {
    if body.first() == Some(&b'{') {
        return Ok(body);
    }
    let Some(data) = body
        .split(|b| *b == b'\n')
        .filter_map(|line| line.strip_prefix(b"data: "))
        .rfind(|data| data.first() == Some(&b'{'))
    else {
        bail!("no JSON in {:?}", String::from_utf8_lossy(body));
    };
    Ok(data.trim_ascii_end())
}

pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
