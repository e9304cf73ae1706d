//! The address of the program that uses a data directory: for other commands on
//! the same machine, since the port can be any.

use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use super::{AtPath, DuringOperation, StoreResult, file};

const NAME: &str = "address";

/// Writes the address.
pub fn tell_address(directory: &Path, url: &str) -> StoreResult<()> {
    let path = directory.join(NAME);
    let written = file::write_volatile(&path, format!("{url}\n").as_bytes()).at(&path);
    written.during("say where we can be reached")
}

/// The address written last. A killed process is still named: try to connect.
pub fn known_address(directory: &Path) -> Option<String> {
    let bytes = file::read(&directory.join(NAME)).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned()).filter(|url| url.starts_with("http"))
}

/// The address and port of such a URL: they are numbers.
pub fn socket_address(url: &str) -> Option<SocketAddr> {
    let rest = url.strip_prefix("http://")?;
    rest.trim_end_matches('/').parse().ok()
}

/// Changes with every start: the file is replaced, not written over.
pub fn address_stamp(directory: &Path) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::symlink_metadata(directory.join(NAME)).ok()?;
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    Some((number, metadata.modified().ok()?))
}

/// For a process that has just locked the directory: at the address of a killed
/// predecessor, another program may listen by now and receive keys.
pub(super) fn forget_predecessor(directory: &Path) -> std::io::Result<()> {
    file::remove(&directory.join(NAME))
}

/// Removes `url`, where no gateway listens any more. Keeps a successor's address.
pub fn forget_address(directory: &Path, url: &str) {
    if known_address(directory).is_some_and(|known| known == url) {
        let _ = std::fs::remove_file(directory.join(NAME));
    }
}
