//! Files that belong to a person: read only if no other user could have written
//! them, and replaced without losing an edit made at the same moment.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{Temporary, read, read_open, sweep, sync_directory};
use super::writers::{has_writer, read_finished};

/// Why a configuration file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Another user could have put a command to run there.
    #[error("{0}")]
    Untrusted(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The content of a file, only if we or root own it and no other user may write
/// it; `None` where there is no file.
pub fn read_trusted(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::Untrusted("is not a regular file".into()));
    }
    trust(&metadata).map_err(ReadError::Untrusted)?;
    Ok(Some(read_open(&file)?))
}

/// Opens without waiting: a named pipe would block forever.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

fn trust(metadata: &fs::Metadata) -> Result<(), String> {
    let owner = metadata.uid();
    let us = nix::unistd::geteuid().as_raw();
    if owner != us && owner != 0 {
        return Err(format!(
            "belongs to user {owner}, and only user {us} or root may say what runs here; \
             change its owner (chown {us})"
        ));
    }
    let mode = metadata.mode();
    let others = mode & 0o002 != 0;
    let group = mode & 0o020 != 0 && !is_private_group(metadata.gid(), owner);
    if others || group {
        let who = if others { "everyone" } else { "its group" };
        return Err(format!(
            "may be written by {who} (mode {:03o}), who could make it run anything; \
             take that away (chmod go-w)",
            mode & 0o777
        ));
    }
    Ok(())
}

/// Where the default umask is 002, each user has a private group of the same
/// name: then the group contains no other user.
pub(super) fn is_private_group(gid: u32, owner: u32) -> bool {
    use nix::unistd::{Gid, Group, Uid, User};

    let user = User::from_uid(Uid::from_raw(owner)).ok().flatten();
    let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    match (user, group) {
        (Some(user), Some(group)) => {
            group.name == user.name && group.mem.iter().all(|member| *member == user.name)
        }
        _ => false,
    }
}

/// No replacement takes this long.
const STALE: Duration = Duration::from_secs(60);

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// It is not the file the new content was made from: read it again.
    #[error("the file was changed by someone else meanwhile")]
    Changed,
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> ReplaceError {
        match error.kind() {
            // The file existed a moment ago.
            io::ErrorKind::NotFound => ReplaceError::Changed,
            _ => ReplaceError::Io(error),
        }
    }
}

/// Replaces a file that held `seen` (`None`: there was none) by `bytes`.
/// Durable once this returns. The mode and the owner are kept, a link is
/// followed; a new file gets `new_mode`.
pub fn replace(
    path: &Path,
    seen: Option<&[u8]>,
    bytes: &[u8],
    new_mode: u32,
) -> Result<(), ReplaceError> {
    let target = follow(path)?;
    if read(&target)?.as_deref() != seen {
        return Err(ReplaceError::Changed);
    }
    sweep(&target, STALE);
    let mut temporary = Temporary::create(&target, bytes)?;
    if seen.is_some() {
        copy_owner_and_mode(&target, &temporary.file)?;
    } else {
        let permissions = fs::Permissions::from_mode(new_mode);
        temporary.file.set_permissions(permissions)?;
    }
    temporary.file.sync_all()?;
    // From here on no process writes to it, which tests whether writers are seen.
    temporary.file = File::open(&temporary.path)?;
    match seen {
        Some(seen) => exchange(temporary, &target, seen, bytes)?,
        None => appear(temporary, &target)?,
    }
    Ok(sync_directory(&target)?)
}

fn follow(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            Err(io::Error::other("is a link that leads nowhere"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        other => other,
    }
}

/// Puts a new file in place unless another process created one meanwhile.
fn appear(temporary: Temporary, target: &Path) -> Result<(), ReplaceError> {
    match fs::hard_link(&temporary.path, target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ReplaceError::Changed),
        // A file system without hard links; here the two steps are not atomic.
        Err(_) if !target.exists() => {
            fs::rename(&temporary.path, target)?;
            temporary.keep();
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Swaps the two files, then checks the old content. If it differs from `seen`,
/// another process saved in between, and this swaps back.
fn exchange(
    temporary: Temporary,
    target: &Path,
    seen: &[u8],
    bytes: &[u8],
) -> Result<(), ReplaceError> {
    let can_tell = has_writer(&temporary.file) == Some(false);
    // Checked before the swap, when no reader has seen the new file yet.
    if read_finished(target, can_tell)?.as_deref() != Some(seen) {
        return Err(ReplaceError::Changed);
    }
    if !swap(&temporary.path, target)? {
        fs::rename(&temporary.path, target)?;
        temporary.keep();
        return Ok(());
    }
    let mut held = read_finished(&temporary.path, can_tell)?;
    if held.as_deref() == Some(seen) {
        return Ok(());
    }
    // The file we hold is newer than our own, or about to be. If swapping it
    // back brings out something else than ours, that is newer still, and goes
    // in next; no editor saves fast enough to keep this up.
    let mut placed = Some(bytes.to_vec());
    for _ in 0..100 {
        swap(&temporary.path, target)?;
        let out = read_finished(&temporary.path, can_tell)?;
        if out == placed {
            return Err(ReplaceError::Changed);
        }
        placed = std::mem::replace(&mut held, out);
    }
    temporary.keep();
    Err(ReplaceError::Changed)
}

/// Returns whether the system supports it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn swap(a: &Path, b: &Path) -> io::Result<bool> {
    use nix::errno::Errno;
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

    match renameat2(AT_FDCWD, a, AT_FDCWD, b, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::EINVAL | Errno::ENOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn swap(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

fn copy_owner_and_mode(from: &Path, to: &File) -> io::Result<()> {
    let old = fs::metadata(from)?;
    let new = to.metadata()?;
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        // Without the right to change the owner, the file stays ours.
        let _ = fchown(to, Some(old.uid()), Some(old.gid()));
    }
    to.set_permissions(old.permissions())
}
