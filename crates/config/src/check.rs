//! Checks of single values: names and values of environment variables and
//! headers, URLs. Messages repeat no value.

use url::Url;

use super::reference::{TextPiece, pieces};

pub(super) fn check_env_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a variable needs a name".into());
    }
    if name.contains(['=', '\0']) {
        return Err("a variable's name must not contain '=' or NUL".into());
    }
    Ok(())
}

pub(super) fn check_env_value(value: &str) -> Result<(), String> {
    if value.contains('\0') {
        return Err("must not contain a NUL character".into());
    }
    Ok(())
}

/// Headers that the connection itself sets: with a second value the two ends
/// could disagree about where a message ends.
pub(super) const FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn check_header_name(name: &str) -> Result<(), String> {
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("is not a header name: letters, digits and '-' only".into());
    }
    if FRAMING.contains(&name.to_ascii_lowercase().as_str()) {
        return Err("is set by the connection itself; remove it".into());
    }
    Ok(())
}

pub(super) fn check_header_value(value: &str) -> Result<(), String> {
    let fits = |b: u8| b == b'\t' || (b' '..=b'~').contains(&b);
    if !value.bytes().all(fits) {
        return Err("must be one line of plain ASCII characters".into());
    }
    Ok(())
}

/// An address that can be used as it is.
pub(super) fn check_url(text: &str) -> Result<Url, String> {
    let example = "write it like http://127.0.0.1:8080/mcp";
    let url = Url::parse(text).map_err(|error| format!("is not a URL ({error}); {example}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("must start with http:// or https://; {example}"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(format!("has no host; {example}"));
    }
    Ok(url)
}

/// With references inside, only the text before the first one can be checked;
/// the rest is checked when they are expanded.
pub(super) fn check_unexpanded_url(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("must not be empty: give the address of the server".into());
    }
    match pieces(text).as_slice() {
        [TextPiece::Text(text)] => check_url(text).map(drop),
        [TextPiece::Text(start), ..] => {
            let lower = start.to_ascii_lowercase();
            if lower.starts_with("http://") || lower.starts_with("https://") {
                return Ok(());
            }
            Err("must start with http://, https:// or a ${VARIABLE}".into())
        }
        _ => Ok(()),
    }
}

/// The known word a mistyped one was meant to be.
pub(super) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    known
        .filter_map(|candidate| Some((typo_distance(word, candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance of a word from the known one it may stand for; `None` if
/// it is too large.
pub fn typo_distance(word: &str, known: &str) -> Option<usize> {
    let (given, length) = (word.chars().take(COMPARED).count(), known.chars().count());
    let most = 1 + length / 5;
    // Cheap, and true of nearly all where there are many.
    if given.abs_diff(length) > most {
        return None;
    }
    let distance = distance(word, known);
    // Two words that have no character in common are not alike.
    (distance <= most && distance < given.max(length)).then_some(distance)
}

/// The message about an unknown field.
pub fn unknown_field<'w>(name: &str, known: impl Iterator<Item = &'w str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown field; did you mean {near:?}?"),
        None => "unknown field; remove it".to_owned(),
    }
}

/// Characters of a word that are compared.
const COMPARED: usize = 64;

/// Levenshtein's, in characters, without regard to case.
pub fn distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| -> Vec<char> {
        let start = text.chars().take(COMPARED);
        start.map(|c| c.to_ascii_lowercase()).collect()
    };
    let (a, b) = (lower(a), lower(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let cost = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2_characters_are_counted_and_not_bytes() {
        for (word, known) in [
            ("db", "🦄🦄"),
            ("读", "列出"),
            ("a", "b"),
            ("文件", "数据库"),
        ] {
            assert_eq!(typo_distance(word, known), None, "{word} {known}");
        }
        for (word, known) in [
            ("fils", "files"),
            ("数据", "数据库"),
            ("DB", "db1"),
            ("🦄", "🦄🦄"),
        ] {
            assert_eq!(typo_distance(word, known), Some(1), "{word} {known}");
        }
    }
}
