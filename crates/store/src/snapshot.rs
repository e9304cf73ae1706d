//! A snapshot file: a version, a checksum, the data. A snapshot that does not
//! match its checksum is not used, not even in part; it is put aside for a
//! person, and the backup replaces it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::digest::hex;
use super::state::StoreState;
use super::time::Timestamp;
use super::{AtPath, StoreErrorKind, file};

/// The form of the envelope and of all data in it.
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct SnapshotEnvelope<'d> {
    version: u32,
    /// Rises with every save; a journal names the one that it continues.
    #[serde(default)]
    generation: u64,
    /// The checksum of the bytes of `data` exactly as they are in the file.
    sha256: String,
    #[serde(borrow)]
    data: &'d RawValue,
}

/// One snapshot file and its backup.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFile {
    path: PathBuf,
}

/// The data of a snapshot, with warnings for a person. Empty without a file.
#[derive(Default)]
pub(super) struct LoadedSnapshot {
    pub(super) data: StoreState,
    pub(super) generation: u64,
    /// The size of the file in bytes.
    pub(super) length: u64,
    pub(super) warnings: Vec<String>,
    /// The data differs from the file's content, and should be saved.
    pub(super) recovered: bool,
}

enum SnapshotContents {
    Nothing,
    Good(LoadedSnapshot),
    Bad(String),
}

impl SnapshotFile {
    pub(super) fn new(directory: &Path, name: &str) -> SnapshotFile {
        SnapshotFile {
            path: directory.join(name),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn backup(&self) -> PathBuf {
        self.path.with_added_extension("bak")
    }

    pub(super) fn load(&self) -> Result<LoadedSnapshot, StoreErrorKind> {
        // This process holds the directory, so no write is running.
        file::sweep(&self.path, Duration::ZERO);
        file::sweep(&self.backup(), Duration::ZERO);
        let complaint = match find(&self.path)? {
            SnapshotContents::Good(good) => return Ok(good),
            SnapshotContents::Nothing => "is missing".to_owned(),
            SnapshotContents::Bad(reason) => put_aside(&self.path, &reason)?,
        };
        let shown = self.path.display();
        let backup = self.backup();
        let mut loaded = LoadedSnapshot::default();
        match find(&backup)? {
            SnapshotContents::Good(good) => {
                loaded = good;
                loaded.recovered = true;
                loaded
                    .warnings
                    .push(format!("{shown} {complaint}; going on with its backup"));
            }
            SnapshotContents::Nothing if complaint == "is missing" => {}
            SnapshotContents::Nothing => loaded.warnings.push(format!(
                "{shown} {complaint}; there is no backup, starting empty"
            )),
            SnapshotContents::Bad(reason) => {
                let also = put_aside(&backup, &reason)?;
                loaded.warnings.push(format!(
                    "{shown} {complaint}; its backup {also}; starting empty"
                ));
            }
        }
        Ok(loaded)
    }

    /// Whether a text has the form of a snapshot, with any data.
    pub(super) fn is_envelope(bytes: &[u8]) -> bool {
        serde_json::from_slice::<SnapshotEnvelope<'_>>(bytes).is_ok()
    }

    /// The data from the file or else from its backup; changes nothing.
    pub(super) fn look(&self) -> Result<LoadedSnapshot, StoreErrorKind> {
        for path in [self.path.clone(), self.backup()] {
            if let SnapshotContents::Good(good) = find(&path)? {
                return Ok(good);
            }
        }
        Ok(LoadedSnapshot::default())
    }

    /// The faults of the file and of its backup; changes nothing.
    pub(super) fn faults(&self) -> Vec<String> {
        let fault = |path: &Path| match find(path) {
            Ok(SnapshotContents::Bad(reason)) => Some(format!("{} {reason}", path.display())),
            Ok(_) => None,
            Err(kind) => Some(kind.to_string()),
        };
        let paths = [self.path.clone(), self.backup()];
        paths.iter().filter_map(|path| fault(path)).collect()
    }

    /// The first half of a save: the snapshot file is still unchanged. Also
    /// returns the bytes, for the backup.
    pub(super) fn prepare(
        &self,
        generation: u64,
        data: &StoreState,
    ) -> Result<(file::Temporary, Vec<u8>), StoreErrorKind> {
        let prepared = || {
            let bytes = encode(generation, data)?;
            Ok((file::prepare(&self.path, &bytes)?, bytes))
        };
        prepared().at(&self.path)
    }

    /// The second half. Durable once this returns; if it fails, the outcome is
    /// unknown.
    pub(super) fn place(&self, prepared: file::Temporary) -> Result<(), StoreErrorKind> {
        prepared.place(&self.path).at(&self.path)
    }

    /// Writes a separate copy, so that one bad block does not damage both.
    pub(super) fn save_backup(&self, bytes: &[u8]) -> Result<(), StoreErrorKind> {
        let path = self.backup();
        file::write_private(&path, bytes).at(&path)
    }
}

/// Renames a file that cannot be used, and returns a warning.
fn put_aside(path: &Path, reason: &str) -> Result<String, StoreErrorKind> {
    let aside = aside(path);
    fs::rename(path, &aside)
        .and_then(|()| file::sync_directory(path))
        .at(path)?;
    Ok(format!("{reason} and was put aside as {}", aside.display()))
}

/// A free name for a file that cannot be used.
pub(super) fn aside(path: &Path) -> PathBuf {
    let mut aside = path.with_added_extension(format!("corrupt-{}", Timestamp::now().compact()));
    while aside.exists() {
        aside.as_mut_os_string().push("x");
    }
    aside
}

/// Writes the data once, and its checksum after it: the data may be large.
fn encode(generation: u64, data: &StoreState) -> io::Result<Vec<u8>> {
    let saved_at = Timestamp::now();
    let mut bytes = format!(
        "{{\"version\":{VERSION},\"generation\":{generation},\"saved_at\":\"{saved_at}\",\"data\":"
    )
    .into_bytes();
    let from = bytes.len();
    serde_json::to_writer(&mut bytes, data)?;
    let sha256 = digest(&bytes[from..]);
    writeln!(bytes, ",\"sha256\":\"{sha256}\"}}")?;
    Ok(bytes)
}

fn digest(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

/// Fails where a person must decide: for a file we may not read, or one that a
/// newer Portway wrote.
fn find(path: &Path) -> Result<SnapshotContents, StoreErrorKind> {
    let Some(bytes) = file::read_own(path).at(path)? else {
        return Ok(SnapshotContents::Nothing);
    };
    if bytes.is_empty() {
        return Ok(SnapshotContents::Bad("is empty".into()));
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(SnapshotContents::Bad("holds nothing but NUL bytes".into()));
    }
    let envelope: SnapshotEnvelope<'_> = match serde_json::from_slice(&bytes) {
        Ok(envelope) => envelope,
        Err(error) => return Ok(SnapshotContents::Bad(format!("is damaged ({error})"))),
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
        return Ok(SnapshotContents::Bad(format!(
            "has the unknown format {}",
            envelope.version
        )));
    }
    if digest(envelope.data.get().as_bytes()) != envelope.sha256 {
        return Ok(SnapshotContents::Bad("does not match its checksum".into()));
    }
    match serde_json::from_str(envelope.data.get()) {
        Ok(data) => Ok(SnapshotContents::Good(LoadedSnapshot {
            data,
            generation: envelope.generation,
            length: bytes.len() as u64,
            ..LoadedSnapshot::default()
        })),
        Err(error) => Ok(SnapshotContents::Bad(format!(
            "has data that makes no sense ({error})"
        ))),
    }
}
