//! A gateway in the background: `portway connect` starts it, for itself and for
//! other clients that connect while it runs. It has a session and a log of its
//! own, and exits when no client has used it for a while.

use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use config::settings::Settings;
use store::Attendance;
use upstream::process;

pub(super) const LOG: &str = "gateway.log";
/// One older log is kept. A log is rotated at this many bytes.
const LOG_LIMIT: u64 = 1 << 20;
const LOOK: Duration = Duration::from_secs(1);

pub(super) const DETACH: &str = "--detach";

/// The path of this program: under its usual name while that file exists, so
/// that people recognise it.
pub(super) fn program() -> io::Result<PathBuf> {
    let named = std::env::current_exe().ok().filter(|path| path.is_file());
    named.map_or_else(process::own_binary, Ok)
}

/// Starts this command again as a process that has no parent to wait for it.
pub(super) fn start_again() -> io::Result<()> {
    let args = std::env::args_os().skip(1).filter(|arg| arg != DETACH);
    Command::new(program()?).args(args).spawn().map(drop)
}

/// Leaves the session of the parent process, so that signals to the parent's
/// group or terminal do not reach this process.
pub(super) fn detach() {
    // It fails for a group leader, which already has its own group.
    let _ = nix::unistd::setsid();
}

/// The address of the settings. If it is taken and the user did not set it, any
/// free port of loopback.
pub(super) async fn listen(settings: &Settings, asked_for: bool) -> io::Result<TcpListener> {
    match TcpListener::bind(settings.listen).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && !asked_for => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
        }
        bound => bound,
    }
}

/// Cancels `stop` once no client has been present for `limit`.
pub(super) async fn until_unused(directory: &Path, limit: Duration, stop: CancellationToken) {
    let attendance = match Attendance::open(directory) {
        Ok(attendance) => attendance,
        Err(error) => {
            tracing::error!("{error}");
            return stop.cancel();
        }
    };
    let mut used = Instant::now();
    loop {
        tokio::time::sleep(LOOK.min(limit / 4)).await;
        if !attendance.is_empty() {
            used = Instant::now();
        } else if used.elapsed() >= limit && attendance.close() {
            tracing::info!("nobody has been here for {} s: ending", limit.as_secs());
            stop.cancel();
            // The attendance lock is held to the end of the process.
            return std::future::pending().await;
        }
    }
}

/// A log file that is rotated when it is long.
pub struct LogFile {
    path: PathBuf,
    /// The lock is held for one line.
    open: Mutex<(File, u64)>,
}

impl LogFile {
    pub fn open(directory: &Path) -> Result<LogFile, store::StoreError> {
        let path = directory.join(LOG);
        let file = store::append_private(&path)?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let open = Mutex::new((file, size));
        Ok(LogFile { path, open })
    }

    fn put(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        if open.1 > LOG_LIMIT {
            match std::fs::rename(&self.path, self.path.with_extension("log.1")) {
                // Renamed earlier, when no new file could be created.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
            *open = (
                store::append_private(&self.path).map_err(io::Error::other)?,
                0,
            );
        }
        open.1 += line.len() as u64;
        open.0.write_all(line)
    }
}

impl Write for &LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k5_the_log_of_a_gateway_in_the_background_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let log = LogFile::open(directory.path()).unwrap();
        let line = [b'x'; 4096];
        for _ in 0..3 * LOG_LIMIT / 4096 {
            (&log).write_all(&line).unwrap();
        }
        let sizes: Vec<u64> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(
            sizes.iter().all(|size| *size <= LOG_LIMIT + 4096),
            "{sizes:?}"
        );
    }
}
