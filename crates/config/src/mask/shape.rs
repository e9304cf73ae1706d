//! Recognises secrets by their shape, without a name.

/// The prefixes of tokens of well-known services.
const PREFIXES: &[&str] = &[
    "AIza", "AKIA", "ASIA", "SG.", "apify_api_", "dop_v1_", "eyJ", "figd_", "ghp_", "gho_", "ghs_",
    "ghu_", "github_pat_", "glpat-", "gsk_", "hf_", "lin_api_", "npm_", "ntn_", "pat-", "pk_live_",
    "pplx-", "pwa_", "pypi-", "rk_live_", "sbp_", "secret_", "shpat_", "sk-", "sk_live_",
    "sk_test_", "tvly-", "whsec_", "xai-", "xapp-", "xoxa-", "xoxb-", "xoxp-", "ya29.",
];

/// The least length after such a prefix.
const REST: usize = 12;
/// The least length of a word without a known prefix.
const SHORTEST: usize = 16;
/// Letters and digits outside of plain numbers.
const SUBSTANCE: usize = 14;
/// Changes between letters and digits inside the parts of a word: names have
/// one or two (`x86`, `k8s`, `v1beta1`).
const CHANGES: usize = 6;

/// A part of an address, where a token is more likely than in a text.
const SHORTEST_IN_ADDRESS: usize = 8;
const CHANGES_IN_ADDRESS: usize = 3;
/// Digits from which a number is taken for an identifier, not an amount.
const LONG_NUMBER: usize = 12;

/// Path segments that a credential follows.
const HOLDERS: &[&str] = &[
    "access_token", "api-key", "api_key", "apikey", "key", "keys", "password", "secret", "secrets",
    "session", "sessions", "token", "tokens",
];

pub(super) fn holds_secret(segment: &str) -> bool {
    HOLDERS.contains(&segment.to_ascii_lowercase().as_str())
}

/// A path in the file system, which may have any name.
pub(super) fn is_path(text: &str) -> bool {
    let drive = text.as_bytes().get(1..3).is_some_and(|two| two == b":\\");
    ["/", "./", "../", "~/", "file:"]
        .iter()
        .any(|start| text.starts_with(start))
        || drive
}

/// The checksum or commit that pins a version: `image@sha256:…`, `repo@…`.
pub(super) fn is_digest(before: &str, part: &str) -> bool {
    let hex = part.bytes().all(|b| b.is_ascii_hexdigit());
    hex && (before.ends_with("sha256:") || before.ends_with('@') || before.ends_with('#'))
}

pub(super) fn looks_secret(word: &str) -> bool {
    let known = PREFIXES.iter().any(|prefix| {
        word.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() >= REST && is_token(rest) && has_digit(rest))
    });
    known || is_random(word)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_+/=.~%".contains(&b))
}

/// Whether a whole part of an address has the shape of a token.
pub(super) fn is_token_in_address(part: &str) -> bool {
    let number = part.len() >= LONG_NUMBER && part.bytes().all(|b| b.is_ascii_digit());
    let changes = || LetterStats::of(part).changes >= CHANGES_IN_ADDRESS;
    number || looks_secret(part) || {
        part.len() >= SHORTEST_IN_ADDRESS && is_token(part) && changes()
    }
}

/// How letters and digits follow each other inside the parts of a word.
#[derive(Default)]
struct LetterStats {
    /// In parts that are no date, version or number.
    substance: usize,
    /// Between a letter and a digit.
    changes: usize,
    /// Of two letters.
    pairs: usize,
    common: usize,
    /// From a small letter to a capital one.
    humps: usize,
    parts: usize,
}

impl LetterStats {
    fn of(word: &str) -> LetterStats {
        let mut all = LetterStats::default();
        for part in word.split(|c: char| !c.is_ascii_alphanumeric()) {
            all.parts += 1;
            if part.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            all.substance += part.len();
            for two in part.as_bytes().windows(2) {
                match (two[0].is_ascii_digit(), two[1].is_ascii_digit()) {
                    (false, false) => {
                        all.pairs += 1;
                        all.common += usize::from(is_common(two));
                        let hump = two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase();
                        all.humps += usize::from(hump);
                    }
                    (true, true) => {}
                    _ => all.changes += 1,
                }
            }
        }
        all
    }
}

/// Letters and digits in an order that no name has: the two change all the
/// time, or the letters are not those that follow each other in words.
pub(super) fn is_random(word: &str) -> bool {
    if word.len() < SHORTEST || !is_token(word) {
        return false;
    }
    let letters = LetterStats::of(word);
    if letters.substance < SUBSTANCE {
        return false;
    }
    if !has_digit(word) {
        // Names are long too: only an unpronounceable one, or one with many
        // capital letters.
        let unspoken = letters.common * 20 < letters.pairs * 7;
        return letters.parts == 1 && (unspoken || letters.humps * 4 > word.len());
    }
    let hexadecimal = word.bytes().all(|b| b.is_ascii_hexdigit());
    // `lightningcss-win32-x64-msvc`: names of several parts have odd letters.
    let unspoken = if letters.parts > 1 && letters.changes < CHANGES_IN_ADDRESS {
        letters.common * 20 < letters.pairs * 6
    } else {
        letters.pairs * 2 < letters.substance || letters.common * 20 < letters.pairs * 9
    };
    hexadecimal || letters.changes >= CHANGES || unspoken
}

/// Pairs of letters that words and names of programs are made of.
const COMMON_PAIRS: &[u8] = b"\
    th he in er an re nd on en at ou ed to or it is hi es ng al le se ve ar st te nt ti ri \
    ro ra io ic co me de ce ne ea li el om ec la ta ma pr ca et ur ch il us si na lo as no \
    ol un ac sc tr pe pl po pa di ai am em ie ss ll oo ee ut ul ts ct ke ki ck rs rv fi fe \
    fo fr ge gr mp mi mo nc ns od op os ot ow qu sh so sp su sq ub ui va vi we wi ap ad ag \
    ab be bo ba bl br bu cl cr cu ex ho ib id if ig ir iv js ld my ob oc ok ov rc rd rk rm \
    rt ry tm ty um up yp xt lt ks gi hu do py da nk kn nu ux gn";

fn is_common(two: &[u8]) -> bool {
    let [first, second] = [two[0].to_ascii_lowercase(), two[1].to_ascii_lowercase()];
    COMMON_PAIRS
        .chunks(3)
        .any(|pair| pair[0] == first && pair[1] == second)
}
