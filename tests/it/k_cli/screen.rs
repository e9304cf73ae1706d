//! A terminal with a command in it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::pty::{OpenptyResult, Winsize, openpty};
use tokio::process::Child;

use super::command;
use crate::app::{PATIENCE, eventually};

pub(super) const COLUMNS: u16 = 70;

pub(super) struct Screen {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Ends once nobody holds the other side of the terminal any more.
    reader: JoinHandle<()>,
}

impl Screen {
    pub(super) fn open(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Screen {
        let size = Winsize {
            ws_row: 24,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        let mut command = command(dir, args);
        command
            .envs(env.iter().copied())
            .stdin(end(&slave))
            .stdout(end(&slave))
            .stderr(end(&slave));
        let child = command.spawn().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (sink, mut shown) = (seen.clone(), File::from(master.try_clone().unwrap()));
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = shown.read(&mut chunk) {
                sink.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        });
        Screen {
            child,
            keys: master.into(),
            seen,
            reader,
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    pub(super) async fn shows(&self, text: &str) {
        eventually(&format!("{text} in {}", self.text()), || {
            self.text().contains(text)
        })
        .await;
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(super) async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("it stays: {}", self.text()));
        // What was written last may still be on its way; a process in the
        // background may hold the terminal for longer.
        let limit = Instant::now() + Duration::from_secs(5);
        while !self.reader.is_finished() && Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (status.unwrap().code(), self.text())
    }
}
