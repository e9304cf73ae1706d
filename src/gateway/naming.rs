//! Names for models (SPEC D2): `mcp_<server>_<tool>`, only letters, digits,
//! `_` and `-`, at most 64 of them.
//!
//! A name follows from its own server and tool alone, so no server that comes
//! or goes renames another's tools. The plain form is therefore kept for keys
//! that nobody else can ever spell the same way; every other key gets a
//! suffix, `_` and seven base36 characters of a hash, the first a digit:
//!
//! - a character outside the alphabet was replaced;
//! - it is longer than 64 and was cut;
//! - the server's name has a `_`: `a_b` with `c` and `a` with `b_c` would
//!   meet, and the one whose server has none keeps the plain form;
//! - it ends as a suffix does, and could be made to look like another's.
//!
//! Hashes are short: should two keys meet all the same, each of them gets a
//! longer one, and neither the name they met in.

use std::borrow::Cow;
use std::collections::HashMap;

use sha2::{Digest, Sha256};

const LONGEST: usize = 64;
const SHORT: usize = 7;
const LONG: usize = 13;

/// A name as it would be if nobody else were there, which is nearly always
/// how it is.
pub fn name(server: &str, own: &str) -> String {
    let plain = plain(server, own);
    if is_unmistakable(server, own, &plain) {
        return plain;
    }
    suffixed(plain, server, own, SHORT)
}

/// A name that somebody else gave, as models' APIs take it: as it is if it
/// fits, else replaced where it does not, cut, and with a suffix. `allowed`
/// allows ASCII alone.
pub fn fitted(name: &str, allowed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if (1..=LONGEST).contains(&name.len()) && name.chars().all(&allowed) {
        return Cow::Borrowed(name);
    }
    let plain = name.replace(|c| !allowed(c), "_");
    Cow::Owned(suffixed(plain, "", name, SHORT))
}

/// How every name of a server's starts that was not cut.
pub fn start(server: &str) -> String {
    plain(server, "")
}

/// The names of many keys, in their order; all different. Only a key that
/// should meet another in both hashes has none.
pub fn names<'a>(keys: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = keys
        .clone()
        .map(|(server, own)| Some(name(server, own)))
        .collect();
    let meeting = repeated(&names);
    if meeting.is_empty() {
        return names;
    }
    for ((server, own), name) in keys.zip(&mut names) {
        if name.as_ref().is_some_and(|name| meeting.contains_key(name)) {
            *name = Some(suffixed(plain(server, own), server, own, LONG));
        }
    }
    let meeting = repeated(&names);
    for name in &mut names {
        if name.as_ref().is_some_and(|name| meeting.contains_key(name)) {
            *name = None;
        }
    }
    names
}

fn repeated(names: &[Option<String>]) -> HashMap<String, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    for name in names.iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    let more = counts.into_iter().filter(|(_, count)| *count > 1);
    more.map(|(name, count)| (name.to_owned(), count)).collect()
}

fn plain(server: &str, own: &str) -> String {
    let mut plain = format!("mcp_{server}_{own}");
    if !plain.chars().all(is_allowed) {
        plain = plain.replace(|c| !is_allowed(c), "_");
    }
    plain
}

pub fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether no other key can have this plain name, nor any suffixed one.
fn is_unmistakable(server: &str, own: &str, plain: &str) -> bool {
    server.chars().all(|c| is_allowed(c) && c != '_')
        && own.chars().all(is_allowed)
        && plain.len() <= LONGEST
        && !ends_in_suffix(plain)
}

fn ends_in_suffix(name: &str) -> bool {
    let Some((_, end)) = name.rsplit_once('_') else {
        return false;
    };
    let base36 = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    matches!(end.len(), SHORT | LONG)
        && end.starts_with(|c: char| c.is_ascii_digit())
        && end.bytes().all(base36)
}

fn suffixed(mut name: String, server: &str, own: &str, width: usize) -> String {
    // All ASCII by now.
    name.truncate(LONGEST - 1 - width);
    name.push('_');
    name.push_str(&hash(server, own, width));
    name
}

/// Base36 digits of a hash of the key, the first one decimal.
fn hash(server: &str, own: &str, width: usize) -> String {
    let mut hasher = Sha256::new();
    hasher.update(server.as_bytes());
    hasher.update([0]);
    hasher.update(own.as_bytes());
    let digest = hasher.finalize();
    let mut number = digest[..16]
        .iter()
        .fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let mut digit = |base: u32| {
        let digit = (number % u128::from(base)) as u32;
        number /= u128::from(base);
        char::from_digit(digit, base).expect("a remainder is a digit")
    };
    std::iter::once(10)
        .chain(std::iter::repeat(36))
        .take(width)
        .map(&mut digit)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn d2_names_that_fit_are_plain() {
        for (server, tool, visible) in [
            ("fs", "read_file", "mcp_fs_read_file"),
            ("my-server", "a", "mcp_my-server_a"),
            ("fs", "_private", "mcp_fs__private"),
            ("gh", "list_commits", "mcp_gh_list_commits"),
            ("gh", "Since2024", "mcp_gh_Since2024"),
        ] {
            assert_eq!(name(server, tool), visible);
        }
    }

    #[test]
    fn d2_names_that_do_not_fit_get_a_hash() {
        let long = "x".repeat(200);
        for (server, tool, start) in [
            ("fs", "read.file", "mcp_fs_read_file_"),
            ("文件", "读", "mcp______"),
            ("a_b", "c", "mcp_a_b_c_"),
            ("acme_", "status", "mcp_acme__status_"),
            ("fs", &long, "mcp_fs_xxxxx"),
            ("fs", "v_1234567", "mcp_fs_v_1234567_"),
            ("a", "b_1aaaaaaaaaaaa", "mcp_a_b_1aaaaaaaaaaaa_"),
            ("with space", "t", "mcp_with_space_t_"),
        ] {
            let visible = name(server, tool);
            assert!(visible.starts_with(start), "{visible}");
            assert!(ends_in_suffix(&visible), "{visible}");
            assert!(visible.len() <= LONGEST, "{visible}");
            assert_eq!(visible, name(server, tool));
        }
    }

    /// Names reach prompts, permissions and logs of others: they must not
    /// change with a release.
    #[test]
    fn d2_hashes_stay_as_they_are() {
        assert_eq!(name("a_b", "c"), "mcp_a_b_c_3d4x8cz");
    }

    #[test]
    fn c3_ambiguous_names_both_stay_callable() {
        let keys = [
            ("a", "b_c"),
            ("a_b", "c"),
            ("acme_", "status"),
            ("acme", "_status"),
        ];
        let names = names(keys.into_iter());
        let unique: BTreeSet<_> = names.iter().flatten().collect();
        assert_eq!(unique.len(), keys.len(), "{names:?}");
    }

    #[test]
    fn keys_that_meet_in_the_hash_get_longer_ones() {
        // Two entries of one key stand in for a collision.
        let met = names([("a.b", "c"), ("x", "y"), ("a.b", "c")].into_iter());
        assert_eq!(met, [None, Some("mcp_x_y".into()), None]);
        let long = suffixed(plain("a.b", "c"), "a.b", "c", LONG);
        assert!(ends_in_suffix(&long) && long != name("a.b", "c"));
    }

    /// Servers and tools that meet often: few letters, many separators.
    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ab_.-]{1,5}",
            "[a-z0-9_]{1,8}_[0-9][a-z0-9]{6}",
            "\\PC{1,80}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn d2_names_are_valid_unique_and_stable(
            keys in proptest::collection::btree_set((part(), part()), 1..40),
            more in proptest::collection::btree_set((part(), part()), 0..40),
        ) {
            let named = |keys: &BTreeSet<(String, String)>| -> BTreeMap<(String, String), String> {
                let pairs = keys.iter().map(|(server, tool)| (server.as_str(), tool.as_str()));
                let names = names(pairs);
                keys.iter().cloned().zip(names.into_iter().map(Option::unwrap)).collect()
            };
            let few = named(&keys);
            let unique: BTreeSet<&String> = few.values().collect();
            prop_assert_eq!(unique.len(), few.len());
            for name in few.values() {
                prop_assert!(name.len() <= LONGEST && name.chars().all(is_allowed));
            }
            let many = named(&keys.union(&more).cloned().collect());
            for (key, name) in &few {
                prop_assert_eq!(&many[key], name);
            }
        }

        #[test]
        fn d2_plain_names_say_where_they_belong(server in "[a-zA-Z0-9-]{1,20}", tool in "[a-z_]{1,20}") {
            let name = name(&server, &tool);
            let (found, rest) = name.strip_prefix("mcp_").unwrap().split_once('_').unwrap();
            prop_assert_eq!((found, rest), (server.as_str(), tool.as_str()));
        }
    }
}
