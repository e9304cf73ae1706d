use std::fs;

use super::*;

const FILE: &str = "mcp_instances.json";
const BACKUP: &str = "mcp_instances.json.bak";

/// A directory with three records, and the same three in the backup.
async fn prepared() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for name in ["one", "two", "three"] {
        store.put_server(&record(name)).await.unwrap();
    }
    drop(store);
    directory
}

fn put_aside(directory: &Path) -> Vec<Vec<u8>> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".corrupt-"))
        .map(|path| fs::read(path).unwrap())
        .collect()
}

/// Every kind of damage that needs no decision of a person.
fn damages(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(good.to_vec()).unwrap();
    vec![
        ("empty", vec![]),
        ("NUL-filled", vec![0; good.len()]),
        ("truncated", good[..good.len() / 2].to_vec()),
        ("short of a byte", good[..good.len() - 2].to_vec()),
        (
            "NUL at the end",
            [&good[..good.len() - 200], &[0; 200]].concat(),
        ),
        (
            "one letter changed",
            text.replace("\"three\"", "\"thr3e\"").into_bytes(),
        ),
        (
            "an older format",
            text.replace("\"version\":1", "\"version\":0").into_bytes(),
        ),
        ("no envelope", b"{\"servers\": {}}\n".to_vec()),
        ("not JSON", b"hello".to_vec()),
        ("not text", vec![0xff, 0xfe, 0x00, 0x01]),
        ("trailing garbage", [good, b"{}"].concat()),
    ]
}

#[tokio::test]
async fn f6_a_damaged_file_is_put_aside_and_the_backup_used() {
    let good = fs::read(prepared().await.path().join(FILE)).unwrap();
    for (what, damaged) in damages(&good) {
        let directory = prepared().await;
        let damaged = match what {
            "no envelope" | "not JSON" | "not text" | "empty" => damaged,
            _ => {
                // The same damage to this directory's own file.
                let own = fs::read(directory.path().join(FILE)).unwrap();
                damages(&own)
                    .into_iter()
                    .find(|(name, _)| *name == what)
                    .unwrap()
                    .1
            }
        };
        fs::write(directory.path().join(FILE), &damaged).unwrap();

        let opened = Store::open_files(directory.path()).unwrap();
        assert_eq!(
            names(&opened.store).await,
            ["one", "two", "three"],
            "{what}"
        );
        assert_eq!(opened.warnings.len(), 1, "{what}");
        assert!(
            opened.warnings[0].contains("put aside as"),
            "{:?}",
            opened.warnings
        );
        assert!(
            opened.warnings[0].contains("backup"),
            "{:?}",
            opened.warnings
        );
        assert_eq!(put_aside(directory.path()), [damaged], "{what}");
        drop(opened);

        assert_eq!(
            names(&open(directory.path())).await,
            ["one", "two", "three"]
        );
    }
}

#[tokio::test]
async fn f6_without_a_usable_backup_it_starts_empty_and_says_so() {
    let directory = prepared().await;
    fs::write(directory.path().join(FILE), b"x").unwrap();
    fs::write(directory.path().join(BACKUP), b"y").unwrap();
    let opened = Store::open_files(directory.path()).unwrap();
    assert!(names(&opened.store).await.is_empty());
    assert!(
        opened.warnings[0].contains("starting empty"),
        "{:?}",
        opened.warnings
    );
    assert_eq!(put_aside(directory.path()).len(), 2);
    drop(opened);

    let directory = prepared().await;
    fs::write(directory.path().join(FILE), b"x").unwrap();
    fs::remove_file(directory.path().join(BACKUP)).unwrap();
    let opened = Store::open_files(directory.path()).unwrap();
    assert!(
        opened.warnings[0].contains("no backup"),
        "{:?}",
        opened.warnings
    );
}

#[tokio::test]
async fn f6_a_missing_file_is_taken_from_the_backup() {
    let directory = prepared().await;
    fs::remove_file(directory.path().join(FILE)).unwrap();
    let opened = Store::open_files(directory.path()).unwrap();
    assert_eq!(names(&opened.store).await, ["one", "two", "three"]);
    assert!(opened.warnings[0].contains("is missing"));
    assert!(directory.path().join(FILE).exists());
}

#[tokio::test]
async fn f6_a_file_of_a_newer_portway_is_left_alone() {
    let directory = prepared().await;
    let path = directory.path().join(FILE);
    let newer = fs::read_to_string(&path)
        .unwrap()
        .replace("\"version\":1", "\"version\":2");
    fs::write(&path, &newer).unwrap();
    let error = Store::open_files(directory.path()).err().unwrap();
    assert!(matches!(error.kind, StoreErrorKind::Corrupt(_)));
    assert!(error.to_string().contains("newer Portway"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

#[tokio::test]
async fn f6_what_a_crash_left_is_swept() {
    let directory = prepared().await;
    let stray = directory.path().join(".mcp_instances.json.portway-abc");
    fs::write(&stray, b"half").unwrap();
    let others = directory.path().join("notes.txt");
    fs::write(&others, b"mine").unwrap();
    open(directory.path());
    assert!(!stray.exists());
    assert!(others.exists());
}

#[tokio::test]
async fn f6_a_failed_write_changes_nothing_and_the_next_may_succeed() {
    let outer = tempfile::tempdir().unwrap();
    let (data, away) = (outer.path().join("data"), outer.path().join("away"));
    let store = open(&data);
    store.put_server(&record("one")).await.unwrap();
    fs::rename(&data, &away).unwrap();
    let error = store.put_server(&record("two")).await.unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Io { .. }), "{error}");
    assert_eq!(names(&store).await, ["one"]);
    fs::rename(&away, &data).unwrap();
    store.put_server(&record("three")).await.unwrap();
    assert_eq!(names(&store).await, ["one", "three"]);
}

#[tokio::test]
async fn f6_the_backup_follows_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    store.put_server(&record("one")).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !directory.path().join(BACKUP).exists() {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(
        fs::read(directory.path().join(FILE)).unwrap(),
        fs::read(directory.path().join(BACKUP)).unwrap()
    );
}
