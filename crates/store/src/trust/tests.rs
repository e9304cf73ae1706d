use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::Store;
use config::settings::ServeOptions;

/// A project and a home of its own.
struct TestHome {
    dir: tempfile::TempDir,
}

impl TestHome {
    fn new() -> TestHome {
        let dir = tempfile::tempdir().unwrap();
        for name in ["project", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        TestHome { dir }
    }

    fn project(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("project")
    }

    fn data(&self) -> PathBuf {
        self.project().join("data")
    }

    fn settings(&self, named: bool, home: bool) -> Settings {
        let options = ServeOptions {
            data_dir: named.then(|| self.data()),
            ..ServeOptions::default()
        };
        let path = self.dir.path().join("home").display().to_string();
        let home = home.then(|| ("HOME".to_owned(), path));
        let environment: BTreeMap<String, String> = home.into_iter().collect();
        Settings::load(options, &environment, self.project()).unwrap()
    }

    /// Creates the files that a Portway from before marks leaves behind.
    fn fill(&self) {
        let data = self.data();
        let store = Store::open_files(&data).unwrap().store;
        key::admin_token(&data, None).unwrap();
        key::session_secret(&data, None).unwrap();
        key::instance_id(&data).unwrap();
        drop(store);
    }

    fn put(&self, name: &str, text: &str, mode: u32) {
        let path = self.data().join(name);
        fs::create_dir_all(self.data()).unwrap();
        let _ = fs::remove_file(&path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn refuses(&self, why: &str) {
        let error = claim(&self.settings(false, true)).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
        assert!(error.contains("--data-dir"), "{error}");
        assert!(!self.data().join(MARK).exists());
        // A directory that the user names is trusted.
        assert!(is_trusted(&self.settings(true, true)).is_ok());
        assert!(is_trusted(&self.settings(false, true)).is_err());
    }
}

#[test]
fn t_what_portway_made_counts_and_is_marked() {
    let house = TestHome::new();
    let settings = house.settings(false, true);
    assert!(is_trusted(&settings).is_ok(), "nothing is there");
    assert_eq!(claim(&settings).unwrap(), Vec::<String>::new());
    house.fill();
    assert!(is_trusted(&settings).is_ok());
    assert_eq!(claim(&settings).unwrap(), Vec::<String>::new());
    let state = settings.state_dir.as_ref().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(state), 0o700);
    for entry in fs::read_dir(state).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    assert_eq!(mode(&house.data()), 0o700);
    // A mark that is copied elsewhere is not valid there.
    let other = TestHome::new();
    other.fill();
    fs::copy(house.data().join(MARK), other.data().join(MARK)).unwrap();
    let mut there = other.settings(false, true);
    there.state_dir.clone_from(&settings.state_dir);
    assert!(is_trusted(&there).is_err());
    // Nor is a different mark in the same place.
    house.put(MARK, &"0".repeat(43), 0o600);
    assert!(is_trusted(&settings).is_err());
}

#[tokio::test]
async fn t_secrets_without_a_mark_are_put_aside_and_records_stay() {
    let house = TestHome::new();
    house.fill();
    let key = {
        let opened = Store::open_files(&house.data()).unwrap();
        let key = crate::ApiKey::random().unwrap();
        let new = crate::NewEntry {
            owner: "me".into(),
            name: "desk".into(),
            enabled: true,
            key: key.record(None),
            exposes: crate::ExposedServers::default(),
            filter: None,
            bindings: Vec::new(),
        };
        opened.store.create_entry(new, None).await.unwrap();
        key.digest()
    };
    let settings = house.settings(false, true);
    let data = house.data();
    let read = |name: &str| fs::read(data.join(name)).unwrap();
    let (token, secret) = (read("admin_token"), read("session_secret"));
    assert!(is_trusted(&settings).is_err());
    let notes = claim(&settings).unwrap();
    for words in [
        "new secrets replace admin_token and session_secret",
        "the keys of its 1 entries stay valid",
        "--data-dir",
    ] {
        assert!(notes[0].contains(words), "{words}: {notes:?}");
    }
    for (name, before) in [("admin_token", token), ("session_secret", secret)] {
        assert!(!data.join(name).exists());
        let aside = format!("{name}.unverified");
        assert_eq!(read(&aside), before);
        let mode = fs::metadata(data.join(aside)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(is_trusted(&settings).is_ok());
    let store = Store::open_files(&data).unwrap().store;
    assert!(matches!(store.grant(&key), crate::GrantLookup::Yes(_)));
    drop(store);
    // From now on the directory is ours, and the new secrets are kept.
    let made = key::admin_token(&data, None).unwrap();
    assert_eq!(claim(&settings).unwrap(), Vec::<String>::new());
    assert!(key::admin_token(&data, None).unwrap() == made);
}

#[test]
fn t_a_directory_that_is_named_once_keeps_its_secrets() {
    let house = TestHome::new();
    house.fill();
    let token = key::known_admin_token(&house.data());
    let notes = claim(&house.settings(true, true)).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    let notes = claim(&house.settings(false, true)).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    assert!(token.is_some() && key::known_admin_token(&house.data()) == token);
}

#[test]
fn t_where_no_mark_can_be_kept_a_volume_keeps_its_secrets() {
    let house = TestHome::new();
    house.fill();
    let token = key::known_admin_token(&house.data());
    let mut blocked = house.settings(false, true);
    let file = house.project().join("file");
    fs::write(&file, "").unwrap();
    blocked.state_dir = Some(file.join("state"));
    for settings in [house.settings(false, false), blocked] {
        let notes = claim(&settings).unwrap();
        assert!(notes[0].contains("all of it is believed"), "{notes:?}");
        assert!(notes[1].contains("cannot be marked"), "{notes:?}");
        assert!(token.is_some() && key::known_admin_token(&house.data()) == token);
    }
}

#[test]
fn t_a_directory_that_came_with_the_project_is_refused() {
    let token = "x".repeat(40);
    for (name, text, mode, why) in [
        ("admin_token", "x", 0o600, "admin_token is shorter than 32"),
        (
            "admin_token",
            token.as_str(),
            0o666,
            "others may use admin_token (mode 666",
        ),
        (
            "admin_token",
            token.as_str(),
            0o640,
            "others may use admin_token (mode 640",
        ),
        (
            "address",
            "http://evil",
            0o666,
            "others may write address (mode 666",
        ),
    ] {
        let house = TestHome::new();
        house.put(name, text, mode);
        house.refuses(why);
    }
    for name in [
        "lock",
        "clients",
        "admin_token",
        "mcp_instances.json",
        "gateway.log",
    ] {
        let house = TestHome::new();
        house.put("plain", "", 0o600);
        let target = house.project().join("precious");
        fs::write(&target, "precious").unwrap();
        symlink(&target, house.data().join(name)).unwrap();
        house.refuses(&format!("{name} is a link"));
        fs::remove_file(house.data().join(name)).unwrap();
        fs::hard_link(&target, house.data().join(name)).unwrap();
        house.refuses(&format!("{name} is a link"));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
    let house = TestHome::new();
    house.put("lock", "1", 0o600);
    fs::set_permissions(house.data(), fs::Permissions::from_mode(0o777)).unwrap();
    house.refuses("others may write to it (mode 777");
    let house = TestHome::new();
    fs::create_dir(house.project().join("other")).unwrap();
    symlink("other", house.data()).unwrap();
    let error = claim(&house.settings(false, true)).unwrap_err().to_string();
    assert!(error.contains("it is a symbolic link"), "{error}");
}

#[test]
fn t_what_git_tracks_is_refused_and_nothing_is_added_to_it() {
    let house = TestHome::new();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let command = command.args(args).current_dir(house.project());
        let done = command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q"]);
    house.fill();
    git(&["add", "-f", "data/admin_token"]);
    house.refuses("admin_token is tracked by git");
    git(&["rm", "-q", "--cached", "data/admin_token"]);
    // As a repository of its own, which a submodule is.
    let own = |args: &[&str]| git(&[&["-C", "data"], args].concat());
    own(&["init", "-q"]);
    own(&["add", "-f", "session_secret"]);
    house.refuses("session_secret is tracked by git");
    fs::remove_dir_all(house.data().join(".git")).unwrap();
    // The directory holds a project's own files, and its own ignore rules.
    house.put("figures.csv", "1,2", 0o644);
    house.put(".gitignore", "!admin_token", 0o644);
    claim(&house.settings(false, true)).unwrap();
    git(&["add", "-A"]);
    let staged = git(&["ls-files"]);
    assert_eq!(staged, "data/.gitignore\ndata/figures.csv\n");
    // A second call changes nothing.
    let text = fs::read(house.data().join(IGNORE)).unwrap();
    claim(&house.settings(false, true)).unwrap();
    assert_eq!(fs::read(house.data().join(IGNORE)).unwrap(), text);
}

#[test]
fn k3_a_directory_of_ours_is_nothing_for_git() {
    let house = TestHome::new();
    claim(&house.settings(false, true)).unwrap();
    let ignored = house.data().join(IGNORE);
    assert_eq!(fs::read_to_string(&ignored).unwrap(), "*\n");
    fs::remove_file(&ignored).unwrap();
    claim(&house.settings(false, true)).unwrap();
    assert_eq!(fs::read_to_string(&ignored).unwrap(), "*\n");
}

#[test]
fn t_a_named_volume_works_as_a_cluster_mounts_it() {
    let house = TestHome::new();
    house.fill();
    fs::set_permissions(house.data(), fs::Permissions::from_mode(0o2775)).unwrap();
    let token = house.data().join("admin_token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o660)).unwrap();
    // There is no writable home either.
    let notes = claim(&house.settings(true, false)).unwrap();
    assert!(
        notes.iter().any(|note| note.contains("mode 660")),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|note| note.contains("HOME is not set")),
        "{notes:?}"
    );
    assert!(is_trusted(&house.settings(true, false)).is_ok());
    assert!(is_trusted(&house.settings(false, false)).is_err());
}
