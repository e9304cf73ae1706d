//! What stands between the values of a text that has been parsed: blanks,
//! line ends, comments. Nothing here checks; the parser has.

/// The first place from `at` on that is neither blank nor comment.
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

/// The rest of a line that holds nothing more but comments.
pub(super) struct LineTail {
    /// Behind the last comment.
    pub(super) content_end: usize,
    /// Behind the line's end.
    pub(super) next_line: usize,
}

pub(super) fn line_tail(text: &str, at: usize) -> Option<LineTail> {
    let bytes = text.as_bytes();
    let mut content_end = at;
    let mut at = at;
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b' ' | b'\t'), _) => at += 1,
            (Some(b'/'), Some(b'/')) => {
                at = line_end(text, at);
                content_end = at;
            }
            (Some(b'/'), Some(b'*')) => {
                let end = block_end(text, at);
                if text[at..end].contains('\n') {
                    return None;
                }
                at = end;
                content_end = at;
            }
            (Some(b'\r'), Some(b'\n')) => return Some(tail(content_end, at + 2)),
            (Some(b'\n'), _) => return Some(tail(content_end, at + 1)),
            _ => return None,
        }
    }
}

fn tail(content_end: usize, next_line: usize) -> LineTail {
    LineTail {
        content_end,
        next_line,
    }
}

/// Where the line of `at` starts, if nothing but blanks stand before it.
pub(super) fn own_line(text: &str, at: usize) -> Option<usize> {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    is_blank(&text[start..at]).then_some(start)
}

/// The blanks a line begins with.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = &text[start..at];
    let length = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..length]
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
