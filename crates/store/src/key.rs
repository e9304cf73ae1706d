//! Portway's own secrets, and the id that marks its leftover processes: small
//! files in the data directory, created at the first start.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::{AtPath, DuringOperation, StoreErrorKind, StoreResult, file};
use config::Secret;

const TOKEN_PREFIX: &str = "pwa_";
/// 256 bits in base64; Portway writes no shorter secret.
const SECRET_LENGTH: usize = 43;
/// The shortest token that is accepted in a file.
pub(super) const SHORTEST: usize = 32;

/// The admin token: the given one, else the one in the directory, else a new
/// one that is saved. Blocks on the disk.
pub fn admin_token(directory: &Path, given: Option<&Secret>) -> StoreResult<Secret> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let read = |text: &str| is_token(text).then(|| Secret::new(text));
    let token = kept(&directory.join("admin_token"), read, random_token);
    token.during("get the admin token")
}

/// Replaces the saved token with a new one. Blocks on the disk.
pub fn replace_admin_token(directory: &Path) -> StoreResult<Secret> {
    let path = directory.join("admin_token");
    let replaced = random_token().and_then(|token| {
        write_line(&path, &token)?;
        Ok(Secret::new(token))
    });
    replaced.during("replace the admin token")
}

/// The token of the process that uses the directory, if it is there and readable.
pub fn known_admin_token(directory: &Path) -> Option<Secret> {
    let bytes = file::read_alone(&directory.join("admin_token")).ok()??;
    let text = std::str::from_utf8(&bytes).ok()?.trim();
    is_token(text).then(|| Secret::new(text))
}

/// The secret that seals data which clients keep for us: the given one, else
/// the one in the directory, else a new one that is saved.
pub fn session_secret(directory: &Path, given: Option<&Secret>) -> StoreResult<Secret> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let read = |text: &str| (text.len() >= SECRET_LENGTH).then(|| Secret::new(text));
    let secret = kept(&directory.join("session_secret"), read, random_text);
    secret.during("get the secret that seals sessions")
}

/// Whether the token fits into a header and cannot be guessed.
fn is_token(text: &str) -> bool {
    text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn random_token() -> Result<String, StoreErrorKind> {
    Ok(format!("{TOKEN_PREFIX}{}", random_text()?))
}

/// 256 random bits.
pub(super) fn random_bits() -> Result<[u8; 32], StoreErrorKind> {
    let mut bits = [0_u8; 32];
    let filled = getrandom::fill(&mut bits);
    filled.map_err(|error| StoreErrorKind::Unavailable(format!("no randomness: {error}")))?;
    Ok(bits)
}

pub(super) fn random_text() -> Result<String, StoreErrorKind> {
    Ok(URL_SAFE_NO_PAD.encode(random_bits()?))
}

/// The id by which processes started from this data directory are marked.
pub fn instance_id(directory: &Path) -> StoreResult<Uuid> {
    let read = |text: &str| Uuid::try_parse(text).ok();
    let make = || Ok(Uuid::new_v4().to_string());
    kept(&directory.join("instance_id"), read, make).during("get the instance id")
}

/// A value in a small file: read, or generated and written.
fn kept<T>(
    path: &Path,
    read: impl Fn(&str) -> Option<T>,
    make: impl Fn() -> Result<String, StoreErrorKind>,
) -> Result<T, StoreErrorKind> {
    let bytes = match file::read_alone(path).at(path)? {
        Some(bytes) => bytes,
        None => {
            let text = make()?;
            write_line(path, &text)?;
            text.into_bytes()
        }
    };
    let found = std::str::from_utf8(&bytes).ok().map(str::trim);
    found.and_then(read).ok_or_else(|| {
        StoreErrorKind::Corrupt(format!(
            "{} is damaged or too short; remove it to have a new one made",
            path.display()
        ))
    })
}

fn write_line(path: &Path, text: &str) -> Result<(), StoreErrorKind> {
    file::write_private(path, format!("{text}\n").as_bytes()).at(path)
}
