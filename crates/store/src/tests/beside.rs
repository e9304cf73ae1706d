//! Another application's `mcp_instances.json` in the data directory (SPEC E9).

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::*;

const FILE: &str = "mcp_instances.json";
const OURS: &str = "portway_instances.json";

const THEIRS: &[&str] = &[
    r#"[{"api_key": "old-key-of-seven", "name": "seven", "status": 1, "port": 4000}]"#,
    r#"{"version": 2, "instances": {"7": {"key": "old-key", "name": "seven", "status": true}}}"#,
    "{}",
    "[]",
    "key;name;status\nold-key;seven;1\n",
    // Read after the file was emptied and before its end was written.
    "",
    "{\"version\": 2, \"instances\": {\"7\": {\"ke",
    "{\"version\":2,\"inst",
];

/// Content, inode and times.
fn stamp(path: &Path) -> (Vec<u8>, u64, i64, i64) {
    let metadata = fs::metadata(path).unwrap();
    let content = fs::read(path).unwrap();
    (
        content,
        metadata.ino(),
        metadata.mtime_nsec(),
        metadata.ctime_nsec(),
    )
}

#[tokio::test]
async fn e9_a_file_of_another_application_is_left_as_it_is() {
    for theirs in THEIRS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, theirs).unwrap();
        let before = stamp(&path);
        for round in 0..3 {
            let opened = Store::open_files(directory.path()).unwrap();
            let warning = opened.warnings.join("\n");
            for words in [FILE, "another application", OURS, "portway migrate --from"] {
                assert!(warning.contains(words), "{words:?} in {warning:?}");
            }
            assert_eq!(names(&opened.store).await.len(), round, "{theirs}");
            let name = format!("s{round}");
            opened.store.put_server(&record(&name)).await.unwrap();
        }
        assert_eq!(stamp(&path), before, "{theirs}");
        assert!(directory.path().join(OURS).exists());
        for file in fs::read_dir(directory.path()).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(!name.contains(".corrupt-"), "{name}");
        }
        // When the other application has gone, our records stay where they are.
        fs::remove_file(&path).unwrap();
        let opened = Store::open_files(directory.path()).unwrap();
        assert_eq!(opened.warnings, Vec::<String>::new());
        assert_eq!(names(&opened.store).await, ["s0", "s1", "s2"]);
    }
}

#[tokio::test]
async fn e9_own_records_come_along_when_another_takes_their_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.put_server(&record("one")).await.unwrap();
    drop(store);
    let path = directory.path().join(FILE);
    fs::write(&path, THEIRS[0]).unwrap();
    let before = stamp(&path);
    // A start that was interrupted before it had copied everything.
    let (journal, ours) = ("mcp_instances.journal", "portway_instances.journal");
    fs::copy(directory.path().join(journal), directory.path().join(ours)).unwrap();
    for _ in 0..2 {
        let opened = Store::open_files(directory.path()).unwrap();
        assert_eq!(names(&opened.store).await, ["one"]);
        assert!(opened.warnings[0].contains("another application"));
    }
    assert_eq!(stamp(&path), before);
}

#[tokio::test]
async fn f6_an_empty_file_and_a_torn_one_of_ours_are_put_aside() {
    for torn in ["", "\0\0\0", "{\"version\":1,\"generation\":3,\"saved"] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        store.put_server(&record("one")).await.unwrap();
        drop(store);
        fs::write(directory.path().join(FILE), torn).unwrap();
        let opened = Store::open_files(directory.path()).unwrap();
        assert!(
            opened.warnings[0].contains("put aside"),
            "{:?}",
            opened.warnings
        );
        assert!(!directory.path().join(OURS).exists());
        assert_eq!(names(&opened.store).await, ["one"]);
    }
}
