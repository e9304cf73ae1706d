//! Globs over `server:tool` (SPEC D7), where deny wins.

use super::filters::Filter;

impl Filter {
    /// Whether a named filter allows a tool. An empty `allow` allows every tool.
    pub fn allows(&self, server: &str, tool: &str) -> bool {
        let key = format!("{server}:{tool}");
        (self.allow.is_empty() || matches_any(&self.allow, &key)) && !matches_any(&self.deny, &key)
    }

    /// Whether it allows anything of a server. Patterns cannot name resources
    /// and prompts, so those follow their server.
    pub fn admits(&self, server: &str) -> bool {
        let start = format!("{server}:");
        let covered = |pattern: &String| covers(pattern, &start);
        let open = |pattern: &String| touches(pattern, &start) && !self.deny.contains(pattern);
        (self.allow.is_empty() || self.allow.iter().any(open)) && !self.deny.iter().any(covered)
    }
}

/// The filter of an entry, which allows only tools that a pattern matches.
impl Filter {
    /// Whether it grants a tool to an entry.
    pub fn grants(&self, server: &str, tool: &str) -> bool {
        !self.allow.is_empty() && self.allows(server, tool)
    }

    /// Whether it may grant any tool of a server.
    pub fn may_grant(&self, server: &str) -> bool {
        !self.allow.is_empty() && self.admits(server)
    }

    pub fn denies(&self, server: &str, tool: &str) -> bool {
        matches_any(&self.deny, &format!("{server}:{tool}"))
    }
}

/// Whether one of the globs matches a text.
pub fn matches_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

const LONGEST_SERVER: usize = 256;

/// Checks a glob over server names.
pub(crate) fn check_server(pattern: &str) -> Result<(), String> {
    if pattern.is_empty() || pattern.len() > LONGEST_SERVER {
        return Err(format!("a server's name has 1 to {LONGEST_SERVER} bytes"));
    }
    if pattern.contains(':') {
        return Err(format!(
            "`{pattern}` is not a server's name: name whole servers, with * for any characters"
        ));
    }
    Ok(())
}

/// Whether a glob matches a text. The time is the product of their lengths at
/// worst, usually the sum: a view tries each pattern on each tool.
fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // The position after the last star, and the text that it has not matched.
    let mut last_star = None;
    loop {
        let (mut signs, mut letters) = (pattern.clone(), text.clone());
        match (signs.next(), letters.next()) {
            (Some('*'), _) => {
                pattern = signs;
                last_star = Some((pattern.clone(), text.clone()));
            }
            (None, None) => return true,
            (Some(sign), Some(letter)) if sign == '?' || sign == letter => {
                (pattern, text) = (signs, letters);
            }
            // The last star matches one more character.
            _ => {
                let Some((signs, letters)) = &mut last_star else {
                    return false;
                };
                if letters.next().is_none() {
                    return false;
                }
                (pattern, text) = (signs.clone(), letters.clone());
            }
        }
    }
}

/// Whether a glob matches anything that starts like this.
fn touches(pattern: &str, start: &str) -> bool {
    rests(pattern, start).next().is_some()
}

/// Whether a glob matches everything that starts like this and goes on.
fn covers(pattern: &str, start: &str) -> bool {
    let all = |rest: &str| {
        rest.contains('*')
            && rest.chars().all(|c| matches!(c, '*' | '?'))
            && rest.matches('?').count() <= 1
    };
    rests(pattern, start).any(all)
}

/// The possible rests of a pattern after it has matched all of a text.
fn rests<'p>(pattern: &'p str, text: &str) -> impl Iterator<Item = &'p str> {
    let signs: Vec<(usize, char)> = pattern.char_indices().collect();
    let mut alive = vec![false; signs.len() + 1];
    alive[0] = true;
    skip_stars(&signs, &mut alive);
    for c in text.chars() {
        let mut next = vec![false; signs.len() + 1];
        for (at, (_, sign)) in signs.iter().enumerate() {
            if !alive[at] {
                continue;
            }
            match sign {
                '*' => next[at] = true,
                '?' => next[at + 1] = true,
                sign if *sign == c => next[at + 1] = true,
                _ => {}
            }
        }
        alive = next;
        skip_stars(&signs, &mut alive);
    }
    let start = move |at: usize| signs.get(at).map_or(pattern.len(), |(start, _)| *start);
    let left = alive.into_iter().enumerate().filter(|(_, alive)| *alive);
    left.map(move |(at, _)| &pattern[start(at)..])
}

/// A star may match nothing.
fn skip_stars(signs: &[(usize, char)], alive: &mut [bool]) {
    for (at, (_, sign)) in signs.iter().enumerate() {
        if alive[at] && *sign == '*' {
            alive[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(allow: &[&str], deny: &[&str]) -> Filter {
        let owned = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect();
        Filter {
            allow: owned(allow),
            deny: owned(deny),
        }
    }

    #[test]
    fn d7_globs_match_whole_keys() {
        for (pattern, text, fits) in [
            ("fs:*", "fs:read", true),
            ("fs:*", "fs:", true),
            ("fs:*", "fsx:read", false),
            ("*:delete*", "a:delete_all", true),
            ("*:delete*", "a:undelete", false),
            ("*delete*", "a:undelete", true),
            ("?s:re??", "fs:read", true),
            ("?s:re??", "fs:rea", false),
            ("*", "a:b:c", true),
            ("fs:read", "fs:read_file", false),
            ("**a**", "ba", true),
            ("", "", true),
            ("文?:*", "文件:读", true),
            ("fs:[ab]", "fs:a", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn d7_deny_wins_and_nothing_allowed_is_everything() {
        for (allow, deny, tool, open) in [
            (&[][..], &[][..], "fs:x", true),
            (&["fs:*"], &[], "gh:x", false),
            (&["fs:*"], &["*:delete*"], "fs:read", true),
            (&["fs:*"], &["*:delete*"], "fs:delete", false),
            (&[], &["*:delete*"], "gh:delete", false),
            (&["fs:read"], &["fs:read"], "fs:read", false),
        ] {
            let (server, name) = tool.split_once(':').unwrap();
            assert_eq!(filter(allow, deny).allows(server, name), open, "{tool}");
        }
    }

    #[test]
    fn d7_a_server_without_any_allowed_tool_is_hidden() {
        for (allow, deny, admitted) in [
            (&[][..], &[][..], true),
            (&["fs:*"], &[], true),
            (&["fs:read"], &[], true),
            (&["gh:*"], &[], false),
            (&["*:read"], &[], true),
            (&["*read"], &[], true),
            (&[], &["fs:*"], false),
            (&[], &["*"], false),
            (&[], &["f*"], false),
            (&[], &["fs:*?"], false),
            (&[], &["fs:??*"], true),
            (&[], &["fs:delete*"], true),
            (&["fs:read"], &["fs:read"], false),
            (&["fs:*"], &["*:delete*"], true),
        ] {
            let admits = filter(allow, deny).admits("fs");
            assert_eq!(admits, admitted, "{allow:?} {deny:?}");
        }
    }

    proptest! {
        /// A hidden server has no visible tool.
        #[test]
        fn d7_what_is_hidden_is_hidden_altogether(
            allow in proptest::collection::vec("[ab:*?]{1,6}", 0..3),
            deny in proptest::collection::vec("[ab:*?]{1,6}", 0..3),
            server in "[ab]{1,3}",
            tool in "[ab:]{1,4}",
        ) {
            let filter = Filter { allow, deny };
            if filter.allows(&server, &tool) {
                prop_assert!(filter.admits(&server));
            }
        }

        #[test]
        fn d7_globs_mean_what_a_plain_search_finds(pattern in "[ab:*?]{0,8}", text in "[ab:]{0,8}") {
            fn plain(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern, text) {
                    ([], []) => true,
                    ([b'*', rest @ ..], _) => {
                        plain(rest, text) || (!text.is_empty() && plain(pattern, &text[1..]))
                    }
                    ([b'?', rest @ ..], [_, after @ ..]) => plain(rest, after),
                    ([sign, rest @ ..], [c, after @ ..]) => sign == c && plain(rest, after),
                    _ => false,
                }
            }
            prop_assert_eq!(matches(&pattern, &text), plain(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
