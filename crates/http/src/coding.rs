//! Content codings (RFC 9110, section 12.5.3): selects the one a client prefers.

use http::{HeaderMap, HeaderName, header};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Gzip,
    Identity,
}

impl Coding {
    /// In the order that breaks a tie: the smallest first.
    pub(crate) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Gzip, Coding::Identity];

    /// The value of `Content-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
            Coding::Identity => "identity",
        }
    }

    /// The suffix of a file in this coding in the build.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
            Coding::Identity => "",
        }
    }
}

/// `identity` is acceptable even if the client does not name it, and any coding
/// that it names is better.
const UNMENTIONED_IDENTITY: f32 = 0.0005;

/// The codings that the client accepts, the best first. Never empty: if the
/// client refuses all of them, `identity` is used, which every client can read.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<Coding> {
    let weights = Coding::ALL.map(|coding| (coding, weight(headers, coding)));
    let mut accepted: Vec<_> = weights.into_iter().filter(|(_, q)| *q > 0.0).collect();
    accepted.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    if accepted.is_empty() {
        return vec![Coding::Identity];
    }
    accepted.into_iter().map(|(coding, _)| coding).collect()
}

fn weight(headers: &HeaderMap, coding: Coding) -> f32 {
    let named = match coding {
        Coding::Gzip => quality(headers, &header::ACCEPT_ENCODING, &["gzip", "x-gzip"]),
        other => quality(headers, &header::ACCEPT_ENCODING, &[other.name()]),
    };
    let unnamed = match coding {
        Coding::Identity => UNMENTIONED_IDENTITY,
        Coding::Brotli | Coding::Gzip => 0.0,
    };
    named
        .or_else(|| quality(headers, &header::ACCEPT_ENCODING, &["*"]))
        .unwrap_or(unnamed)
}

/// The weight that a list such as `text/html, */*;q=0.8` gives to a word, or
/// `None` if it does not name it. An invalid weight counts as 1.
pub(super) fn quality(headers: &HeaderMap, name: &HeaderName, words: &[&str]) -> Option<f32> {
    items(headers, name).find_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        let word = parts.next()?;
        words.iter().find(|one| word.eq_ignore_ascii_case(one))?;
        let weight = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then_some(value)
        });
        let weight = weight.and_then(|value| value.trim().parse::<f32>().ok());
        let weight = weight.filter(|q| q.is_finite()).unwrap_or(1.0);
        Some(weight.clamp(0.0, 1.0))
    })
}

/// The items of a list in all lines of a header.
pub(super) fn items<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).into_iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h7_a_client_gets_the_coding_it_prefers() {
        use Coding::{Brotli, Gzip, Identity};
        let cases: [(&str, &[Coding]); 12] = [
            ("gzip, deflate, br, zstd", &[Brotli, Gzip, Identity]),
            ("gzip", &[Gzip, Identity]),
            ("x-gzip", &[Gzip, Identity]),
            ("BR;q=0.1, gzip;q=0.2", &[Gzip, Brotli, Identity]),
            ("br;q=0, gzip", &[Gzip, Identity]),
            ("br;q=0.0, gzip ; q = 0.000", &[Identity]),
            ("*", &[Brotli, Gzip, Identity]),
            ("gzip;q=0.5, *;q=0", &[Gzip]),
            ("*;q=0.5, gzip;q=0.3", &[Brotli, Identity, Gzip]),
            ("identity, gzip;q=0.5", &[Identity, Gzip]),
            ("identity;q=0", &[Identity]),
            ("", &[Identity]),
        ];
        for (given, wanted) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, given.parse().unwrap());
            assert_eq!(accepted(&headers), wanted, "{given}");
        }
        assert_eq!(accepted(&HeaderMap::new()), [Identity]);
        let mut lines = HeaderMap::new();
        lines.append(header::ACCEPT_ENCODING, "gzip".parse().unwrap());
        lines.append(header::ACCEPT_ENCODING, "br".parse().unwrap());
        assert_eq!(accepted(&lines), [Brotli, Gzip, Identity]);
    }
}
