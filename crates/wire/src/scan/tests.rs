use proptest::prelude::*;

use super::*;

/// The same, one byte at a time.
fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

proptest! {
    #[test]
    fn depth_is_what_a_slow_count_says(
        text in r#"([\[\]{}"\\]|[a-z ]{0,20}){0,200}"#,
        limit in 0usize..12,
    ) {
        let bytes = text.as_bytes();
        prop_assert_eq!(deeper_than(bytes, limit), depth(bytes) > limit);
    }

    #[test]
    fn either_byte_is_found(bytes in prop::collection::vec(0u8..6, 0..80), one in 0u8..8, other in 0u8..8) {
        let slow = bytes.iter().position(|b| *b == one || *b == other);
        prop_assert_eq!(find_either(&bytes, one, other), slow);
    }

    #[test]
    fn strings_end_where_a_slow_look_says(text in r#"([a-z"]|\\\\|\\"|é){0,40}"#, at in 0usize..4) {
        let bytes = text.as_bytes();
        let at = at.min(bytes.len());
        let (mut slow, mut escaped) = (at, false);
        let end = loop {
            match bytes.get(slow) {
                Some(b'"') => break slow + 1,
                Some(b'\\') => (slow, escaped) = (slow + 2, true),
                Some(_) => slow += 1,
                None => break bytes.len(),
            }
        };
        prop_assert_eq!(string_end(bytes, at), (end, escaped));
    }
}
