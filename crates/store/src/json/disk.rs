//! The files of the store: a snapshot, its backup, and a journal of the changes
//! since. A new snapshot is saved first, then its backup, and only then is the
//! journal emptied: at any moment either of the two snapshots, together with
//! the journal, is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::journal::{self, Journal, JournalContents, JournalEnd};
use super::super::snapshot::{LoadedSnapshot, SnapshotFile, aside};
use super::super::state::{Step, StoreState};
use super::super::{AtPath, StoreErrorKind, file};
use super::location::{Location, locate};

/// The sizes at which a new snapshot replaces the journal.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Sizes {
    /// At once, when the journal is larger than this and than the snapshot.
    pub journal: u64,
    /// When no writes arrive, as long as both together are no larger.
    pub small: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            journal: 4 * 1024 * 1024,
            small: 1024 * 1024,
        }
    }
}

/// The pause after a snapshot that could not be saved.
const RETRY: Duration = Duration::from_secs(10);

/// The size of a test file that shows whether the disk has room.
const PROBE: usize = 16 * 1024;

pub(in super::super) struct Disk {
    snapshot: SnapshotFile,
    journal: Journal,
    path: PathBuf,
    sizes: Sizes,
    /// The size of the snapshot in bytes.
    length: u64,
    /// The highest generation that may be on disk.
    generation: u64,
    /// The journal cannot be appended to before there is a new snapshot.
    unsure: bool,
    not_before: Option<Instant>,
}

impl Disk {
    /// Loads and repairs the files, with warnings for a person.
    pub(crate) fn open(
        directory: &Path,
        sizes: Sizes,
    ) -> Result<(Disk, StoreState, Vec<String>), StoreErrorKind> {
        let location = locate(directory)?;
        if let Some(earlier) = &location.earlier {
            take_over(earlier, &location)?;
        }
        let mut loaded = location.snapshot.load()?;
        loaded.warnings.extend(location.warning());
        let (snapshot, path) = (location.snapshot, location.journal);
        let found = journal::read::<Vec<Step>>(&path)?;
        let mut state = std::mem::take(&mut loaded.data);
        replay(&mut state, &found, loaded.generation);
        let repair = complain(&path, &found, &mut loaded)?;
        let generation = found.generation.unwrap_or(0).max(loaded.generation);
        let mut disk = Disk {
            journal: if repair {
                Journal::none(&path)
            } else {
                found.go_on(&path, loaded.generation)?
            },
            snapshot,
            sizes,
            length: loaded.length,
            generation,
            // An older Portway kept no journal.
            unsure: repair || loaded.length > 0 && !path.exists(),
            path,
            not_before: None,
        };
        if repair {
            match disk.compact(&state) {
                // All records are loaded; the next write has to wait for room.
                Err(StoreErrorKind::Full) => loaded.warnings.push(format!(
                    "{} cannot be mended: {}",
                    directory.display(),
                    StoreErrorKind::Full
                )),
                done => done?,
            }
        }
        Ok((disk, state, loaded.warnings))
    }

    /// Loads the files without repairing them.
    pub(crate) fn look(directory: &Path) -> Result<StoreState, StoreErrorKind> {
        let location = locate(directory)?;
        let location = location.earlier.as_deref().unwrap_or(&location);
        let mut loaded = location.snapshot.look()?;
        let found = journal::look::<Vec<Step>>(&location.journal)?;
        replay(&mut loaded.data, &found, loaded.generation);
        Ok(loaded.data)
    }

    /// Durable once this returns. `before` is the state on disk, `after` the
    /// state after the steps.
    pub(crate) fn save(
        &mut self,
        before: &StoreState,
        steps: &[Step],
        after: &StoreState,
    ) -> Result<(), StoreErrorKind> {
        if self.length == 0 {
            // The very first save writes the snapshot itself.
            return self.compact(after);
        }
        if self.unsure {
            self.compact(before)?;
        }
        self.journal.append(&steps).map_err(|failed| {
            self.unsure |= failed.unsure;
            failed.kind
        })
    }

    /// Whether the directory can be written at all.
    pub(crate) fn probe(&self) -> Result<(), StoreErrorKind> {
        let prepared = file::prepare(&self.path, &[b'\n'; PROBE]);
        prepared.map(drop).at(&self.path)
    }

    /// Whether the journal has grown too large.
    pub(crate) fn is_due(&self) -> bool {
        let large = self.journal.length() > self.sizes.journal.max(self.length);
        large && self.not_before.is_none_or(|at| at <= Instant::now())
    }

    /// Whether the files are small enough to rewrite when no writes arrive.
    pub(crate) fn is_small(&self) -> bool {
        let length = self.journal.length();
        length > 0 && length + self.length <= self.sizes.small
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.unsure || self.journal.length() > 0
    }

    /// Writes the whole state into a new snapshot.
    pub(crate) fn compact(&mut self, state: &StoreState) -> Result<(), StoreErrorKind> {
        self.not_before = Some(Instant::now() + RETRY);
        let (prepared, bytes) = self.snapshot.prepare(self.generation + 1, state)?;
        // From here on a start may find the new snapshot, to which the journal
        // does not belong.
        self.generation += 1;
        self.unsure = true;
        self.snapshot.place(prepared)?;
        self.length = bytes.len() as u64;
        // Before the journal is emptied: with the previous backup, the journal
        // is all that a start would have if this snapshot were damaged.
        self.snapshot.save_backup(&bytes)?;
        self.journal = Journal::start(&self.path, self.generation)?;
        self.unsure = false;
        self.not_before = None;
        Ok(())
    }
}

/// Applies the journal of a snapshot to its state.
fn replay(state: &mut StoreState, journal: &JournalContents<Vec<Step>>, generation: u64) {
    if journal.generation.is_none_or(|it| it == generation) {
        for step in journal.saves.iter().flatten() {
            state.apply(step);
        }
    }
}

/// Copies our files from the usual name, whose snapshot now belongs to another
/// application. The snapshot is copied last: without it, the next start copies
/// everything again.
fn take_over(earlier: &Location, to: &Location) -> Result<(), StoreErrorKind> {
    let copy = |from: &Path, to: &Path| {
        let bytes = file::read_own(from).at(from)?;
        let copied = bytes.map_or(Ok(()), |bytes| file::write_private(to, &bytes));
        copied.at(to)
    };
    copy(&earlier.journal, &to.journal)?;
    copy(&earlier.snapshot.backup(), to.snapshot.path())
}

/// Adds the faults of the journal to the warnings. Returns whether it must be
/// replaced; its unusable content then has another name.
fn complain(
    path: &Path,
    found: &JournalContents<Vec<Step>>,
    loaded: &mut LoadedSnapshot,
) -> Result<bool, StoreErrorKind> {
    let shown = path.display();
    let older = found.generation.is_some_and(|it| it < loaded.generation);
    let newer = found.generation.is_some_and(|it| it > loaded.generation);
    if older {
        // The snapshot has all of it: a crash happened between the two.
        return Ok(true);
    }
    if newer {
        let kept = keep(path)?;
        loaded.warnings.push(format!(
            "{shown} goes on from a snapshot that is lost and was put aside as {}; \
             the changes in it are missing",
            kept.display()
        ));
        return Ok(true);
    }
    match &found.end {
        JournalEnd::Clean => {}
        JournalEnd::Torn => loaded.warnings.push(format!(
            "the end of {shown} was cut off: a write that was interrupted, and not answered"
        )),
        JournalEnd::Corrupt(reason) => {
            let kept = keep(path)?;
            loaded.warnings.push(format!(
                "{shown} {reason} and was put aside as {}; going on with the {} good lines before",
                kept.display(),
                found.saves.len()
            ));
            return Ok(true);
        }
    }
    Ok(loaded.recovered)
}

/// Links a file to a second name: the first must stay until its good part is
/// saved.
fn keep(path: &Path) -> Result<PathBuf, StoreErrorKind> {
    let aside = aside(path);
    fs::hard_link(path, &aside)
        .or_else(|_| fs::copy(path, &aside).map(drop))
        .and_then(|()| file::sync_directory(path))
        .at(path)?;
    Ok(aside)
}
