//! The changes since a snapshot, one line per save: the snapshot's generation,
//! the line's number, the length of its data, a checksum, the data. A save is
//! present as a whole or not at all.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::digest::hex;
use super::{AtPath, StoreErrorKind, file, own};

/// A journal that saves are appended to.
#[derive(Debug, Default)]
pub(super) struct Journal {
    path: PathBuf,
    generation: u64,
    lines: u64,
    length: u64,
}

/// Why a save failed.
#[derive(Debug)]
pub(super) struct AppendFailure {
    pub(super) kind: StoreErrorKind,
    /// The content of the file is unknown.
    pub(super) unsure: bool,
}

/// The content of a journal file.
pub(super) struct JournalContents<T> {
    /// The generation of the lines; `None` if there are none.
    pub(super) generation: Option<u64>,
    /// The data of every line before the first bad one.
    pub(super) saves: Vec<T>,
    pub(super) end: JournalEnd,
    length: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum JournalEnd {
    Clean,
    /// The last save did not finish, so no caller got a result for it.
    Torn,
    Corrupt(String),
}

/// Reads all valid lines. Blocks on the disk.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<JournalContents<T>, StoreErrorKind> {
    file::sweep(path, Duration::ZERO);
    look(path)
}

/// Like [`read`], but changes nothing.
pub(super) fn look<T: DeserializeOwned>(path: &Path) -> Result<JournalContents<T>, StoreErrorKind> {
    let bytes = file::read_own(path).at(path)?.unwrap_or_default();
    let mut found = JournalContents {
        generation: None,
        saves: Vec::new(),
        end: JournalEnd::Clean,
        length: 0,
    };
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let Some(line) = JournalLine::parse(rest) else {
            // An interrupted save is the last line, and has no newline.
            found.end = if rest.contains(&b'\n') {
                let line = found.saves.len() + 1;
                JournalEnd::Corrupt(format!("does not match its checksum in line {line}"))
            } else {
                JournalEnd::Torn
            };
            break;
        };
        if let Err(fault) = found.take(&line) {
            found.end = JournalEnd::Corrupt(fault);
            break;
        }
        rest = &rest[line.length..];
    }
    Ok(found)
}

impl<T: DeserializeOwned> JournalContents<T> {
    fn take(&mut self, line: &JournalLine<'_>) -> Result<(), String> {
        let number = self.saves.len() as u64 + 1;
        if line.number != number {
            return Err(format!("has no line {number} where it should be"));
        }
        if *self.generation.get_or_insert(line.generation) != line.generation {
            return Err(format!("has a line {number} of another generation"));
        }
        let data = serde_json::from_slice(line.data)
            .map_err(|error| format!("makes no sense in line {number} ({error})"))?;
        self.saves.push(data);
        self.length += line.length as u64;
        Ok(())
    }

    /// Continues after the lines that were found, without a torn end.
    pub(super) fn go_on(&self, path: &Path, generation: u64) -> Result<Journal, StoreErrorKind> {
        if self.end == JournalEnd::Torn {
            own::open(path, OpenOptions::new().write(true))
                .and_then(|file| file.set_len(self.length).and_then(|()| file.sync_all()))
                .at(path)?;
        }
        Ok(Journal {
            path: path.to_owned(),
            generation,
            lines: self.saves.len() as u64,
            length: self.length,
        })
    }
}

impl Journal {
    /// A journal that has not been started.
    pub(super) fn none(path: &Path) -> Journal {
        Journal {
            path: path.to_owned(),
            ..Journal::default()
        }
    }

    /// An empty journal, which replaces any other.
    pub(super) fn start(path: &Path, generation: u64) -> Result<Journal, StoreErrorKind> {
        file::write_private(path, b"").at(path)?;
        Ok(Journal {
            generation,
            ..Journal::none(path)
        })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Durable once this returns. Opens the file anew: the data goes into the
    /// file that the next start reads, or nowhere.
    pub(super) fn append(&mut self, data: &impl Serialize) -> Result<(), AppendFailure> {
        let fail = |error, unsure| AppendFailure {
            kind: StoreErrorKind::io(&self.path, error),
            unsure,
        };
        let line =
            encode(self.generation, self.lines + 1, data).map_err(|error| fail(error, false))?;
        let opened = own::open(&self.path, OpenOptions::new().append(true));
        let mut file = opened.map_err(|error| {
            let gone = error.kind() == io::ErrorKind::NotFound;
            fail(error, gone)
        })?;
        let there = file.metadata().map_err(|error| fail(error, false))?.len();
        if there != self.length {
            let error = io::Error::other("was changed by somebody else");
            return Err(fail(error, true));
        }
        if let Err(error) = file.write_all(&line) {
            let unsure = file.set_len(self.length).is_err();
            return Err(fail(error, unsure));
        }
        if let Err(error) = file.sync_data() {
            // The system may have dropped data that it could not write; a
            // second sync would then report success.
            let _ = file.set_len(self.length);
            return Err(fail(error, true));
        }
        self.lines += 1;
        self.length += line.len() as u64;
        Ok(())
    }
}

fn encode(generation: u64, number: u64, data: &impl Serialize) -> io::Result<Vec<u8>> {
    let data = serde_json::to_vec(data)?;
    let head = head(generation, number, data.len());
    let mut line = format!("{head} {} ", checksum(&head, &data)).into_bytes();
    line.extend_from_slice(&data);
    line.push(b'\n');
    Ok(line)
}

fn head(generation: u64, number: u64, length: usize) -> String {
    format!("{generation} {number} {length}")
}

/// Half of a SHA-256: protects against accidents, not against people.
fn checksum(head: &str, data: &[u8]) -> String {
    let sum = Sha256::new().chain_update(head).chain_update(data);
    hex(&sum.finalize()[..16])
}

struct JournalLine<'b> {
    generation: u64,
    number: u64,
    data: &'b [u8],
    /// The length of the whole line.
    length: usize,
}

impl JournalLine<'_> {
    /// `None` if the line is not exactly as it was written.
    fn parse(bytes: &[u8]) -> Option<JournalLine<'_>> {
        let mut parts = bytes.splitn(5, |byte| *byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (generation, count, size) = (number()?, number()?, number()?);
        let (sum, rest) = (parts.next()?, parts.next()?);
        let size = usize::try_from(size).ok()?;
        let (data, after) = rest.split_at_checked(size)?;
        let expected = checksum(&head(generation, count, size), data);
        let sound = after.starts_with(b"\n") && expected.as_bytes() == sum;
        sound.then(|| JournalLine {
            generation,
            number: count,
            data,
            length: bytes.len() - after.len() + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = ["one", "two", "three\nand more"];

    /// A journal of generation 7, and where each of its lines ends.
    fn prepared() -> (tempfile::TempDir, PathBuf, Vec<usize>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::start(&path, 7).unwrap();
        let mut ends = vec![0];
        for line in LINES {
            journal.append(&line).unwrap();
            ends.push(usize::try_from(journal.length()).unwrap());
        }
        (directory, path, ends)
    }

    fn found(path: &Path) -> JournalContents<String> {
        read(path).unwrap()
    }

    #[test]
    fn f6_saves_are_read_back_and_added_to() {
        let (_directory, path, _) = prepared();
        let whole = found(&path);
        assert_eq!(
            (whole.generation, &whole.end),
            (Some(7), &JournalEnd::Clean)
        );
        assert_eq!(whole.saves, LINES);
        let mut journal = whole.go_on(&path, 7).unwrap();
        journal.append(&"four").unwrap();
        assert_eq!(found(&path).saves[3], "four");
        let missing = found(&path.with_extension("none"));
        assert_eq!((missing.generation, missing.end), (None, JournalEnd::Clean));
    }

    #[test]
    fn f6_wherever_a_save_is_torn_the_ones_before_it_stay() {
        let (_directory, path, ends) = prepared();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            let before = ends.iter().filter(|end| **end <= length).count() - 1;
            for filled in [0, 5000] {
                let mut torn = whole[..length].to_vec();
                torn.resize(length + filled, 0);
                std::fs::write(&path, &torn).unwrap();
                let left = found(&path);
                assert_eq!(left.saves, LINES[..before], "{length} {filled}");
                let clean = ends.contains(&length) && filled == 0;
                assert_eq!(left.end == JournalEnd::Clean, clean);
                assert!(
                    clean || left.end == JournalEnd::Torn,
                    "{length}: {:?}",
                    left.end
                );
                let mut journal = left.go_on(&path, 7).unwrap();
                journal.append(&"next").unwrap();
                let after = found(&path);
                assert_eq!(after.end, JournalEnd::Clean);
                assert_eq!(after.saves.len(), before + 1);
            }
        }
    }

    #[test]
    fn f6_a_changed_byte_is_found_wherever_it_is() {
        let (_directory, path, ends) = prepared();
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for flip in [0x01, 0x20, 0xff] {
                let mut bad = whole.clone();
                bad[at] ^= flip;
                std::fs::write(&path, &bad).unwrap();
                let before = ends.iter().filter(|end| **end <= at).count() - 1;
                let left = found(&path);
                assert_eq!(left.saves, LINES[..before], "{at} {flip}");
                // Only a change of the very last byte can look like a torn save.
                let last = at == whole.len() - 1;
                assert_eq!(left.end == JournalEnd::Torn, last, "{at} {flip}");
            }
        }
    }

    #[test]
    fn f6_lines_that_are_missing_or_strange_are_found() {
        let (_directory, path, ends) = prepared();
        let whole = std::fs::read(&path).unwrap();
        let gap = [&whole[..ends[1]], &whole[ends[2]..]].concat();
        let twice = [&whole[..ends[1]], &whole[..ends[1]]].concat();
        let other = [&whole[..ends[1]], &encode(8, 2, &"two").unwrap()[..]].concat();
        let strange = [&whole[..ends[1]], &encode(7, 2, &2).unwrap()[..]].concat();
        for bad in [gap, twice, other, strange] {
            std::fs::write(&path, &bad).unwrap();
            let left = found(&path);
            assert_eq!(left.saves, LINES[..1]);
            assert!(matches!(left.end, JournalEnd::Corrupt(_)));
        }
    }

    #[test]
    fn f6_a_journal_that_others_wrote_to_is_not_added_to() {
        let (_directory, path, _) = prepared();
        let mut journal = found(&path).go_on(&path, 7).unwrap();
        std::fs::write(&path, b"short").unwrap();
        assert!(journal.append(&"four").unwrap_err().unsure);
        std::fs::remove_file(&path).unwrap();
        assert!(journal.append(&"four").unwrap_err().unsure);
    }
}
