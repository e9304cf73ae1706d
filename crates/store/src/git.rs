//! Checks whether a repository tracks a file. It does not run git, which would
//! run programs that the repository names.

use std::fs;
use std::path::{Path, PathBuf};

use super::file;

const HASHES: [usize; 2] = [20, 32];
/// The fields before the hash: times, device, inode, mode, owner, size.
const STATUS: usize = 40;
const EXTENDED: u16 = 0x4000;

/// The files below `directory` that a repository tracks, by the names that
/// `wanted` picks: a repository around it, or one that begins there, as a
/// submodule does. The directory itself where it is a submodule. An error if
/// the index cannot be read.
pub(super) fn tracked(
    directory: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for root in directory.ancestors() {
        let Some(index) = index(root)? else { continue };
        let shown = index.display();
        let bytes = file::read(&index).map_err(|error| format!("{shown}: {error}"))?;
        let Some(bytes) = bytes else { continue };
        let names = names(&bytes).ok_or_else(|| format!("{shown} cannot be understood"))?;
        let here = directory.strip_prefix(root).unwrap_or(directory);
        let here = here.display().to_string();
        let names = names.iter().map(|name| String::from_utf8_lossy(name));
        found.extend(names.filter_map(|name| {
            let rest = name.strip_prefix(&here)?;
            let inside = match rest.strip_prefix('/') {
                Some(inside) => inside,
                None if here.is_empty() => rest,
                None if rest.is_empty() => return Some(here.clone()),
                None => return None,
            };
            wanted(inside).then(|| inside.to_owned())
        }));
    }
    Ok(found)
}

/// The path of the index of a repository that begins here.
fn index(root: &Path) -> Result<Option<PathBuf>, String> {
    let git = root.join(".git");
    let Ok(metadata) = fs::metadata(&git) else {
        return Ok(None);
    };
    if metadata.is_dir() {
        return Ok(Some(git.join("index")));
    }
    // A worktree or a submodule: the file names the git directory.
    let text = fs::read_to_string(&git).map_err(|error| format!("{}: {error}", git.display()))?;
    let place = text.trim().strip_prefix("gitdir: ");
    let place = place.ok_or_else(|| format!("{} cannot be understood", git.display()))?;
    Ok(Some(root.join(place).join("index")))
}

/// The names in an index of any version; `None` for any other content, and for
/// an index that is split over several files.
fn names(index: &[u8]) -> Option<Vec<Vec<u8>>> {
    HASHES.iter().find_map(|hash| parse(index, *hash))
}

fn parse(index: &[u8], hash: usize) -> Option<Vec<Vec<u8>>> {
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
    };
    let version = number(4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let count = number(8)? as usize;
    let (mut at, mut names) = (12, Vec::<Vec<u8>>::new());
    for _ in 0..count {
        let start = at;
        at += STATUS + hash;
        let flags = u16::from_be_bytes(index.get(at..at + 2)?.try_into().ok()?);
        at += 2;
        if version >= 3 && flags & EXTENDED != 0 {
            at += 2;
        }
        let mut name = Vec::new();
        if version == 4 {
            let previous = names.last().map_or(&[][..], Vec::as_slice);
            let cut = varint(index, &mut at)?;
            name.extend_from_slice(previous.get(..previous.len().checked_sub(cut)?)?);
        }
        let rest = index.get(at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..length]);
        at += length + 1;
        if version < 4 {
            at = start + (at - start).div_ceil(8) * 8;
        }
        if name.is_empty() {
            return None;
        }
        names.push(name);
    }
    // Extensions follow, then a checksum.
    let end = index.len().checked_sub(hash)?;
    while at < end {
        if index.get(at..at + 4)? == b"link" {
            return None;
        }
        at += 8 + number(at + 4)? as usize;
    }
    (at == end).then_some(names)
}

/// Seven bits a byte, the highest first; each further byte counts one more.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *bytes.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value
            .checked_add(1)?
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(root: &Path, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .current_dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    #[test]
    fn t_what_a_submodule_tracks_is_found_from_inside_and_from_outside() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (shipped, outer) = (root.join("shipped"), root.join("outer"));
        for directory in [&shipped, &outer] {
            fs::create_dir(directory).unwrap();
            git(directory, &["init", "-q"]);
        }
        fs::write(shipped.join("lock"), "x").unwrap();
        git(&shipped, &["add", "lock"]);
        git(&shipped, &["commit", "-q", "-m", "x"]);
        let from = shipped.to_str().unwrap();
        let allow = ["-c", "protocol.file.allow=always"];
        let add = ["submodule", "--quiet", "add", from, "data"];
        git(&outer, &[&allow[..], &add].concat());
        let data = outer.join("data");
        let ours = |name: &str| name == "lock";
        let both = vec!["lock".to_owned(), "data".to_owned()];
        assert_eq!(tracked(&data, ours), Ok(both));
        fs::remove_file(data.join(".git")).unwrap();
        assert_eq!(tracked(&data, ours), Ok(vec!["data".to_owned()]));
    }

    #[test]
    fn t_what_a_repository_tracks_is_found_in_every_form_of_its_index() {
        for (version, format) in [
            ("2", "sha1"),
            ("4", "sha1"),
            ("2", "sha256"),
            ("4", "sha256"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            let data = root.join("sub/data");
            fs::create_dir_all(&data).unwrap();
            git(&root, &["init", "-q", &format!("--object-format={format}")]);
            for name in ["a", "sub/b", "sub/data/other", "sub/data/lock", "sub/data2"] {
                fs::write(root.join(name), "x").unwrap();
            }
            let ours = |name: &str| name == "lock";
            assert_eq!(tracked(&data, ours), Ok(vec![]), "no index yet");
            git(&root, &["add", "a", "sub/b", "sub/data2", "sub/data/other"]);
            git(&root, &["update-index", "--index-version", version]);
            assert_eq!(tracked(&data, ours), Ok(vec![]));
            git(&root, &["add", "sub/data/lock"]);
            assert_eq!(tracked(&data, ours), Ok(vec!["lock".to_owned()]));
            git(&root, &["update-index", "--split-index"]);
            assert!(tracked(&data, ours).is_err(), "what is not seen counts");
            fs::write(root.join(".git/index"), "DIRC and more").unwrap();
            assert!(tracked(&data, ours).is_err());
        }
    }
}
