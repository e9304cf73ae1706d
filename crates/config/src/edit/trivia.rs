//! The text between the values of a parsed text: blanks, line ends, comments.
//! Nothing is checked here; the parser has done it.

/// The first position from `at` on that is neither blank nor comment.
pub(super) fn skip(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = at;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => at += 1,
            (Some(b'/'), Some(b'/')) => at = line_end(text, at),
            (Some(b'/'), Some(b'*')) => at = block_end(text, at),
            _ => return at,
        }
    }
}

/// The comma behind the item that ends at `at`.
pub(super) fn comma(text: &str, at: usize) -> Option<usize> {
    let next = skip(text, at);
    (text.as_bytes().get(next) == Some(&b',')).then_some(next)
}

/// The rest of a line that has nothing more but comments: its end, and the
/// start of the next line. A comment that begins on the line may end on a later
/// one; `whole` includes that comment.
pub(super) fn line_tail(text: &str, at: usize, whole: bool) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = at;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b' ' | b'\t'), _) => at += 1,
            (Some(b'/'), Some(b'/')) => at = line_end(text, at),
            (Some(b'/'), Some(b'*')) => {
                let end = block_end(text, at);
                if text[at..end].contains('\n') && !whole {
                    return None;
                }
                at = end;
            }
            (Some(b'\r'), Some(b'\n')) => return Some((at, at + 2)),
            (Some(b'\n'), _) => return Some((at, at + 1)),
            _ => return None,
        }
    }
}

/// The start of the line of `at`, if there are only blanks before it.
pub(super) fn own_line(text: &str, at: usize) -> Option<usize> {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    is_blank(&text[start..at]).then_some(start)
}

/// The blanks a line begins with.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    blanks(&text[start..at])
}

/// The blanks that a text begins with, up to the end of the line.
pub(super) fn blanks(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches([' ', '\t']).len()]
}

pub(super) fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
    end - usize::from(text[at..end].ends_with('\r'))
}

fn block_end(text: &str, at: usize) -> usize {
    text[at + 2..].find("*/").map_or(text.len(), |i| at + i + 4)
}
