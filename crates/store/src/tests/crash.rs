use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use super::*;

/// Writes without end, several at once, and prints the saved ones.
#[tokio::test]
#[ignore = "the process that is killed"]
async fn writer() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let store = Arc::new(restless(Path::new(&directory)));
    eprintln!("ready");
    let from = store.servers().await.unwrap().len();
    let mut writers = tokio::task::JoinSet::new();
    for lane in 0..4 {
        let store = store.clone();
        writers.spawn(async move {
            for i in 0.. {
                let name = format!("s-{from}-{lane}-{i}");
                store.put_server(&record(&name)).await.unwrap();
                // In one write, since it may be the last.
                let line = format!("saved {name}\n");
                std::io::stderr().write_all(line.as_bytes()).unwrap();
            }
        });
    }
    writers.join_all().await;
}

/// Holds the directory until its stdin, which is ours, or the test ends.
#[tokio::test]
#[ignore = "the other process"]
async fn holder() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let _store = Store::open_files(Path::new(&directory)).unwrap().store;
    eprintln!("ready {}", std::process::id());
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// Makes new snapshots as often as possible, so that a kill hits one.
fn restless(directory: &Path) -> Store {
    let sizes = Sizes {
        journal: 1,
        small: 0,
    };
    Store::open_files_with(directory, sizes).unwrap().store
}

/// Opens the files of a killed process: at worst they end with a write that did
/// not return.
fn survived(directory: &Path) -> Store {
    let opened = Store::open_files(directory).unwrap();
    for warning in &opened.warnings {
        assert!(warning.contains("was cut off"), "{warning}");
    }
    opened.store
}

#[tokio::test]
async fn f6_answered_writes_survive_sigkill() {
    let rounds = rounds(8, 1000);
    let directory = tempfile::tempdir().unwrap();
    let mut saved = std::collections::HashSet::new();
    for round in 0..rounds {
        // Small files are written fastest, so a kill hits them most often.
        if round % 20 == 0 {
            let _ = std::fs::remove_dir_all(directory.path().join("data"));
            saved.clear();
        }
        let data = directory.path().join("data");
        let mut child = child("tests::crash::writer", &data, "");
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        said.read_line(&mut text).unwrap();
        assert_eq!(text, "ready\n");
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..30_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        said.read_to_string(&mut text).unwrap();
        let complete = text
            .split_inclusive('\n')
            .filter_map(|l| l.strip_suffix('\n'));
        saved.extend(
            complete
                .filter_map(|line| line.strip_prefix("saved "))
                .map(str::to_owned),
        );
        let store = survived(&data);
        let found: std::collections::HashSet<String> = names(&store).await.into_iter().collect();
        let lost: Vec<&String> = saved.difference(&found).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        let stray: Vec<_> = std::fs::read_dir(&data)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("corrupt") || name.contains("portway-"))
            .collect();
        assert!(stray.is_empty(), "{stray:?}");
    }
    println!(
        "{rounds} kills, {} answered writes since the last wipe",
        saved.len()
    );
}

#[tokio::test]
async fn f6_a_second_process_is_refused_and_told_who_holds_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = child("tests::crash::holder", directory.path(), "");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let ready = lines.next().unwrap().unwrap();
    let pid: u32 = ready.strip_prefix("ready ").unwrap().parse().unwrap();

    let error = Store::open_files(directory.path()).err().unwrap();
    assert!(
        matches!(error.kind, StoreErrorKind::Locked { pid: Some(holder), .. } if holder == pid),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("(process {pid})")),
        "{error}"
    );

    child.kill().unwrap();
    child.wait().unwrap();
    let store = open(directory.path());
    assert!(Store::open_files(directory.path()).is_err());
    drop(store);
    open(directory.path());
}

/// Prints the error of a full disk.
#[tokio::test]
#[ignore = "the process with the small disk"]
async fn filler() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let store = Store::open_files(Path::new(&directory)).unwrap().store;
    let ballast = Path::new(&directory).join("ballast");
    std::fs::write(&ballast, vec![1; 128 * 1024]).unwrap();
    let mut failed = None;
    for i in 0..10_000 {
        let before = names(&store).await.len();
        assert_eq!(before, i);
        if let Err(error) = store.put_server(&record(&format!("s{i}"))).await {
            assert_eq!(names(&store).await.len(), before);
            failed = Some(error);
            break;
        }
    }
    let error = failed.unwrap();
    assert!(matches!(error.kind, StoreErrorKind::Full), "{error}");
    // There is room again: writes work.
    std::fs::remove_file(&ballast).unwrap();
    store.put_server(&record("again")).await.unwrap();
    let expected = names(&store).await;
    drop(store);
    // The disk may be too full for a backup, which gives a warning.
    let again = Store::open_files(Path::new(&directory)).unwrap().store;
    assert_eq!(names(&again).await, expected);
    eprintln!("held");
}

#[test]
fn f6_a_full_disk_is_an_error_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let unshare = "unshare --user --map-root-user --mount";
    let mount = format!("mount -t tmpfs -o size=256k none {path}");
    let possible = Command::new("sh")
        .args(["-c", &format!("{unshare} sh -c '{mount}'")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !needs::has(possible, "mount-namespaces") {
        return;
    }
    let me = std::env::current_exe().unwrap();
    let run = format!(
        "{mount} && exec {} --exact tests::crash::filler --ignored --nocapture",
        me.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec {unshare} sh -c '{run}'")])
        .env(DIRECTORY, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.contains("held"), "{said}");
}

/// Creates every file that a data directory can hold.
#[tokio::test]
#[ignore = "the process without a mask"]
async fn maker() {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let directory = Path::new(&directory);
    let store = Store::open_files(directory).unwrap().store;
    store.put_server(&record("one")).await.unwrap();
    admin_token(directory, None).unwrap();
    instance_id(directory).unwrap();
}

#[cfg(unix)]
#[test]
fn t_h2_files_are_private_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;

    let outer = tempfile::tempdir().unwrap();
    let data = outer.path().join("data");
    let output = child("tests::crash::maker", &data, "umask 000;")
        .wait_with_output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        files.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    files.sort();
    assert_eq!(
        files,
        [
            ".gitignore",
            "admin_token",
            "instance_id",
            "lock",
            "mcp_instances.journal",
            "mcp_instances.json",
            "mcp_instances.json.bak"
        ]
    );
}
