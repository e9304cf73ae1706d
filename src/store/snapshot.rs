//! A file of ours as a whole: a version, a checksum, the data. A snapshot
//! that does not match its checksum is not used, not even in part; it is put
//! aside for a person, and the backup takes its place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::time::Timestamp;
use super::{StoreErrorKind, file};

/// The form of the envelope and of all data in it.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Envelope<'d> {
    version: u32,
    saved_at: Timestamp,
    /// Of the bytes of `data` exactly as they stand in the file.
    sha256: String,
    data: &'d RawValue,
}

#[derive(Deserialize)]
struct AnyEnvelope<'d> {
    version: u32,
    sha256: String,
    #[serde(borrow)]
    data: &'d RawValue,
}

/// One snapshot file and its backup.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFile {
    path: PathBuf,
}

/// What was found, and what a person should hear about it.
pub(super) struct Loaded<T> {
    pub(super) data: Option<T>,
    pub(super) warnings: Vec<String>,
    /// The data is not what the file holds: it wants saving.
    pub(super) recovered: bool,
}

enum Found<T> {
    Nothing,
    Good(T),
    Bad(String),
}

impl SnapshotFile {
    pub(super) fn new(directory: &Path, name: &str) -> SnapshotFile {
        SnapshotFile {
            path: directory.join(name),
        }
    }

    fn backup(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".bak");
        name.into()
    }

    pub(super) fn load<T: DeserializeOwned>(&self) -> Result<Loaded<T>, StoreErrorKind> {
        // The directory is ours alone: nothing is going on.
        file::sweep(&self.path, Duration::ZERO);
        file::sweep(&self.backup(), Duration::ZERO);
        let mut loaded = Loaded {
            data: None,
            warnings: Vec::new(),
            recovered: false,
        };
        let complaint = match find(&self.path)? {
            Found::Good(data) => {
                loaded.data = Some(data);
                return Ok(loaded);
            }
            Found::Nothing => "is missing".to_owned(),
            Found::Bad(reason) => self.put_aside(&self.path, &reason)?,
        };
        let shown = self.path.display();
        let backup = self.backup();
        match find(&backup)? {
            Found::Good(data) => {
                loaded.data = Some(data);
                loaded.recovered = true;
                loaded.warnings.push(format!(
                    "{shown} {complaint}; going on with its backup, without the changes made after it"
                ));
            }
            Found::Nothing if complaint == "is missing" => {}
            Found::Nothing => loaded.warnings.push(format!(
                "{shown} {complaint}; there is no backup, starting empty"
            )),
            Found::Bad(reason) => {
                let also = self.put_aside(&backup, &reason)?;
                loaded.warnings.push(format!(
                    "{shown} {complaint}; its backup {also}; starting empty"
                ));
            }
        }
        Ok(loaded)
    }

    /// Renames what cannot be used, and says so.
    fn put_aside(&self, path: &Path, reason: &str) -> Result<String, StoreErrorKind> {
        let mut aside = path.to_owned().into_os_string();
        aside.push(format!(".corrupt-{}", Timestamp::now().compact()));
        let mut aside = PathBuf::from(aside);
        while aside.exists() {
            let mut longer = aside.into_os_string();
            longer.push("x");
            aside = longer.into();
        }
        fs::rename(path, &aside)
            .and_then(|()| file::sync_directory(path))
            .map_err(|error| StoreErrorKind::io(path, error))?;
        Ok(format!("{reason} and was put aside as {}", aside.display()))
    }

    /// Durable once this returns. The bytes come back for the backup.
    pub(super) fn save(&self, data: &impl Serialize) -> Result<Vec<u8>, StoreErrorKind> {
        let bytes = encode(data).map_err(|error| StoreErrorKind::io(&self.path, error))?;
        file::write_private(&self.path, &bytes)
            .map_err(|error| StoreErrorKind::io(&self.path, error))?;
        Ok(bytes)
    }

    /// A copy of its own, so that one bad block does not hit both.
    pub(super) fn save_backup(&self, bytes: &[u8]) -> Result<(), StoreErrorKind> {
        let path = self.backup();
        file::write_private(&path, bytes).map_err(|error| StoreErrorKind::io(&path, error))
    }
}

fn encode(data: &impl Serialize) -> io::Result<Vec<u8>> {
    let data = RawValue::from_string(serde_json::to_string_pretty(data)?)?;
    let envelope = Envelope {
        version: VERSION,
        saved_at: Timestamp::now(),
        sha256: digest(&data),
        data: &data,
    };
    let mut bytes = serde_json::to_vec(&envelope)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn digest(data: &RawValue) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(data.get()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Fails for what a person must decide: a file we may not read, or one that
/// a newer Portway wrote.
fn find<T: DeserializeOwned>(path: &Path) -> Result<Found<T>, StoreErrorKind> {
    let bytes = match file::read(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Found::Nothing),
        Err(error) => return Err(StoreErrorKind::io(path, error)),
    };
    if bytes.is_empty() {
        return Ok(Found::Bad("is empty".into()));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Found::Bad("holds nothing but NUL bytes".into()));
    }
    let envelope: AnyEnvelope<'_> = match serde_json::from_slice(&bytes) {
        Ok(envelope) => envelope,
        Err(error) => return Ok(Found::Bad(format!("is damaged ({error})"))),
    };
    if envelope.version > VERSION {
        return Err(StoreErrorKind::Corrupt(format!(
            "{} was written by a newer Portway (format {}, this one reads {VERSION}); \
             update Portway, or move the file away",
            path.display(),
            envelope.version
        )));
    }
    if envelope.version < VERSION {
        return Ok(Found::Bad(format!(
            "has the unknown format {}",
            envelope.version
        )));
    }
    if digest(envelope.data) != envelope.sha256 {
        return Ok(Found::Bad("does not match its checksum".into()));
    }
    match serde_json::from_str(envelope.data.get()) {
        Ok(data) => Ok(Found::Good(data)),
        Err(error) => Ok(Found::Bad(format!(
            "has data that makes no sense ({error})"
        ))),
    }
}
