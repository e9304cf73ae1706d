//! Byte loops over JSON text that is too hot, or too hostile, for a parser.

mod check;
#[cfg(test)]
mod tests;

pub(super) use check::JsonCheck;

/// Whether arrays and objects nest deeper than `limit`. Needs no valid JSON
/// and no recursion, and stops at the first level too many.
pub(super) fn deeper_than(bytes: &[u8], limit: usize) -> bool {
    if opens_at_most(bytes, limit) {
        return false;
    }
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Counting vectorises, and most messages open so few containers that their
/// ends do not matter.
fn opens_at_most(bytes: &[u8], limit: usize) -> bool {
    let mut count = 0;
    // 128 fits the u8 sums that the compiler packs.
    bytes.chunks(128).all(|chunk| {
        // `[` and `{` differ in one bit.
        let sum: u8 = chunk.iter().map(|b| u8::from(b | 0x20 == b'{')).sum();
        count += usize::from(sum);
        count <= limit
    })
}

/// The index of the first byte from `at` on that is not layout.
pub(super) fn after_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The index just after the value that begins at `at`, in valid JSON.
pub(super) fn after_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = after_string(bytes, at + 1),
            b'{' | b'[' => (at, depth) = (at + 1, depth + 1),
            b'}' | b']' => (at, depth) = (at + 1, depth.saturating_sub(1)),
            // A number or a word; between other values only layout.
            _ if depth == 0 => return at + scalar(&bytes[at..]),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn scalar(bytes: &[u8]) -> usize {
    let ends = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// The index just after the string whose opening quote lies before `at`, and
/// whether there is an escape in it.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut escaped = false;
    loop {
        at = string_part(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return (at + 1, escaped),
            Some(_) => (at, escaped) = (at + 2, true),
            None => return (bytes.len(), escaped),
        }
    }
}

/// The index of the first quote or backslash from `at` on, or the end. Strings
/// are mostly short, and long ones often have an escape in each line: only from
/// the second hundred bytes on a call is worth its price.
fn string_part(bytes: &[u8], mut at: usize) -> usize {
    for _ in 0..2 {
        let Some(eight) = bytes.get(at..).unwrap_or_default().first_chunk() else {
            break;
        };
        match first_special(u64::from_le_bytes(*eight)) {
            8 => at += 8,
            place => return at + place,
        }
    }
    for _ in 0..3 {
        let Some(many) = bytes.get(at..).unwrap_or_default().first_chunk::<32>() else {
            break;
        };
        if holds_special(many) {
            let (words, _) = many.as_chunks();
            let place = |eight: &[u8; 8]| first_special(u64::from_le_bytes(*eight));
            let clear = words.iter().take_while(|eight| place(eight) == 8).count();
            return at + clear * 8 + words.get(clear).map_or(0, place);
        }
        at += many.len();
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}

/// Whether there is a quote or a backslash; without an early end, because that
/// vectorises.
fn holds_special(bytes: &[u8; 32]) -> bool {
    let found = |sum, byte: &u8| sum | u8::from(*byte == b'"') | u8::from(*byte == b'\\');
    bytes.iter().fold(0, found) != 0
}

/// The index of the first quote or backslash in eight bytes; 8 if none.
fn first_special(eight: u64) -> usize {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    // The top bit of each byte that is zero; above the first, perhaps others.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let of = |byte: u8| eight ^ u64::from_le_bytes([byte; 8]);
    let hits = zeros(of(b'"')) | zeros(of(b'\\'));
    hits.trailing_zeros() as usize / 8
}

/// Whether there is a control character, layout included. Counts, because
/// that vectorises.
fn has_control(bytes: &[u8]) -> bool {
    // 128 fits the u8 sums that the compiler packs.
    let count = |chunk: &[u8]| -> u8 { chunk.iter().map(|b| u8::from(*b < b' ')).sum() };
    bytes.chunks(128).any(|chunk| count(chunk) > 0)
}

fn after_string(bytes: &[u8], at: usize) -> usize {
    string_end(bytes, at).0
}

/// Whether JSON text already fits on one line. A raw newline cannot stand
/// inside a JSON string, so any newline is layout.
pub(super) fn is_one_line(json: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', json).is_none()
}

/// Appends valid JSON text on one line: as it is when it has no newline,
/// else without any whitespace between tokens.
pub(super) fn push_one_line(json: &[u8], out: &mut Vec<u8>) {
    if is_one_line(json) {
        out.extend_from_slice(json);
        return;
    }
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                let end = after_string(json, at + 1);
                out.extend_from_slice(&json[at..end]);
                at = end;
            }
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
}
