//! A definition as JSON: for people, with every secret covered, and for
//! files, as it is.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::redact::secret_name;
use super::reference::{Piece, has_references, pieces};
use super::spec::{DEFAULT_TIMEOUT, MASK, ServerSpec, Target};

/// Names of users are shorter, tokens longer.
const TOKEN_LENGTH: usize = 16;

/// The `config` object of the API: every field said, secrets covered.
pub fn view(spec: &ServerSpec) -> Value {
    let mut object = Map::new();
    transport(spec, &mut object);
    match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            object.insert("command".into(), command.as_str().into());
            object.insert("args".into(), masked_args(args).into());
            object.insert("env".into(), covered(env, mask_value));
            if let Some(cwd) = cwd {
                object.insert("cwd".into(), cwd.as_str().into());
            }
        }
        Target::Http { url, headers } | Target::Sse { url, headers } => {
            object.insert("url".into(), mask_url(url).into_owned().into());
            object.insert("headers".into(), covered(headers, mask_value));
        }
    }
    object.insert("enabled".into(), spec.enabled.into());
    object.insert("timeout".into(), millis(spec));
    object.insert("era".into(), spec.era.as_str().into());
    if matches!(spec.target, Target::Stdio { .. }) {
        object.insert("containment".into(), spec.containment.as_str().into());
    }
    object.insert("isolation".into(), spec.isolation.as_str().into());
    Value::Object(object)
}

/// What is run or reached, in one line and without secrets: for errors, logs
/// and tables.
pub fn title(spec: &ServerSpec) -> String {
    match &spec.target {
        Target::Stdio { command, args, .. } => {
            let mut words = vec![command.clone()];
            words.extend(masked_args(args));
            words.join(" ")
        }
        Target::Http { url, .. } | Target::Sse { url, .. } => mask_url(url).into_owned(),
    }
}

/// What a file holds: everything as written, defaults left out. Claude Code
/// skips a definition that has only `transport`, others want `transport`, so
/// both stand there (SPEC B1).
pub fn plain(spec: &ServerSpec) -> Map<String, Value> {
    let mut object = Map::new();
    transport(spec, &mut object);
    let map = |map: &IndexMap<String, String>| {
        Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect(),
        )
    };
    match &spec.target {
        Target::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            object.insert("command".into(), command.as_str().into());
            if !args.is_empty() {
                object.insert("args".into(), args.clone().into());
            }
            if !env.is_empty() {
                object.insert("env".into(), map(env));
            }
            if let Some(cwd) = cwd {
                object.insert("cwd".into(), cwd.as_str().into());
            }
        }
        Target::Http { url, headers } | Target::Sse { url, headers } => {
            object.insert("url".into(), url.as_str().into());
            if !headers.is_empty() {
                object.insert("headers".into(), map(headers));
            }
        }
    }
    if !spec.enabled {
        object.insert("enabled".into(), false.into());
    }
    if spec.timeout != DEFAULT_TIMEOUT {
        object.insert("timeout".into(), millis(spec));
    }
    for (field, word, default) in [
        ("era", spec.era.as_str(), "auto"),
        ("containment", spec.containment.as_str(), "auto"),
        ("isolation", spec.isolation.as_str(), "shared"),
    ] {
        if word != default {
            object.insert(field.into(), word.into());
        }
    }
    object
}

fn transport(spec: &ServerSpec, object: &mut Map<String, Value>) {
    let kind = spec.transport().as_str();
    object.insert("type".into(), kind.into());
    object.insert("transport".into(), kind.into());
}

fn millis(spec: &ServerSpec) -> Value {
    u64::try_from(spec.timeout.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}

fn covered(map: &IndexMap<String, String>, mask: fn(&str) -> String) -> Value {
    Value::Object(
        map.iter()
            .map(|(name, value)| (name.clone(), mask(value).into()))
            .collect(),
    )
}

/// The value of a variable or a header. Only references may be seen, alone
/// or behind the word of an authentication scheme; a default inside one is a
/// value like any other.
pub(super) fn mask_value(value: &str) -> String {
    let mut shown = String::new();
    for (i, piece) in pieces(value).into_iter().enumerate() {
        match piece {
            Piece::Reference { name, default } => shown.push_str(&reference(name, default)),
            Piece::Text(text) if i == 0 && is_scheme(text) && text.len() < value.len() => {
                shown.push_str(text);
            }
            Piece::Text(_) => return MASK.into(),
        }
    }
    shown
}

fn reference(name: &str, default: Option<&str>) -> String {
    match default {
        None => format!("${{{name}}}"),
        Some("") => format!("${{{name}:-}}"),
        Some(_) => format!("${{{name}:-{MASK}}}"),
    }
}

/// `Bearer `, `token `: one short word and a space.
fn is_scheme(text: &str) -> bool {
    ["basic ", "bearer ", "token ", "apikey ", "api-key "]
        .contains(&text.to_ascii_lowercase().as_str())
}

/// An address with its credentials and secret-looking parameters covered;
/// done on the text, which may hold references and then is no URL yet.
pub(super) fn mask_url(url: &str) -> Cow<'_, str> {
    let (address, fragment) = cut(url, '#');
    let (address, query) = cut(address, '?');
    let masked_query: String = query
        .strip_prefix('?')
        .map(|query| {
            let parts: Vec<Cow<'_, str>> = query.split('&').map(mask_parameter).collect();
            format!("?{}", parts.join("&"))
        })
        .unwrap_or_default();
    let masked = format!("{}{masked_query}{fragment}", mask_userinfo(address));
    match masked == url {
        true => Cow::Borrowed(url),
        false => Cow::Owned(masked),
    }
}

fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

fn mask_parameter(parameter: &str) -> Cow<'_, str> {
    match parameter.split_once('=') {
        Some((name, value)) if secret_name(name) && !value.is_empty() => {
            format!("{name}={}", mask_value(value)).into()
        }
        _ => parameter.into(),
    }
}

fn mask_userinfo(address: &str) -> Cow<'_, str> {
    let start = address.find("://").map_or(0, |i| i + 3);
    let end = address[start..]
        .find('/')
        .map_or(address.len(), |i| start + i);
    let Some(at) = address[start..end].rfind('@').map(|i| start + i) else {
        return address.into();
    };
    let (user, password) = cut(&address[start..at], ':');
    // `ghp_…@` and `ghp_…:x-oauth-basic@`: a long name is a token.
    let user = match user.len() < TOKEN_LENGTH {
        true => user.to_owned(),
        false => mask_value(user),
    };
    let password = match password.strip_prefix(':') {
        Some(password) => format!(":{}", mask_value(password)),
        None => String::new(),
    };
    format!("{}{user}{password}{}", &address[..start], &address[at..]).into()
}

/// Arguments, with what follows `--token`, `--api-key=` and the like covered,
/// and the credentials in addresses.
pub(super) fn masked_args(args: &[String]) -> Vec<String> {
    let mut after_flag = false;
    args.iter()
        .map(|arg| {
            let value_of_flag = std::mem::replace(&mut after_flag, false);
            if !arg.starts_with('-') {
                return match value_of_flag && !arg.is_empty() {
                    true => mask_value(arg),
                    false => mask_address(arg),
                };
            }
            match arg.split_once('=') {
                Some((flag, value)) if secret_flag(flag) && !value.is_empty() => {
                    format!("{flag}={}", mask_value(value))
                }
                Some(_) => mask_address(arg),
                None => {
                    after_flag = secret_flag(arg);
                    arg.clone()
                }
            }
        })
        .collect()
}

fn mask_address(arg: &str) -> String {
    match arg.contains("://") {
        true => mask_url(arg).into_owned(),
        false => arg.to_owned(),
    }
}

pub(super) fn secret_flag(flag: &str) -> bool {
    flag.starts_with("--") && !has_references(flag) && secret_name(flag.trim_start_matches('-'))
}

#[cfg(test)]
mod tests;
