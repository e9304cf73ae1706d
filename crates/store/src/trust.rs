//! Decides whether a data directory is trusted. One that the user names is. The
//! default one, `data` in the project, may have come with the project: it is
//! trusted only with a mark, a random id that is kept in it and, with its path,
//! where only this user's Portway writes. Without a mark, its records are used
//! but its secrets are not.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::address_owner::{AddressOwner, address_owner};
use super::digest::hex;
use super::lock::{make_directory, private};
use super::replace::is_private_group;
use super::whereabouts::{known_address, socket_address};
use super::{
    AtPath, DuringOperation, StoreErrorKind, StoreResult, examine as records, file, git, key, own,
};
use config::settings::{Settings, StorageType};

const MARK: &str = "mark";
const IGNORE: &str = ".gitignore";

/// The files that Portway keeps in a data directory.
const OWN: &[&str] = &[
    "address",
    "admin_token",
    "admin_token.unverified",
    "clients",
    "console_sessions.json",
    "gateway.log",
    "gateway.log.1",
    "instance_id",
    "lock",
    MARK,
    "session_secret",
    "session_secret.unverified",
    "unfinished_edit.json",
];
/// The files that authenticate or sign. The console's sessions are sealed with
/// the admin token, and end with it.
const SECRETS: &[&str] = &["admin_token", "session_secret"];
/// The suffix that an untrusted secret gets.
const ASIDE: &str = ".unverified";
/// The records, their backup and journal, and their copies put aside.
const RECORDS: &[&str] = &["mcp_instances.", "portway_instances."];

fn is_own(name: &str) -> bool {
    let record = RECORDS.iter().any(|start| name.starts_with(start));
    OWN.contains(&name) || record || name.contains(".portway-")
}

/// Whether the data directory of the settings is trusted: its content decides
/// where a credential goes. The error is the reason why it is not.
pub fn is_trusted(settings: &Settings) -> Result<(), String> {
    let directory = &settings.data_dir;
    if settings.names_data_dir || !exists(directory) || holds_nothing(directory) {
        return Ok(());
    }
    if is_marked(settings) || is_held_by_us(directory) {
        return Ok(());
    }
    Err(format!(
        "{} was not made by this user's Portway, so nothing in it is believed; if it is yours, \
         name it with --data-dir (or PORTWAY_DATA_DIR)",
        directory.display()
    ))
}

/// The objections to the data directory that [`claim`] would report.
pub fn objections(settings: &Settings) -> Vec<String> {
    let directory = &settings.data_dir;
    if settings.names_data_dir || !exists(directory) || is_marked(settings) {
        return Vec::new();
    }
    match examine(directory) {
        Ok(faults) => faults.into_iter().map(|fault| fault.text).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The directories with Portway's own keys and marks, which no server may see.
pub fn hidden_directories(settings: &Settings) -> Vec<PathBuf> {
    let data = Some(&settings.data_dir).filter(|directory| !holds_nothing(directory));
    let both = data.into_iter().chain(&settings.state_dir);
    both.filter_map(|directory| directory.canonicalize().ok())
        .collect()
}

/// Takes the data directory of the settings into use: creates it if needed,
/// refuses the default one if it came from elsewhere, keeps it out of git, and
/// marks it. Puts the secrets of an unmarked one aside. Returns warnings for a
/// person. Blocks on the disk.
pub fn claim(settings: &Settings) -> StoreResult<Vec<String>> {
    try_claim(settings).during("use the data directory")
}

fn try_claim(settings: &Settings) -> Result<Vec<String>, StoreErrorKind> {
    let directory = &settings.data_dir;
    let shown = directory.display();
    let mut notes = Vec::new();
    let mut is_doubtful = false;
    if exists(directory) {
        let faults = examine(directory).at(directory)?;
        if settings.names_data_dir {
            let mild = |fault: &TrustObjection| format!("{shown}: {}", fault.text);
            notes.extend(faults.iter().filter(|fault| fault.of_access).map(mild));
        } else if !is_marked(settings) {
            if !faults.is_empty() {
                return Err(StoreErrorKind::Setup(refusal(directory, &faults)));
            }
            is_doubtful = !holds_nothing(directory) && !is_held_by_us(directory);
        }
    }
    make_directory(directory)?;
    if let Err(error) = ignore_in_git(directory) {
        let path = directory.join(IGNORE);
        notes.push(format!("{} cannot be written: {error}", path.display()));
    }
    let unmarked = match lock_marks(settings) {
        Ok(_) if is_marked(settings) => None,
        Ok(_lock) => {
            // Before the mark, which makes the whole directory trusted.
            if is_doubtful {
                notes.push(put_secrets_aside(settings)?);
            }
            mark(settings).err()
        }
        Err(reason) => {
            if is_doubtful {
                notes.push(format!(
                    "{shown} may have come with the project; all of it is believed, because no \
                     mark can be kept"
                ));
            }
            Some(reason)
        }
    };
    if let Some(reason) = unmarked {
        notes.push(format!(
            "{shown} cannot be marked as ours ({reason}); other commands need --data-dir, or a \
             running Portway"
        ));
    }
    Ok(notes)
}

/// Puts the secrets aside, since the creator of the directory knows them: a
/// start makes new ones. Returns a message for the user.
fn put_secrets_aside(settings: &Settings) -> Result<String, StoreErrorKind> {
    let directory = &settings.data_dir;
    let mut aside = Vec::new();
    for name in SECRETS {
        let path = directory.join(name);
        match fs::rename(&path, directory.join(format!("{name}{ASIDE}"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            renamed => renamed
                .and_then(|()| file::sync_directory(&path))
                .at(&path)?,
        }
        aside.push(*name);
    }
    let mut note = format!(
        "{} has no mark of this user's Portway and may have come with the project: its records \
         stay in use",
        directory.display()
    );
    let keys = records::keys_in(directory).filter(|_| settings.storage == StorageType::Json);
    note += &match keys {
        Some(0) => String::new(),
        Some(count) => format!(", and the keys of its {count} entries stay valid"),
        None => ", and the keys of its entries stay valid".to_owned(),
    };
    if !aside.is_empty() {
        note += &format!(
            "; new secrets replace {} (the old ones are kept as *{ASIDE}; rename them back while \
             Portway is stopped if they are yours)",
            aside.join(" and ")
        );
    }
    note += ". To keep all of such a directory, name it once with --data-dir or PORTWAY_DATA_DIR";
    Ok(note)
}

fn refusal(directory: &Path, faults: &[TrustObjection]) -> String {
    let mut text = format!(
        "{} was not made by this user's Portway and may have come with the project:\n",
        directory.display()
    );
    for fault in faults.iter().take(8) {
        text += &format!("  {}\n", fault.text);
    }
    text + "remove it, or name it with --data-dir (or PORTWAY_DATA_DIR) if you trust it"
}

fn exists(directory: &Path) -> bool {
    directory.symlink_metadata().is_ok()
}

/// Whether it holds no file that is, or pretends to be, Portway's.
fn holds_nothing(directory: &Path) -> bool {
    let is_link = directory.is_symlink();
    !is_link && own_files(directory).is_ok_and(|files| files.is_empty())
}

fn own_files(directory: &Path) -> io::Result<Vec<(String, Metadata)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_own(&name) {
            files.push((name, entry.metadata()?));
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(files)
}

/// Why a directory does not look as Portway makes it.
struct TrustObjection {
    text: String,
    /// About owners and modes, which a container's volume sets in its own way.
    of_access: bool,
}

fn examine(directory: &Path) -> io::Result<Vec<TrustObjection>> {
    let mut faults = Vec::new();
    let mut add = |of_access: bool, text: String| faults.push(TrustObjection { text, of_access });
    let us = nix::unistd::geteuid().as_raw();
    let metadata = directory.symlink_metadata()?;
    if metadata.is_symlink() {
        add(false, "it is a symbolic link".into());
        return Ok(faults);
    }
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != us {
        add(true, format!("it belongs to user {owner}, not {us}"));
    }
    if others_may_write(&metadata) {
        let text = format!("others may write to it (mode {mode:03o}; chmod go-w)");
        add(true, text);
    }
    let files = own_files(directory)?;
    for (name, metadata) in &files {
        let mode = metadata.mode() & 0o777;
        if !metadata.is_file() || !own::is_alone(metadata) {
            add(false, format!("{name} is a link, or no regular file"));
            continue;
        }
        if metadata.uid() != us {
            add(
                true,
                format!("{name} belongs to user {}, not {us}", metadata.uid()),
            );
        }
        let secret = SECRETS.contains(&name.as_str());
        if (secret && mode & 0o077 != 0) || others_may_write(metadata) {
            let what = if secret { "use" } else { "write" };
            let text = format!("others may {what} {name} (mode {mode:03o}; chmod 600)");
            add(true, text);
        }
        if secret && metadata.len() < key::SHORTEST as u64 {
            add(
                false,
                format!("{name} is shorter than {} characters", key::SHORTEST),
            );
        }
    }
    if !files.is_empty() {
        let real = directory.canonicalize()?;
        match git::tracked(&real, is_own) {
            Ok(tracked) => {
                for name in tracked {
                    add(false, format!("{name} is tracked by git"));
                }
            }
            Err(reason) => add(
                false,
                format!("whether git tracks it cannot be told: {reason}"),
            ),
        }
    }
    Ok(faults)
}

/// A group without any other user does not count as others.
fn others_may_write(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_private_group(metadata.gid(), metadata.uid()))
}

/// Whether the process that holds the directory belongs to this user, and
/// listens at the address in the directory.
#[cfg(target_os = "linux")]
fn is_held_by_us(directory: &Path) -> bool {
    use super::lock::{Holder, holder};

    let Ok(Holder::Process(Some(pid))) = holder(directory) else {
        return false;
    };
    let us = nix::unistd::geteuid().as_raw();
    let ours = fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() == us);
    let address = known_address(directory).and_then(|url| socket_address(&url));
    ours && address.is_some_and(|address| address_owner(directory, address) == AddressOwner::Holder)
}

#[cfg(not(target_os = "linux"))]
fn is_held_by_us(_: &Path) -> bool {
    false
}

fn is_marked(settings: &Settings) -> bool {
    let marked = || {
        let (path, record) = record(settings)?;
        let kept = fs::read_to_string(&record).ok()?;
        let here = read_mark(&settings.data_dir)?;
        let owner = fs::metadata(&record).ok()?.uid();
        let ours = owner == nix::unistd::geteuid().as_raw();
        (ours && kept == entry(&here, &path)).then_some(())
    };
    marked().is_some()
}

/// The directory without links, and the file that records its mark.
fn record(settings: &Settings) -> Option<(PathBuf, PathBuf)> {
    let state = settings.state_dir.as_ref()?;
    let path = settings.data_dir.canonicalize().ok()?;
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    Some((path, state.join(hex(&digest[..16]))))
}

fn entry(id: &str, path: &Path) -> String {
    format!("{id}\n{}\n", path.display())
}

fn read_mark(directory: &Path) -> Option<String> {
    let bytes = file::read(&directory.join(MARK)).ok()??;
    let text = std::str::from_utf8(&bytes).ok()?.trim();
    (text.len() >= key::SHORTEST).then(|| text.to_owned())
}

/// Held until dropped, so that two simultaneous starts agree on one mark.
fn lock_marks(settings: &Settings) -> Result<fs::File, String> {
    let state = settings.state_dir.as_ref().ok_or("HOME is not set")?;
    let lock = || {
        let mut directory = fs::DirBuilder::new();
        directory.recursive(true).mode(0o700).create(state)?;
        let lock = own::open_kept(&state.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    };
    lock().map_err(|error: io::Error| format!("{}: {error}", state.display()))
}

/// Writes a new mark: other users may know an id that was there before.
fn mark(settings: &Settings) -> Result<(), String> {
    let fail = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let (path, record) = record(settings).ok_or("its path cannot be read")?;
    let id = key::random_text().map_err(|kind| kind.to_string())?;
    let mark = settings.data_dir.join(MARK);
    file::write_private(&mark, format!("{id}\n").as_bytes()).map_err(|error| fail(&mark, error))?;
    file::write_private(&record, entry(&id, &path).as_bytes()).map_err(|error| fail(&record, error))
}

/// Makes git ignore Portway's files: the whole directory or, where it also
/// holds other files, only Portway's. Our rules override earlier ones: a
/// project could have excluded these files from them.
fn ignore_in_git(directory: &Path) -> io::Result<()> {
    let path = directory.join(IGNORE);
    let there = file::read(&path)?.unwrap_or_default();
    let names: String = OWN.iter().map(|name| format!("/{name}\n")).collect();
    let records: String = RECORDS.iter().map(|start| format!("/{start}*\n")).collect();
    let block = format!("# Portway's own\n{names}{records}*.portway-*\n");
    if there == b"*\n" || there.ends_with(block.as_bytes()) {
        return Ok(());
    }
    let foreign = |entry: &fs::DirEntry| !is_own(&entry.file_name().to_string_lossy());
    let shared = !there.is_empty() || fs::read_dir(directory)?.flatten().any(|e| foreign(&e));
    let text = if shared { block } else { "*\n".to_owned() };
    let mut options = OpenOptions::new();
    let options = private(options.append(true).create(true));
    let mut file = own::open_alone(&path, options)?;
    let separator = if there.is_empty() || there.ends_with(b"\n") {
        ""
    } else {
        "\n"
    };
    file.write_all(format!("{separator}{text}").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
