//! What servers say about their use, joined for a client of several.

use std::fmt::Write;

use serde_json::value::RawValue;

use wire::invisible::without_tags;

/// Bytes of one server's text, and of all of them together: a model reads
/// them with every conversation. Many servers share the whole evenly.
const ONE: usize = 4 << 10;
const ALL: usize = 16 << 10;

const CUT: &str = " […]";

/// The texts under the names of their servers, after `intro`.
pub(super) fn joined<'a>(
    intro: &str,
    servers: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Option<Box<RawValue>> {
    let said = |(server, text): (&'a str, Option<&'a str>)| {
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        Some((server, text?))
    };
    let texts: Vec<(&str, &str)> = servers.filter_map(said).collect();
    let share = ONE.min(ALL / texts.len().max(1));
    let mut all = intro.to_owned();
    for (server, text) in texts {
        let gap = if all.is_empty() { "" } else { "\n\n" };
        let short = &text[..text.floor_char_boundary(share)];
        let cut = if short.len() < text.len() { CUT } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(all, "{gap}# Server {server}\n{short}{cut}");
    }
    (!all.is_empty()).then(|| quoted(&all)).flatten()
}

/// As JSON, without what a model would read and a person cannot see.
fn quoted(text: &str) -> Option<Box<RawValue>> {
    let json = serde_json::Value::from(text).to_string();
    RawValue::from_string(without_tags(&json).into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(servers: &[(&str, Option<&str>)]) -> Option<String> {
        let joined = joined("", servers.iter().copied())?;
        serde_json::from_str(joined.get()).unwrap()
    }

    #[test]
    fn i2_each_servers_words_stand_under_its_name() {
        assert_eq!(text(&[]), None);
        assert_eq!(text(&[("a", None), ("b", Some(" \n"))]), None);
        let both = text(&[
            ("a", Some("Use a.")),
            ("b", None),
            ("c", Some("\nUse c.\n")),
        ]);
        assert_eq!(both.unwrap(), "# Server a\nUse a.\n\n# Server c\nUse c.");
        let ours = joined("Ours.", [("a", Some("Use \u{e0041}a."))].into_iter()).unwrap();
        assert_eq!(ours.get(), r##""Ours.\n\n# Server a\nUse a.""##);
    }

    #[test]
    fn i2_instructions_are_bounded_and_every_server_has_its_share() {
        let long = "é".repeat(ALL);
        let one = text(&[("a", Some(&long))]).unwrap();
        assert!(one.len() <= ONE + 32 && one.ends_with(CUT), "{}", one.len());
        let names: Vec<String> = (0..100).map(|number| format!("s{number}")).collect();
        let many: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), Some(&*long)))
            .collect();
        let all = text(&many).unwrap();
        assert!(all.len() <= ALL + 100 * 32, "{}", all.len());
        assert!(
            names
                .iter()
                .all(|name| all.contains(&format!("# Server {name}\né")))
        );
    }
}
