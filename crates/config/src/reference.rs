//! `${VAR}` and `${VAR:-default}` inside a text (SPEC B2). Every other form
//! (`$VAR`, `${env:VAR}`, a reference inside a default) is plain text.

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPiece<'t> {
    Text(&'t str),
    Reference {
        name: &'t str,
        default: Option<&'t str>,
    },
}

/// The text cut into pieces, in order, nothing left out.
pub(super) fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let mut found = Vec::new();
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find("${").map(|i| at + i) {
        match reference_at(&text[open..]) {
            Some((piece, length)) => {
                if plain_from < open {
                    found.push(TextPiece::Text(&text[plain_from..open]));
                }
                found.push(piece);
                at = open + length;
                plain_from = at;
            }
            None => at = open + skip(&text[open..]),
        }
    }
    if plain_from < text.len() {
        found.push(TextPiece::Text(&text[plain_from..]));
    }
    found
}

pub(super) fn has_references(text: &str) -> bool {
    pieces(text)
        .iter()
        .any(|piece| matches!(piece, TextPiece::Reference { .. }))
}

/// The reference at the start of `text`, and its length.
pub(super) fn reference_at(text: &str) -> Option<(TextPiece<'_>, usize)> {
    let inner = text.strip_prefix("${")?;
    let name = &inner[..name_length(inner)?];
    let rest = &inner[name.len()..];
    if rest.starts_with('}') {
        let default = None;
        return Some((TextPiece::Reference { name, default }, 2 + name.len() + 1));
    }
    let default = rest.strip_prefix(":-")?;
    let default = &default[..default.find('}')?];
    if default.contains("${") {
        return None;
    }
    let length = 2 + name.len() + 2 + default.len() + 1;
    let default = Some(default);
    Some((TextPiece::Reference { name, default }, length))
}

/// The length to skip after a `${` that opens no reference. A default with
/// references is skipped whole: expanding its inside would be nesting.
fn skip(text: &str) -> usize {
    let inner = &text[2..];
    let nested = name_length(inner).is_some_and(|length| inner[length..].starts_with(":-"));
    if !nested {
        return 2;
    }
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' if i > 0 && bytes[i - 1] == b'$' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Whether the text is a valid name in `${…}`.
pub(super) fn is_name(text: &str) -> bool {
    name_length(text) == Some(text.len())
}

/// The length of the name that a text begins with.
pub(super) fn name_length(text: &str) -> Option<usize> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let length = text.bytes().take_while(|b| fits(*b)).count();
    let first = text.bytes().next()?;
    (length > 0 && !first.is_ascii_digit()).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b2_only_two_forms_are_references() {
        let plain = [
            "",
            "$HOME",
            "$",
            "${",
            "${}",
            "${1A}",
            "${A",
            "${A:-x",
            "${env:A}",
            "${A-x}",
            "${A:=x}",
            "${A B}",
            "${A:-${B}}",
            "${A:-x${B:-y}z}",
            "{A}",
            "$ {A}",
        ];
        for text in plain {
            assert!(!has_references(text), "{text}");
        }
        let reference = |name, default| TextPiece::Reference { name, default };
        assert_eq!(pieces("${A}"), [reference("A", None)]);
        assert_eq!(pieces("${A:-}"), [reference("A", Some(""))]);
        assert_eq!(pieces("${_a1:-b c}"), [reference("_a1", Some("b c"))]);
        assert_eq!(
            pieces("x$${A}${B:-:-}y"),
            [
                TextPiece::Text("x$"),
                reference("A", None),
                reference("B", Some(":-")),
                TextPiece::Text("y"),
            ]
        );
        assert_eq!(
            pieces("${A:-${B}}${C}"),
            [TextPiece::Text("${A:-${B}}"), reference("C", None)]
        );
        assert_eq!(
            pieces("${${A}"),
            [TextPiece::Text("${"), reference("A", None)]
        );
    }
}
