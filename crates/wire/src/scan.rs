//! Byte loops over JSON text that is too hot, or too hostile, for a parser.

#[cfg(test)]
mod tests;

const LANES: usize = 16;

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
/// whether there is an escape in it. Strings are mostly short: eight bytes at
/// a time.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut escaped = false;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let here = match rest.first_chunk() {
            Some(eight) => match first_special(u64::from_le_bytes(*eight)) {
                8 => {
                    at += 8;
                    continue;
                }
                place => place,
            },
            None => match rest.iter().position(|b| matches!(b, b'"' | b'\\')) {
                Some(place) => place,
                None => return (bytes.len(), escaped),
            },
        };
        if rest[here] == b'"' {
            return (at + here + 1, escaped);
        }
        escaped = true;
        at += here + 2;
    }
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

fn after_string(bytes: &[u8], at: usize) -> usize {
    string_end(bytes, at).0
}

/// The first of two bytes, sixteen at a time.
pub(super) fn find_either(bytes: &[u8], one: u8, other: u8) -> Option<usize> {
    let hit = |b: &u8| *b == one || *b == other;
    let (blocks, _) = bytes.as_chunks::<LANES>();
    let clean = blocks
        .iter()
        .take_while(|block| {
            !block
                .iter()
                .fold(false, |any, b| any | (*b == one) | (*b == other))
        })
        .count()
        * LANES;
    bytes[clean..].iter().position(hit).map(|at| clean + at)
}

/// Whether JSON text already fits on one line. A raw newline cannot stand
/// inside a JSON string, so any newline is layout.
pub(super) fn is_one_line(json: &[u8]) -> bool {
    find_either(json, b'\n', b'\r').is_none()
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
