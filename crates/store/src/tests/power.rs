//! Tests of power loss: only the current content of the disk is left. A copy of
//! the file behind a mounted image simulates that; unlike a killed process it
//! shows a missing sync.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use super::*;

fn run(command: &str) -> bool {
    Command::new("sh")
        .args(["-c", command])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A mounted image, unmounted when dropped.
struct Mounted {
    place: String,
}

impl Mounted {
    fn of(image: &Path, place: &Path) -> Option<Mounted> {
        std::fs::create_dir_all(place).ok()?;
        let place = place.display().to_string();
        // Without this option the kernel hides a rename that was not synced.
        let options = "-o loop,noauto_da_alloc";
        run(&format!("mount {options} {} {place}", image.display())).then(|| Mounted { place })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&format!("umount {0} || umount -l {0}", self.place));
    }
}

/// Stops a process and waits until all of its threads have stopped, also in the
/// kernel: otherwise the copy would mix several moments.
fn hold(pid: nix::unistd::Pid) {
    kill(pid, Signal::SIGSTOP).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    let stopped = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
        })
    };
    while !stopped() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The kernel continues to write: only content that reads the same twice is
/// from one moment.
fn one_moment(image: &Path) -> Vec<u8> {
    let mut before = std::fs::read(image).unwrap();
    for _ in 0..1000 {
        let now = std::fs::read(image).unwrap();
        if now == before {
            return now;
        }
        before = now;
    }
    panic!("the disk does not rest");
}

#[tokio::test]
async fn f6_answered_writes_survive_power_loss() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("disk");
    let made = format!("truncate -s 32M {0} && mkfs.ext4 -q {0}", image.display());
    let disk = directory.path().join("mnt");
    let mounted = run(&made).then(|| Mounted::of(&image, &disk)).flatten();
    if !needs::has(mounted.is_some(), "loop-mounts") {
        return;
    }
    let mut writer = child("tests::crash::writer", &disk.join("data"), "");
    let saved = Arc::new(Mutex::new(HashSet::new()));
    let reader = {
        let said = BufReader::new(writer.stderr.take().unwrap());
        let saved = saved.clone();
        std::thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                if let Some(name) = line.strip_prefix("saved ") {
                    saved.lock().unwrap().insert(name.to_owned());
                }
            }
        })
    };
    let mut checked = 0;
    for round in 0..rounds(4, 30) {
        std::thread::sleep(Duration::from_millis(fastrand::u64(5..100)));
        let pid = nix::unistd::Pid::from_raw(i32::try_from(writer.id()).unwrap());
        hold(pid);
        let answered = saved.lock().unwrap().clone();
        // Not the paths of the previous round: another test's mount namespace
        // can keep that file system alive, and a second mount would show it.
        let copy = directory.path().join(format!("copy-{round}"));
        std::fs::write(&copy, one_moment(&image)).unwrap();
        kill(pid, Signal::SIGCONT).unwrap();
        let place = directory.path().join(format!("left-{round}"));
        let left = Mounted::of(&copy, &place).unwrap();
        if answered.is_empty() {
            continue;
        }
        let opened = Store::open_files(&place.join("data")).unwrap();
        for warning in &opened.warnings {
            assert!(warning.contains("was cut off"), "round {round}: {warning}");
        }
        let found: HashSet<String> = names(&opened.store).await.into_iter().collect();
        let lost: Vec<&String> = answered.difference(&found).collect();
        assert!(
            lost.is_empty(),
            "round {round}: {} of {}",
            lost.len(),
            answered.len()
        );
        checked += 1;
        drop(opened);
        drop(left);
        std::fs::remove_file(copy).unwrap();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    reader.join().unwrap();
    drop(mounted);
    assert!(checked > 0, "no write was answered before a loss of power");
    println!(
        "{checked} losses of power, {} answered writes",
        saved.lock().unwrap().len()
    );
}
