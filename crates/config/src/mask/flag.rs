//! The arguments of a command: finds the values of flags that take a secret.

use super::super::reference::has_references;
use super::shape::{is_path, looks_secret};
use super::text::{NamedValue, in_text};
use super::{HiddenRange, is_name, name, secret};

/// Programs whose `-p` is no password. Options of their own come before the
/// server's: `npx -p package`.
const LAUNCHERS: &[&str] = &[
    "bun", "bunx", "cp", "deno", "docker", "install", "mkdir", "npm", "npx", "pipx", "pnpm",
    "pnpx", "podman", "rmdir", "tsx", "uv", "uvx", "yarn",
];

/// Words that programs put behind a single dash: `-port 80` is no password.
const P_WORDS: &[&str] = &[
    "package", "page", "parallel", "params", "path", "pattern", "pid", "pidfile", "platform",
    "plugin", "plugins", "pool", "port", "prefix", "preset", "pretty", "preview", "print", "prod",
    "production", "profile", "project", "prompt", "protocol", "provider", "proxy", "public",
    "publish", "pull", "python",
];

/// Words before a flag's name that make it a switch without a value.
const SWITCHES: &[&str] = &["no", "disable", "skip", "without"];

/// The kind of value that a flag takes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FlagValue {
    #[default]
    Anything,
    Secret,
    /// `Name: value`.
    Header,
    /// `NAME=value`.
    Variable,
    /// `user:password`.
    User,
    /// `name=value`.
    Cookie,
    /// The value of `-p`: a password in most programs.
    Password,
    /// A text of several commands.
    Script,
}

impl FlagValue {
    pub(super) fn after(flag: &str) -> FlagValue {
        if has_references(flag) {
            return FlagValue::Anything;
        }
        let name = flag.trim_start_matches('-').to_ascii_lowercase();
        match (flag, name.as_str()) {
            ("-H", _) => FlagValue::Header,
            ("-b", _) => FlagValue::Cookie,
            ("-c" | "-lc" | "-ec" | "-Command" | "--command", _) => FlagValue::Script,
            ("-e", _) | (_, "env" | "build-arg" | "set-env" | "env-var") => FlagValue::Variable,
            ("-u", _) | (_, "user" | "username" | "userpwd" | "proxy-user" | "login") => {
                FlagValue::User
            }
            ("-p" | "-P", _) => FlagValue::Password,
            (_, name) if name.ends_with("header") || name.ends_with("headers") => FlagValue::Header,
            (_, name) if SWITCHES.contains(&name.split('-').next().unwrap_or_default()) => {
                FlagValue::Anything
            }
            _ if name.len() > 1 && name::is_secret(flag) => FlagValue::Secret,
            _ => FlagValue::Anything,
        }
    }
}

/// The position in the arguments of a command.
#[derive(Default)]
pub(super) struct ArgumentScanner {
    pub(super) expected: FlagValue,
    /// Whether the next flag is one of a launcher.
    launching: bool,
}

impl ArgumentScanner {
    pub(super) fn of(command: &str) -> ArgumentScanner {
        let program = command.rsplit('/').next().unwrap_or_default();
        ArgumentScanner {
            expected: FlagValue::Anything,
            launching: LAUNCHERS.contains(&program),
        }
    }

    /// The meaning of the next word, given whether it is a flag.
    pub(super) fn next(&mut self, is_flag: bool) -> FlagValue {
        let expected = std::mem::take(&mut self.expected);
        if is_flag {
            // The word after a flag that takes a secret is a secret, whatever
            // its shape.
            return match expected {
                FlagValue::Secret => expected,
                _ => FlagValue::Anything,
            };
        }
        let launchers = self.launching && expected == FlagValue::Password;
        self.launching &= expected != FlagValue::Anything;
        if launchers {
            FlagValue::Script
        } else {
            expected
        }
    }

    pub(super) fn argument(&mut self, arg: &str) -> Vec<HiddenRange> {
        let is_flag = is_flag(arg);
        let expected = self.next(is_flag);
        let mut hidden = Vec::new();
        if is_flag {
            let pair = arg.split_once('=').filter(|(flag, _)| is_name(flag));
            hidden = match (attached(arg), pair) {
                (Some(hidden), _) => hidden,
                (None, Some((flag, value))) => {
                    in_value(FlagValue::after(flag), value, flag.len() + 1, 0)
                }
                (None, None) => {
                    if is_name(arg) {
                        self.expected = FlagValue::after(arg);
                    }
                    in_text(arg, 0, 0)
                }
            };
        }
        match (expected, NamedValue::of(arg)) {
            (FlagValue::Anything, Some(pair)) if pair.is_secret() => {
                // There is no shell: everything that follows is the value.
                let value = pair.value.trim_start();
                hidden.extend(secret(arg.len() - value.len(), value));
            }
            (FlagValue::Anything, _) if is_flag => {}
            _ => hidden.extend(in_value(expected, arg, 0, 0)),
        }
        hidden
    }
}

pub(super) fn is_flag(arg: &str) -> bool {
    let name = arg.trim_start_matches('-');
    (1..=2).contains(&(arg.len() - name.len()))
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The hidden parts of a flag's value that begins at `start`.
pub(super) fn in_value(
    expected: FlagValue,
    value: &str,
    start: usize,
    depth: usize,
) -> Vec<HiddenRange> {
    let in_text = || in_text(value, start, depth);
    let rest = |from: usize| {
        let rest = value[from..].trim_start();
        secret(start + value.len() - rest.len(), rest)
    };
    match expected {
        FlagValue::Anything | FlagValue::Script => in_text(),
        FlagValue::Secret => secret(start, value),
        FlagValue::Header => match value.find([':', '=']) {
            Some(at) if value[at..].starts_with("://") => in_text(),
            Some(at) if is_name(&value[..at]) && !looks_secret(value) => rest(at + 1),
            _ => secret(start, value),
        },
        FlagValue::Variable => match value.split_once('=') {
            Some((name, text)) if is_name(name) => vec![HiddenRange {
                range: start + name.len() + 1..start + value.len(),
                setting: !name::is_secret(name) && !looks_secret(text),
            }],
            _ => in_text(),
        },
        FlagValue::User => match value.split_once(':') {
            Some((_, password)) if password.starts_with("//") => in_text(),
            Some((user, password)) if !(is_number(user) && is_number(password)) => {
                rest(user.len() + 1)
            }
            _ => in_text(),
        },
        FlagValue::Cookie => match value.find('=') {
            Some(at) if is_name(&value[..at]) => rest(at + 1),
            _ => in_text(),
        },
        FlagValue::Password if is_ordinary_p(value) => in_text(),
        FlagValue::Password => secret(start, value),
    }
}

/// The values of `-p` that are no password: a path, a package, a mapping of
/// ports, a version.
fn is_ordinary_p(value: &str) -> bool {
    let numbers = value
        .bytes()
        .all(|b| b.is_ascii_digit() || b":./-".contains(&b));
    is_path(value) || value.starts_with('@') || value.contains("==") || {
        numbers && value.contains([':', '.'])
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A value that stands right behind a flag's letter: `-HName: value`,
/// `-pPassword1`, `-ume:password`; `None` where none does.
pub(super) fn attached(arg: &str) -> Option<Vec<HiddenRange>> {
    let (letter, rest) = arg.split_at_checked(2)?;
    let name = rest.split(['=', ':']).next().unwrap_or_default();
    let expected = match letter {
        "-H" if rest.contains(':') => FlagValue::Header,
        "-p" if !is_p_word(name) => FlagValue::Password,
        "-u" if rest.len() > name.len() && rest[name.len()..].starts_with(':') => FlagValue::User,
        "-e" if rest.contains('=') && rest.starts_with(|c: char| c.is_ascii_uppercase()) => {
            FlagValue::Variable
        }
        "-b" if rest.contains('=') && name::is_secret(name) => FlagValue::Cookie,
        _ => return None,
    };
    Some(in_value(expected, rest, 2, 0))
}

/// Whether `-p…` is a flag of several letters, or several switches: `-pv`.
fn is_p_word(rest: &str) -> bool {
    let switches = rest.len() < 3 && rest.bytes().all(|b| b.is_ascii_lowercase());
    let word = |word: &&str| {
        let more = rest.strip_prefix(&word[1..]);
        more.is_some_and(|more| more.is_empty() || more.starts_with(['-', '_']))
    };
    switches || P_WORDS.iter().any(word)
}
