//! Reads and replaces whole files, so that a reader, a crash and a power loss
//! each leave the old content or the new, and nothing in between.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::lock::private;
use super::own;

/// Larger than any file of ours, or of a person, should be.
pub(crate) const SIZE_LIMIT: u64 = 64 * 1024 * 1024;
const OWN_SIZE_LIMIT: u64 = 2 * 1024 * 1024 * 1024;

/// The content, or `None` where there is no file. Follows no link.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_with(own::open(path, OpenOptions::new().read(true)), SIZE_LIMIT)
}

/// Like [`read`], for a secret, which must have only one name.
pub(super) fn read_alone(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let opened = own::open_alone(path, OpenOptions::new().read(true));
    read_with(opened, SIZE_LIMIT)
}

/// Like [`read`], for files that only this program writes, which may be large.
pub(super) fn read_own(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let opened = own::open(path, OpenOptions::new().read(true));
    read_with(opened, OWN_SIZE_LIMIT)
}

fn read_with(opened: io::Result<File>, limit: u64) -> io::Result<Option<Vec<u8>>> {
    match opened {
        Ok(file) => read_up_to(&file, limit).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn read_open(file: &File) -> io::Result<Vec<u8>> {
    read_up_to(file, SIZE_LIMIT)
}

fn read_up_to(mut file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&mut file).take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("is larger than {} MiB", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Removes a file that may not exist.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces a file of our own: durable once this returns, private to its owner.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    prepare(path, bytes)?.place(path)
}

/// The same, without waiting for the disk: for a file that means nothing after
/// a restart of the machine.
pub(super) fn write_volatile(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = Temporary::create(path, bytes)?;
    fs::rename(&temporary.path, path)?;
    temporary.keep();
    Ok(())
}

/// All but the last step of [`write_private`]: the file is still unchanged.
pub(super) fn prepare(path: &Path, bytes: &[u8]) -> io::Result<Temporary> {
    let temporary = Temporary::create(path, bytes)?;
    temporary.file.sync_all()?;
    Ok(temporary)
}

/// Syncs the directory, which holds the rename: without this a rename may be
/// lost although the content was saved.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The name of the temporary files beside `path`, up to a random suffix.
fn temporary_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{}.portway-", name.trim_start_matches('.'))
}

/// A file beside the one that it will replace; removed unless kept.
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    pub(super) file: File,
    kept: bool,
}

impl Temporary {
    pub(super) fn create(target: &Path, bytes: &[u8]) -> io::Result<Temporary> {
        let end: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(12)
            .collect();
        let name = format!("{}{end}", temporary_prefix(target));
        let path = directory_of(target).join(name);
        let file = private(OpenOptions::new().write(true).create_new(true)).open(&path)?;
        let mut temporary = Temporary {
            path,
            file,
            kept: false,
        };
        temporary.file.write_all(bytes)?;
        Ok(temporary)
    }

    /// After a failure either content may be on disk, until the next start.
    pub(super) fn place(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.keep();
        sync_directory(path)
    }

    /// Gives up the path: `Drop` no longer removes it.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the temporary files that a crash during a write left beside `path`,
/// if they are older than any write that may be running.
pub(super) fn sweep(path: &Path, older_than: Duration) {
    let prefix = temporary_prefix(path);
    let Ok(entries) = fs::read_dir(directory_of(path)) else {
        return;
    };
    let age = |entry: &fs::DirEntry| entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(&prefix);
        if ours && age(&entry).is_none_or(|age| age >= older_than) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
