//! Recognises names whose value is a secret.

/// Parts of a name that mark its value as a secret.
const SECRET_PARTS: &[&str] = &[
    "authorization", "bearer", "cookie", "cred", "dsn", "jwt", "key", "pass", "private", "pwd",
    "secret", "signature", "token",
];

/// Whole words that mark a secret and are too short, or too common, to look for
/// inside a word: `path`, `author`, `obsession`.
const SECRET_WORDS: &[&str] = &[
    "auth", "otp", "pat", "pin", "pw", "sas", "session", "sessionid", "sid", "sig",
];

/// Words that hold one of those parts and mean something else.
const ORDINARY_WORDS: &[&str] = &[
    "bypass", "compass", "credit", "credits", "hotkey", "keyboard", "keycloak", "keymap",
    "keyword", "keywords", "monkey", "passive", "passthrough", "tokenizer", "valkey",
];

/// Last words of a name that describe the location or size of a secret, not the
/// secret itself: `--token-file`, `--key-length`.
const ABOUT_A_SECRET: &[&str] = &[
    "count", "dir", "file", "length", "limit", "mode", "name", "path", "size", "timeout", "ttl",
    "type",
];

/// Whether a name denotes a secret: `API_KEY`, `githubToken`, `sig`.
pub(crate) fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = words(&lower).collect();
    let humps = humps(name);
    let about = humps.len() > 1 && humps.last().is_some_and(|w| ABOUT_A_SECRET.contains(&&**w));
    let counted = humps.iter().any(|word| word == "max") && lower.contains("tokens");
    if about || counted {
        return false;
    }
    lower == "code"
        || humps.iter().any(|word| SECRET_WORDS.contains(&&**word))
        || words.iter().any(|word| {
            SECRET_WORDS.contains(word)
                || !ORDINARY_WORDS.contains(word)
                    && SECRET_PARTS.iter().any(|part| word.contains(part))
        })
}

/// Whether a name is a secret's own, so that `name:value` is no image and its
/// tag: `password`, `X-Api-Key`, and not `token-server` or `keydb`.
pub(super) fn is_secret_itself(name: &str) -> bool {
    let humps = humps(name);
    let last = humps.last().map_or("", |word| word);
    let ends = ["password", "secret", "token", "apikey", "credentials"];
    is_secret(name)
        && (SECRET_PARTS.contains(&last)
            || SECRET_WORDS.contains(&last)
            || ["creds", "passwd", "passphrase", "passcode"].contains(&last)
            || ends.iter().any(|end| last.ends_with(end)))
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// The words of a name in lower case, also of one in camel case.
fn humps(name: &str) -> Vec<String> {
    let mut all = Vec::new();
    for word in words(name) {
        let mut from = 0;
        for at in 1..word.len() {
            let two = &word.as_bytes()[at - 1..=at];
            if two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase() {
                all.push(word[from..at].to_ascii_lowercase());
                from = at;
            }
        }
        all.push(word[from..].to_ascii_lowercase());
    }
    all
}
