use std::fs;

use super::super::file::read;
use super::*;
use config::Secret;

#[test]
fn k1_the_admin_token_is_made_once_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let made = admin_token(directory.path(), None).unwrap();
    assert!(made.expose().starts_with("pwa_"));
    assert_eq!(made.expose().len(), 4 + 43);
    let again = admin_token(directory.path(), None).unwrap();
    assert!(again == made);
    assert_eq!(format!("{made:?}"), "***");

    let given = Secret::new("given-by-the-environment");
    assert!(admin_token(directory.path(), Some(&given)).unwrap() == given);

    fs::write(directory.path().join("admin_token"), "").unwrap();
    let error = admin_token(directory.path(), None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("remove it to have a new one made"),
        "{error}"
    );
}

#[test]
fn k1_the_secret_of_sessions_is_made_once_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let made = session_secret(directory.path(), None).unwrap();
    assert_eq!(made.expose().len(), 43);
    assert!(session_secret(directory.path(), None).unwrap() == made);
    assert!(admin_token(directory.path(), None).unwrap() != made);

    let given = Secret::new("the same on every replica, and long enough");
    assert!(session_secret(directory.path(), Some(&given)).unwrap() == given);

    fs::write(directory.path().join("session_secret"), "short\n").unwrap();
    assert!(session_secret(directory.path(), None).is_err());
}

#[test]
fn the_instance_id_stays() {
    let directory = tempfile::tempdir().unwrap();
    let id = instance_id(directory.path()).unwrap();
    assert_eq!(instance_id(directory.path()).unwrap(), id);
}

#[test]
fn b7_a_file_is_replaced_only_if_it_is_what_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".mcp.json");
    let changed = |result| matches!(result, Err(ReplaceError::Changed));

    replace(&path, None, b"one", 0o600).unwrap();
    assert!(changed(replace(&path, None, b"two", 0o600)));
    assert!(changed(replace(&path, Some(b"other"), b"two", 0o600)));
    assert_eq!(read(&path).unwrap().unwrap(), b"one");
    replace(&path, Some(b"one"), b"two", 0o600).unwrap();
    assert_eq!(read(&path).unwrap().unwrap(), b"two");
    fs::remove_file(&path).unwrap();
    assert!(changed(replace(&path, Some(b"two"), b"three", 0o600)));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn b7_mode_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let real = directory.path().join("dotfiles.json");
    let link = directory.path().join(".mcp.json");
    fs::write(&real, b"one").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles.json", &link).unwrap();

    replace(&link, Some(b"one"), b"two", 0o600).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"two");
    assert_eq!(mode(&real), 0o640);

    let new = directory.path().join("new.json");
    replace(&new, None, b"x", 0o644).unwrap();
    assert_eq!(mode(&new), 0o644);
}

/// The file is two numbers. An editor increments the first and overwrites the
/// file; we increment the second. The first must never decrease.
#[test]
fn b7_no_save_of_an_editor_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".mcp.json");
    let numbers = |path: &Path| -> (u32, u32) {
        let text = fs::read_to_string(path).unwrap();
        let (a, b) = text.split_once(' ').unwrap();
        (a.parse().unwrap(), b.parse().unwrap())
    };
    fs::write(&path, "0 0").unwrap();
    let saves = 300;
    let editor = {
        let path = path.clone();
        let copy = directory.path().join("editor~");
        std::thread::spawn(move || {
            for save in 1..=saves {
                let (_, ours) = numbers(&path);
                fs::write(&copy, format!("{save} {ours}")).unwrap();
                fs::rename(&copy, &path).unwrap();
            }
        })
    };
    let (mut done, mut met, mut highest) = (0, 0, 0);
    while !editor.is_finished() || done < 50 {
        let seen = read(&path).unwrap().unwrap();
        let text = String::from_utf8(seen.clone()).unwrap();
        let (theirs, ours) = text.split_once(' ').unwrap();
        let theirs: u32 = theirs.parse().unwrap();
        let raised = format!("{theirs} {}", ours.parse::<u32>().unwrap() + 1);
        match replace(&path, Some(&seen), raised.as_bytes(), 0o600) {
            Ok(()) => done += 1,
            Err(ReplaceError::Changed) => met += 1,
            Err(ReplaceError::Io(error)) => panic!("{error}"),
        }
        highest = highest.max(theirs);
    }
    editor.join().unwrap();
    assert_eq!(numbers(&path).0, saves);
    println!("{done} replaced, {met} met an editor's save");
}

#[cfg(unix)]
#[test]
fn t_a5_a_file_others_may_write_is_refused_with_the_reason() {
    use std::os::unix::fs::{PermissionsExt, chown};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".mcp.json");
    assert!(read_trusted(&path).unwrap().is_none());
    fs::write(&path, b"{}").unwrap();
    for (mode, refusal) in [
        (0o600, None),
        (0o644, None),
        (0o666, Some("everyone")),
        (0o602, Some("everyone")),
    ] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match (read_trusted(&path), refusal) {
            (Ok(Some(bytes)), None) => assert_eq!(bytes, b"{}"),
            (Err(ReadError::Untrusted(reason)), Some(who)) => {
                assert!(reason.contains(who) && reason.contains("chmod"), "{reason}");
            }
            (other, _) => panic!("{mode:o}: {other:?}"),
        }
    }
    // Only root may change the owner of a file.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    if nix::unistd::geteuid().is_root() {
        chown(&path, Some(65534), None).unwrap();
        let refusal = read_trusted(&path).unwrap_err().to_string();
        assert!(refusal.contains("belongs to user 65534"), "{refusal}");
        chown(&path, Some(0), Some(65534)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let refusal = read_trusted(&path).unwrap_err().to_string();
        assert!(refusal.contains("its group"), "{refusal}");
    }
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(read_trusted(&path), Err(ReadError::Untrusted(_))));
}
