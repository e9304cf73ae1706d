//! Characters that a model reads and a person does not see, in JSON text,
//! plain or escaped.

use std::borrow::Cow;
use std::ops::Range;

/// JSON text without characters of the tag block (U+E0000 to U+E007F): they
/// have no glyph, and spell whole sentences to a model.
pub fn without_tags(json: &str) -> Cow<'_, str> {
    // Nearly every text: all tag characters start with this byte.
    if !json.as_bytes().contains(&0xF3) && !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut out = String::new();
    let mut copied = 0;
    for (c, place) in JsonChars(json, 0) {
        if is_tag(c) {
            out.push_str(&json[copied..place.start]);
            copied = place.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// Whether JSON text holds an invisible character other than layout.
/// Joiners and variation selectors of ordinary writing and emoji are fine.
pub fn has_hidden_chars(json: &str) -> bool {
    let plain = json.is_ascii() && !json.contains("\\u");
    !plain && JsonChars(json, 0).any(|(c, _)| is_hidden(c))
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0000}'..='\u{E007F}')
}

fn is_hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        // Soft hyphen, zero width space, word joiner and kin, byte order mark.
        '\u{AD}' | '\u{180E}' | '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' => true,
        // Marks that turn the direction of writing.
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
        // Tags, and selectors of glyph variants far beyond any script's need.
        '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}' => true,
        c => c.is_control(),
    }
}

/// The characters of JSON text, each with its range; an escape counts as one character.
struct JsonChars<'a>(&'a str, usize);

impl Iterator for JsonChars<'_> {
    type Item = (char, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.1;
        let rest = &self.0[start..];
        let first = rest.chars().next()?;
        let (c, length) = match first {
            '\\' => escape(rest),
            c => (c, c.len_utf8()),
        };
        self.1 += length;
        Some((c, start..self.1))
    }
}

/// The character that an escape stands for, and its length. An incomplete
/// escape stands for itself.
fn escape(text: &str) -> (char, usize) {
    if let Some(high) = unit(text) {
        if let Some(c) = char::from_u32(u32::from(high)) {
            return (c, 6);
        }
        let pair = [high, unit(&text[6..]).unwrap_or_default()];
        return match char::decode_utf16(pair).next() {
            Some(Ok(c)) => (c, 12),
            _ => ('\u{FFFD}', 6),
        };
    }
    // A backslash escapes the next character.
    let next = text[1..].chars().next();
    ('\\', 1 + next.map_or(0, char::len_utf8))
}

fn unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn t_c1_tag_characters_are_taken_out() {
        for (json, wanted) in [
            ("plain \u{200b} zero width stays", None),
            ("a\u{E0041}b\u{E007F}c", Some("abc")),
            (r"a\udb40\udc41b\uDB40\uDC7Fc\uDb40\uDc01", Some("abc")),
            (r"a\\udb40\udc41", None),
            (r"a\udb40\udc80", None),
            (r"a\udb40", None),
            (r"\\\udb40\udc41\", Some(r"\\\")),
            ("\u{1F600}\u{F3}", None),
        ] {
            assert_eq!(without_tags(json), wanted.unwrap_or(json));
        }
    }

    #[test]
    fn t_c1_what_cannot_be_seen_is_noticed() {
        for (json, hidden) in [
            ("plain", false),
            (r"line\nbreak\ttab \u00e9", false),
            ("👩\u{200D}👧 ✔\u{FE0F} می\u{200C}خواهم", false),
            ("a\u{200B}b", true),
            (r"a\u200bb", true),
            (r"a\\u200bb", false),
            ("\u{202E}", true),
            (r"\u001b[31m", true),
            ("\u{85}", true),
            (r"\udb40\udc41", true),
            ("\u{E0101}", true),
            (r"\ud83d\ude00", false),
        ] {
            assert_eq!(has_hidden_chars(json), hidden, "{json:?}");
        }
    }

    proptest! {
        #[test]
        fn texts_stay_valid_and_lose_tags_alone(text in "(\\PC|[\u{E0000}-\u{E007F}]|\\\\|\"){0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            let kept: String = text.chars().filter(|c| !is_tag(*c)).collect();
            let read: String = serde_json::from_str(&without_tags(&json)).unwrap();
            prop_assert_eq!(read, kept);
        }
    }
}
