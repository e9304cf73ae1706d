//! Names for models (SPEC D2): `mcp_<server>_<tool>`, only letters, digits,
//! `_` and `-`, at most 64 of them.
//!
//! The plain form transliterates both parts. A tool has it unless it is longer
//! than 64 or another present tool has the same one: then the tool whose
//! server has the shortest name keeps it, and of two such servers the first in
//! alphabetical order. The others get the qualified form, which ends in `_`
//! and seven base36 characters of a hash of the full key, the first a digit.
//! The qualified form does not depend on other tools, and stays callable while
//! its tool has the plain name ([`qualified`]).

mod spelling;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

pub(crate) use spelling::is_allowed;
use spelling::spelled;

const LONGEST: usize = 64;
const SHORT: usize = 7;
const LONG: usize = 13;

/// The name of one of many tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolName {
    pub name: String,
    /// The position of the tool that has the plain name instead.
    pub yields_to: Option<usize>,
}

/// A tool's name where no other present tool has the same one, which is
/// nearly always so.
pub fn name(server: &str, own: &str) -> String {
    let plain = plain(server, own);
    if plain.len() <= LONGEST {
        return plain;
    }
    suffixed(plain, &hash(server, own, 0, SHORT))
}

/// The name that a tool has where another one keeps the plain name.
pub fn qualified(server: &str, own: &str) -> String {
    suffixed(plain(server, own), &hash(server, own, 0, SHORT))
}

/// A tool's name where some names are taken for other reasons: the one it has,
/// or else the first of its qualified ones that is free.
pub fn unless(name: String, (server, own): (&str, &str), taken: impl Fn(&str) -> bool) -> String {
    if !taken(&name) {
        return name;
    }
    let plain = plain(server, own);
    let free = qualifications((server, own), &plain).find(|name| !taken(name));
    free.expect("fewer names are taken than there are")
}

/// Whether a name ends as a qualified one does.
pub(crate) fn is_qualified(name: &str) -> bool {
    let Some((_, end)) = name.rsplit_once('_') else {
        return false;
    };
    let base36 = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    end.len() == SHORT && end.starts_with(|c: char| c.is_ascii_digit()) && end.bytes().all(base36)
}

/// A name of another origin as models' APIs take it: as it is if it fits, else
/// with characters replaced, cut, and with a suffix. `allowed` allows ASCII
/// alone.
pub fn fitted(name: &str, allowed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if (1..=LONGEST).contains(&name.len()) && name.chars().all(&allowed) {
        return Cow::Borrowed(name);
    }
    let plain = name.replace(|c| !allowed(c), "_");
    Cow::Owned(suffixed(plain, &hash("", name, 0, SHORT)))
}

/// The start of every name of a server that was not cut.
pub fn start(server: &str) -> String {
    plain(server, "")
}

/// The names of many keys, in their order; all different, and the same in
/// whatever order the keys come. No key may be given twice.
pub fn names<'a>(keys: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<ToolName> {
    let keys: Vec<(&str, &str)> = keys.collect();
    let plain: Vec<String> = keys
        .iter()
        .map(|(server, own)| plain(server, own))
        .collect();
    let mut keepers: HashMap<&str, usize> = HashMap::with_capacity(keys.len());
    for (at, plain) in plain.iter().enumerate() {
        if plain.len() > LONGEST {
            continue;
        }
        let keeper = keepers.entry(plain).or_insert(at);
        if precedence(keys[at]) < precedence(keys[*keeper]) {
            *keeper = at;
        }
    }
    let keeper = |at: usize| keepers.get(plain[at].as_str()).copied();
    let mut others: Vec<usize> = (0..keys.len())
        .filter(|at| keeper(*at) != Some(*at))
        .collect();
    others.sort_unstable_by_key(|at| precedence(keys[*at]));
    let mut further: HashMap<usize, String> = HashMap::with_capacity(others.len());
    let mut taken: HashSet<String> = HashSet::with_capacity(others.len());
    for at in others {
        let free = |name: &String| !keepers.contains_key(name.as_str()) && !taken.contains(name);
        let name = qualifications(keys[at], &plain[at]).find(free);
        let name = name.expect("fewer names are taken than there are");
        taken.insert(name.clone());
        further.insert(at, name);
    }
    let named = |at: usize| {
        let qualified = further.remove(&at);
        ToolName {
            yields_to: keeper(at).filter(|_| qualified.is_some()),
            name: qualified.unwrap_or_else(|| plain[at].clone()),
        }
    };
    (0..keys.len()).map(named).collect()
}

/// Of tools with one plain name, the least keeps it. Of one server's own, that is
/// the tool that is spelled that way already.
fn precedence<'a>((server, own): (&'a str, &'a str)) -> (usize, &'a str, bool, &'a str) {
    let changed = !own.chars().all(is_allowed);
    (server.chars().count(), server, changed, own)
}

/// The qualified form, and others for a tool whose qualified form another one
/// has as its plain name, by chance or on purpose.
fn qualifications<'a>(
    (server, own): (&'a str, &'a str),
    plain: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let short = std::iter::once((0, SHORT));
    let long = (1_u32..).map(|number| (number, LONG));
    let all = short.chain(long);
    all.map(move |(number, width)| suffixed(plain.to_owned(), &hash(server, own, number, width)))
}

fn plain(server: &str, own: &str) -> String {
    format!("mcp_{}_{}", spelled(server), spelled(own))
}

fn suffixed(mut name: String, hash: &str) -> String {
    // All ASCII by now.
    name.truncate(LONGEST - 1 - hash.len());
    name.push('_');
    name.push_str(hash);
    name
}

/// Base36 digits of a hash of the key, the first one decimal.
fn hash(server: &str, own: &str, number: u32, width: usize) -> String {
    let mut hasher = Sha256::new();
    hasher.update(server.as_bytes());
    hasher.update([0]);
    hasher.update(own.as_bytes());
    if number > 0 {
        hasher.update([0]);
        hasher.update(number.to_be_bytes());
    }
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
mod tests;
