//! References as other clients write them.

use super::super::reference::name_length;

/// Replaces every `open…}` of a text by `change`; unknown ones stay.
pub(super) fn between(
    text: &str,
    open: &str,
    change: &mut dyn FnMut(&str) -> Option<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let inner = &rest[start + open.len()..];
        let Some(end) = inner.find('}') else { break };
        match change(&inner[..end]) {
            Some(new) => {
                out.push_str(&rest[..start]);
                out.push_str(&new);
                rest = &inner[end + 1..];
            }
            None => {
                out.push_str(&rest[..start + open.len()]);
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

/// `$NAME` as `${NAME}`.
pub(super) fn bare_dollars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before);
        let name = &after[..name_length(after).unwrap_or_default()];
        if name.is_empty() {
            out.push('$');
        } else {
            out.push_str(&format!("${{{name}}}"));
        }
        rest = &after[name.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b8_bare_dollars_are_references_where_a_name_follows() {
        for (text, expected) in [
            ("$A", "${A}"),
            ("${A}", "${A}"),
            ("x$A_1-$B$", "x${A_1}-${B}$"),
            ("$5 $ $$C é$D", "$5 $ $${C} é${D}"),
            ("${A:-d}$B", "${A:-d}${B}"),
            ("", ""),
        ] {
            assert_eq!(bare_dollars(text), expected);
        }
    }

    #[test]
    fn b8_what_is_not_known_between_the_signs_stays() {
        let mut change = |inner: &str| inner.strip_prefix("env:").map(|x| format!("${{{x}}}"));
        for (text, expected) in [
            ("a${env:B}c", "a${B}c"),
            ("${x}${env:B}", "${x}${B}"),
            ("${${env:B}", "${${B}"),
            ("${env:B", "${env:B"),
        ] {
            assert_eq!(between(text, "${", &mut change), expected);
        }
    }
}
