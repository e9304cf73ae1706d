//! The owner of the address that a data directory names. A credential is sent
//! there only if the owner is the process that holds the directory's lock.

#[cfg(target_os = "linux")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressOwner {
    /// The holder of the lock.
    Holder,
    /// Another process, or none.
    Other,
    /// The system does not report it.
    Unknown,
}

/// Checks whether the process whose id is in the lock file has that file open
/// and listens at `address`.
#[cfg(target_os = "linux")]
pub fn address_owner(directory: &Path, address: SocketAddr) -> AddressOwner {
    use std::os::unix::fs::MetadataExt;

    use super::lock::{Holder, holder, open_lock};

    let Ok(Holder::Process(Some(pid))) = holder(directory) else {
        return AddressOwner::Other;
    };
    let Ok(lock) = open_lock(directory).and_then(|file| file.metadata()) else {
        return AddressOwner::Other;
    };
    let entries = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return AddressOwner::Other,
        Err(_) => return AddressOwner::Unknown,
    };
    let sockets = listening(address);
    let (mut holds, mut listens) = (false, false);
    for entry in entries.flatten() {
        let link = std::fs::read_link(entry.path()).unwrap_or_default();
        match link.to_string_lossy().strip_prefix("socket:[") {
            Some(rest) => {
                listens |= sockets
                    .iter()
                    .any(|inode| rest.strip_suffix(']') == Some(inode.as_str()));
            }
            None => {
                let same = |found: std::fs::Metadata| {
                    (found.dev(), found.ino()) == (lock.dev(), lock.ino())
                };
                holds |= entry.path().metadata().is_ok_and(same);
            }
        }
    }
    if holds && listens {
        AddressOwner::Holder
    } else {
        AddressOwner::Other
    }
}

#[cfg(not(target_os = "linux"))]
pub fn address_owner(_: &Path, _: SocketAddr) -> AddressOwner {
    AddressOwner::Unknown
}

/// The inodes of the sockets that listen at this address.
#[cfg(target_os = "linux")]
fn listening(address: SocketAddr) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    rows.filter_map(|row| listener(row, address)).collect()
}

#[cfg(target_os = "linux")]
fn listener(row: &str, address: SocketAddr) -> Option<String> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = row.split_ascii_whitespace().collect();
    let (ip, port) = fields.get(1)?.split_once(':')?;
    let ip = kernel_ip(ip)?.to_canonical();
    let here = ip == address.ip().to_canonical() || ip.is_unspecified();
    let same = here && u16::from_str_radix(port, 16).ok()? == address.port();
    (same && fields.get(3) == Some(&LISTEN)).then(|| fields.get(9).map(ToString::to_string))?
}

/// Parses 32-bit words in the machine's byte order, in hexadecimal.
#[cfg(target_os = "linux")]
fn kernel_ip(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for word in text.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::lock::DirectoryLock;
    use super::*;

    #[test]
    fn t_only_the_holder_of_the_lock_is_behind_its_address() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(
            address_owner(path, address),
            AddressOwner::Other,
            "nobody holds it"
        );
        let _lock = DirectoryLock::take(path).unwrap();
        assert_eq!(address_owner(path, address), AddressOwner::Holder);
        let any = std::net::TcpListener::bind("[::]:0").unwrap();
        let port = any.local_addr().unwrap().port();
        for ip in ["127.0.0.1", "[::1]"] {
            let address = format!("{ip}:{port}").parse().unwrap();
            assert_eq!(address_owner(path, address), AddressOwner::Holder, "{ip}");
        }
        drop(listener);
        assert_eq!(
            address_owner(path, address),
            AddressOwner::Other,
            "nobody listens"
        );
        // A lock file that names a process which does not hold it. Not the id
        // after ours: it may belong to one of our own threads.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::fs::write(path.join("lock"), "1\n").unwrap();
        assert_ne!(address_owner(path, address), AddressOwner::Holder);
    }
}
