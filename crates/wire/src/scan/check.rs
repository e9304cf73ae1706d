use super::{after_space, has_control, string_part};

/// Checks JSON text while it walks over it: once, and without recursion.
///
/// Valid is what serde_json skips without decoding it: a lone surrogate in a
/// string and a number of any size are.
pub(crate) struct JsonCheck<'a> {
    bytes: &'a [u8],
    /// No string can contain a control character.
    plain: bool,
}

impl<'a> JsonCheck<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            plain: !has_control(bytes),
        }
    }

    /// The index just after the JSON value that begins at `at`; `None` if it is
    /// not valid, or nests arrays and objects deeper than `limit`, which is at
    /// most 64.
    pub(crate) fn after_value(&self, mut at: usize, limit: usize) -> Option<usize> {
        let bytes = self.bytes;
        // A bit for each open container, the innermost lowest: set for an object.
        let (mut objects, mut depth) = (0u64, 0);
        loop {
            let byte = *bytes.get(at)?;
            at = match byte {
                b'"' => self.after_string(at + 1)?,
                b'{' | b'[' => {
                    if depth == limit {
                        return None;
                    }
                    at = after_space(bytes, at + 1);
                    // `}` and `]` come two after their openings.
                    if *bytes.get(at)? == byte + 2 {
                        at + 1
                    } else {
                        depth += 1;
                        objects = objects << 1 | u64::from(byte == b'{');
                        if byte == b'{' {
                            (_, at) = self.after_name(at)?;
                        }
                        continue;
                    }
                }
                b't' => after_word(bytes, at, b"true")?,
                b'f' => after_word(bytes, at, b"false")?,
                b'n' => after_word(bytes, at, b"null")?,
                _ => after_number(bytes, at)?,
            };
            // A value ends at `at`, and perhaps the containers around it.
            loop {
                if depth == 0 {
                    return Some(at);
                }
                at = after_space(bytes, at);
                let is_object = objects & 1 == 1;
                match (*bytes.get(at)?, is_object) {
                    (b',', _) => break,
                    (b'}', true) | (b']', false) => {
                        (at, depth, objects) = (at + 1, depth - 1, objects >> 1)
                    }
                    _ => return None,
                }
            }
            at = after_space(bytes, at + 1);
            if objects & 1 == 1 {
                (_, at) = self.after_name(at)?;
            }
        }
    }

    /// The index just after the member's name that begins at `at`, and that of
    /// the member's value.
    pub(crate) fn after_name(&self, at: usize) -> Option<(usize, usize)> {
        let bytes = self.bytes;
        if *bytes.get(at)? != b'"' {
            return None;
        }
        let end = self.after_string(at + 1)?;
        let colon = after_space(bytes, end);
        (*bytes.get(colon)? == b':').then(|| (end, after_space(bytes, colon + 1)))
    }

    fn after_string(&self, mut at: usize) -> Option<usize> {
        loop {
            let end = string_part(self.bytes, at);
            if !self.plain && has_control(&self.bytes[at..end]) {
                return None;
            }
            match *self.bytes.get(end)? {
                b'"' => return Some(end + 1),
                _ => at = after_escape(self.bytes, end + 1)?,
            }
        }
    }
}

fn after_escape(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let hex = bytes.get(at + 1..at + 5)?;
            hex.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

fn after_word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(word).then(|| at + word.len())
}

fn after_number(bytes: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(bytes.get(at) == Some(&b'-'));
    at = match *bytes.get(at)? {
        b'0' => at + 1,
        _ => after_digits(bytes, at)?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = after_digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = after_digits(bytes, at)?;
    }
    Some(at)
}

/// At least one digit.
fn after_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    (digits > 0).then_some(at + digits)
}
