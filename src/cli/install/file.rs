//! A client's own file: read, backed up, replaced.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::failure::{CliResult, Failure};
use crate::cli::files::client_file;
use store::{ReplaceError, Timestamp};

const BACKUPS: usize = 5;

/// How often an edit is repeated after the client changed the file.
pub(super) const TRIES: usize = 5;

/// The backup directory, beside the file. Hidden from Git: it may hold keys.
const ASIDE: &str = ".portway-backups";

/// The suffix of a backup that records that there was no file.
const NO_FILE: &str = "-none";

pub(super) struct ClientFile {
    pub path: PathBuf,
    /// `None` where there is no file.
    pub found: Option<String>,
    /// Other users may read a new file, because it belongs to a project.
    pub shared: bool,
}

/// The new state of the file.
pub(super) enum FileChange<'t> {
    Text(&'t str),
    /// The file has no content left; `ours` if Portway wrote all of it.
    Gone {
        ours: bool,
    },
}

#[derive(PartialEq, Eq)]
pub(super) enum ReplaceOutcome {
    /// The file is replaced; `backup` has its previous content.
    Done { backup: Option<PathBuf> },
    /// Another program changed the file: read it again.
    Changed,
}

impl ClientFile {
    pub(super) fn read(path: PathBuf, shared: bool) -> CliResult<ClientFile> {
        let found = contents(&path).map_err(|error| Failure::of_path(&path, error))?;
        if path.is_symlink() && found.is_none() {
            return Err(Failure::of_path(&path, "is a link that leads nowhere"));
        }
        Ok(ClientFile {
            path,
            found,
            shared,
        })
    }

    pub(super) fn text(&self) -> &str {
        self.found.as_deref().unwrap_or_default()
    }

    /// The contents of the backups, newest first; `None` if there was no file.
    pub(super) fn before(&self) -> Vec<Option<String>> {
        let mut paths = self.backups();
        paths.reverse();
        let read = |path: PathBuf| {
            if path.to_string_lossy().ends_with(NO_FILE) {
                return Some(None);
            }
            contents(&path).ok().flatten().map(Some)
        };
        paths.into_iter().filter_map(read).collect()
    }

    /// Backs the file up and replaces it. A `private` file is readable only by
    /// its owner afterwards.
    pub(super) fn replace(
        &self,
        next: &FileChange<'_>,
        private: bool,
    ) -> CliResult<ReplaceOutcome> {
        let fail = |error: io::Error| Failure::of_path(&self.path, error);
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(fail)?;
        }
        let backup = match next {
            FileChange::Gone { ours: true } => None,
            FileChange::Gone { ours: false } | FileChange::Text(_) => self.keep_aside()?,
        };
        if private && self.found.is_some() {
            // Before the secret is written, not after.
            let owner_only = Permissions::from_mode(0o600);
            std::fs::set_permissions(&self.path, owner_only).map_err(fail)?;
        }
        let seen = self.found.as_ref().map(String::as_bytes);
        let mode = if self.shared && !private {
            0o644
        } else {
            0o600
        };
        let replaced = match next {
            FileChange::Text(text) => store::replace(&self.path, seen, text.as_bytes(), mode),
            FileChange::Gone { .. } => self.remove(),
        };
        match replaced {
            Ok(()) => {
                self.thin_out();
                Ok(ReplaceOutcome::Done { backup })
            }
            Err(ReplaceError::Changed) => {
                if let Some(backup) = backup {
                    let _ = std::fs::remove_file(backup);
                }
                Ok(ReplaceOutcome::Changed)
            }
            Err(ReplaceError::Io(error)) => Err(fail(error)),
        }
    }

    fn remove(&self) -> Result<(), ReplaceError> {
        if contents(&self.path)? != self.found {
            return Err(ReplaceError::Changed);
        }
        std::fs::remove_file(&self.path)?;
        // They only record that there was no file, which is true again.
        for backup in self.backups() {
            if backup.to_string_lossy().ends_with(NO_FILE) {
                let _ = std::fs::remove_file(backup);
            }
        }
        Ok(())
    }

    /// Backs the file up. A missing file is recorded only if there are older
    /// backups, which would otherwise be taken for its previous content.
    fn keep_aside(&self) -> CliResult<Option<PathBuf>> {
        if self.found.is_none() && self.backups().is_empty() {
            return Ok(None);
        }
        let time = Timestamp::now().to_string().replace([':', '-'], "");
        let end = if self.found.is_none() { NO_FILE } else { "" };
        let mut name = self.prefix();
        name.push(format!("{time}{end}"));
        let directory = self.aside();
        // A project could link it to any directory, and backups hold keys.
        if directory.is_symlink() {
            return Err(Failure::of_path(
                &directory,
                "is a symbolic link; remove it",
            ));
        }
        store::make_directory(&directory).map_err(|error| Failure::of_path(&directory, error))?;
        let backup = directory.join(name);
        match store::replace(&backup, None, self.text().as_bytes(), 0o600) {
            Ok(()) => Ok(Some(backup)),
            Err(error) => Err(Failure::of_path(&backup, error)),
        }
    }

    fn prefix(&self) -> OsString {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name
    }

    fn aside(&self) -> PathBuf {
        self.path.with_file_name(ASIDE)
    }

    /// By age, the oldest first.
    fn backups(&self) -> Vec<PathBuf> {
        let prefix = self.prefix();
        let prefix = prefix.to_string_lossy();
        let mut found: Vec<PathBuf> = std::fs::read_dir(self.aside())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&*prefix))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found
    }

    fn thin_out(&self) {
        let backups = self.backups();
        let surplus = backups.len().saturating_sub(BACKUPS);
        for old in &backups[..surplus] {
            let _ = std::fs::remove_file(old);
        }
    }
}

/// The text of the file; `None` where there is no file.
fn contents(path: &Path) -> io::Result<Option<String>> {
    match client_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}
