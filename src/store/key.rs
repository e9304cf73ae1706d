//! Secrets of the program itself, and the mark by which its leftovers are
//! known: small files in the data directory, made at first start.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::{StoreError, StoreErrorKind, file};
use crate::config::Secret;

const TOKEN_PREFIX: &str = "pwa_";

/// The admin token: the one given, else the one kept in the directory, else
/// a new one that is kept. Blocks on the disk.
pub fn admin_token(directory: &Path, given: Option<&Secret>) -> Result<Secret, StoreError> {
    let fail = |kind: StoreErrorKind| kind.during("get the admin token");
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let path = directory.join("admin_token");
    kept(
        &path,
        |text| fits_a_header(text).then(|| Secret::new(text)),
        || {
            let token = random_token()?;
            Ok((token.clone(), Secret::new(token)))
        },
    )
    .map_err(fail)
}

fn fits_a_header(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// 256 random bits.
fn random_token() -> Result<String, StoreErrorKind> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreErrorKind::Unavailable(format!("no randomness: {error}")))?;
    Ok(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// The mark of this data directory on the processes started from it.
pub fn instance_id(directory: &Path) -> Result<Uuid, StoreError> {
    let path = directory.join("instance_id");
    kept(
        &path,
        |text| Uuid::try_parse(text).ok(),
        || {
            let id = Uuid::new_v4();
            Ok((id.to_string(), id))
        },
    )
    .map_err(|kind| kind.during("get the instance id"))
}

/// A value in a small file: read, or made and written.
fn kept<T>(
    path: &Path,
    read: impl Fn(&str) -> Option<T>,
    make: impl Fn() -> Result<(String, T), StoreErrorKind>,
) -> Result<T, StoreErrorKind> {
    let fail = |error| StoreErrorKind::io(path, error);
    if let Some(bytes) = file::read(path).map_err(fail)? {
        let found = std::str::from_utf8(&bytes).ok().map(str::trim);
        return found.and_then(read).ok_or_else(|| {
            StoreErrorKind::Corrupt(format!(
                "{} is damaged; remove it to have a new one made",
                path.display()
            ))
        });
    }
    let (text, value) = make()?;
    file::write_private(path, format!("{text}\n").as_bytes()).map_err(fail)?;
    Ok(value)
}
