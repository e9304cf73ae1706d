//! SPEC B3, B6: a saved edit takes effect, however it was saved, and what
//! cannot be used changes nothing.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, PATIENCE, alive, eventually, fixture, fixtures, pid, setup};

/// Two running servers, of which one never changes; the time limit of the
/// other tells which save is in force without a restart.
fn file(timeout: u32) -> String {
    let mut file = fixtures(&[("steady", &[]), ("edited", &[])]);
    file["mcpServers"]["edited"]["timeout"] = json!(timeout);
    serde_json::to_string_pretty(&file).unwrap()
}

async fn up() -> (App, Value, Value) {
    let app = setup().file(".mcp.json", file(1000)).start().await;
    let steady = app.until_status("steady", "connected").await;
    let edited = app.until_status("edited", "connected").await;
    (app, steady, edited)
}

async fn in_force(app: &App, timeout: u32) {
    app.until("edited", |record| record["config"]["timeout"] == timeout)
        .await;
}

/// Waits until a server is defined, or is not.
async fn defined(app: &App, name: &str, there: bool) {
    let start = Instant::now();
    let path = format!("/api/mcp/servers/{name}");
    while (app.get(&path).await.status == 200) != there {
        assert!(start.elapsed() < PATIENCE, "{name}: {}", app.log());
    }
}

async fn source_error(app: &App) -> Option<String> {
    let sources = app.get("/api/mcp/sources").await.expect(200);
    sources[0]["error"].as_str().map(str::to_owned)
}

fn in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn renamed_over(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn in_pieces(path: &Path, text: &str) {
    let mut file = std::fs::File::create(path).unwrap();
    for piece in text.as_bytes().chunks(text.len() / 3 + 1) {
        std::thread::sleep(Duration::from_millis(120));
        file.write_all(piece).unwrap();
    }
}

fn deleted_and_made_anew(path: &Path, text: &str) {
    std::fs::remove_file(path).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    std::fs::write(path, text).unwrap();
}

fn old_one_kept_as_backup(path: &Path, text: &str) {
    std::fs::rename(path, path.with_extension("json~")).unwrap();
    std::fs::write(path, text).unwrap();
}

fn link_switched(path: &Path, text: &str) {
    let target = path.with_file_name(format!("target-{}", fastrand::u64(..)));
    std::fs::write(&target, text).unwrap();
    let link = path.with_extension("link");
    symlink(target, &link).unwrap();
    std::fs::rename(link, path).unwrap();
}

fn through_a_link(path: &Path, text: &str) {
    assert!(path.is_symlink());
    std::fs::write(path, text).unwrap();
}

/// As a tool that restores times does; the size is the same anyway.
fn with_the_old_time(path: &Path, text: &str) {
    let time = std::fs::metadata(path).unwrap().modified().unwrap();
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.set_modified(time).unwrap();
}

#[tokio::test]
async fn b6_every_way_of_saving_takes_effect() {
    let (app, steady, edited) = up().await;
    let path = app.path(".mcp.json");
    let ways: [(&str, fn(&Path, &str)); 8] = [
        ("written in place", in_place),
        ("renamed over", renamed_over),
        ("truncated and written in pieces", in_pieces),
        ("deleted and made anew", deleted_and_made_anew),
        ("old one kept as backup", old_one_kept_as_backup),
        ("with the old time", with_the_old_time),
        ("link switched", link_switched),
        ("written through a link", through_a_link),
    ];
    for round in 0..3 {
        for (n, (way, save)) in ways.iter().enumerate() {
            if !path.is_symlink() && *way == "written through a link" {
                continue;
            }
            let timeout = 2000 + round * 100 + n as u32;
            save(&path, &file(timeout));
            println!("{way}");
            in_force(&app, timeout).await;
        }
    }
    for (name, before) in [("steady", steady), ("edited", edited)] {
        let after = app.server(name).await;
        assert_eq!(
            (&after["pid"], &after["since"]),
            (&before["pid"], &before["since"])
        );
    }
    // Pieces and absence were seen on the way, and came to nothing.
    assert_eq!(source_error(&app).await, None);
}

#[tokio::test]
async fn b6_added_connect_removed_close_changed_are_replaced_unchanged_do_not_notice() {
    let app = setup()
        .mcp(fixtures(&[
            ("steady", &[]),
            ("changed", &["--exclusive", "lock"]),
            ("removed", &["--fork", "tree"]),
        ]))
        .start()
        .await;
    let mut before = Vec::new();
    for name in ["steady", "changed", "removed"] {
        before.push(app.until_status(name, "connected").await);
    }
    let text = fixtures(&[
        ("added", &[]),
        ("changed", &["--exclusive", "lock", "--tools", "2"]),
        ("steady", &[]),
    ]);
    renamed_over(&app.path(".mcp.json"), &text.to_string());
    defined(&app, "added", true).await;
    app.until_status("added", "connected").await;
    let fresh =
        |record: &Value| record["status"] == "connected" && record["pid"] != before[1]["pid"];
    let changed = app.until("changed", fresh).await;
    assert_eq!(changed["id"], before[1]["id"]);
    assert!(
        app.tools("changed")
            .await
            .contains(&"extra_0001".to_owned())
    );
    assert_eq!(std::fs::read(app.path("lock")).unwrap(), b"", "no overlap");
    let removed = pid(&before[2]);
    eventually("the removed one is gone", || !alive(removed)).await;
    app.get("/api/mcp/servers/removed").await.expect(404);
    let steady = app.server("steady").await;
    assert_eq!(
        (&steady["pid"], &steady["since"]),
        (&before[0]["pid"], &before[0]["since"])
    );
    let line = r#"added "added"; changed "changed"; removed "removed""#;
    eventually("the log says so", || app.log().contains(line)).await;
}

#[tokio::test]
async fn b6_one_stopped_by_hand_stays_so_until_its_definition_says_otherwise() {
    let (app, _, _) = up().await;
    app.act("edited", "stop").await;
    in_place(&app.path(".mcp.json"), &file(1001));
    in_force(&app, 1001).await;
    assert_eq!(app.server("edited").await["state"], "stopped");

    // Taken out and put back, it is a new one: added servers connect.
    let without = fixtures(&[("steady", &[])]).to_string();
    in_place(&app.path(".mcp.json"), &without);
    defined(&app, "edited", false).await;
    in_place(&app.path(".mcp.json"), &file(1002));
    defined(&app, "edited", true).await;
    app.until_status("edited", "connected").await;
}

/// What can become of a file, and what is then said of it.
fn damages() -> Vec<(&'static str, fn(&Path))> {
    let mut damages: Vec<(&str, fn(&Path))> = vec![
        ("not JSON", |path| {
            in_place(path, "{\"mcpServers\": nonsense}")
        }),
        ("not JSON", |path| {
            let text = file(3);
            in_place(path, &text[..text.len() / 2]);
        }),
        ("empty", |path| in_place(path, "")),
        ("empty", |path| in_place(path, "  // all of it\n")),
        ("must be an object", |path| in_place(path, "[]")),
        ("mcpServers: must be an object", |path| {
            in_place(path, "{\"mcpServers\": [1]}");
        }),
        ("mcpServers: is given twice", |path| {
            in_place(path, "{\"mcpServers\": {},\n\"mcpServers\": {}}");
        }),
        ("not JSON", |path| in_place(path, &"[".repeat(1 << 20))),
        ("not UTF-8", |path| {
            std::fs::write(path, b"{\"mcpServers\": {\"\xff\": {}}}").unwrap();
        }),
        ("is gone", |path| std::fs::remove_file(path).unwrap()),
        ("larger than 64 MiB", |path| {
            let file = std::fs::File::create(path).unwrap();
            file.set_len((64 << 20) + 1).unwrap();
        }),
        ("is not a regular file", |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
        ("is not a regular file", |path| {
            std::fs::remove_file(path).unwrap();
            nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        ("is gone", |path| {
            std::fs::remove_file(path).unwrap();
            symlink("nowhere", path).unwrap();
        }),
        ("may be written by everyone (mode 666)", |path| {
            mode(path, 0o666)
        }),
    ];
    if nix::unistd::geteuid().is_root() {
        damages.push(("belongs to user 65534", |path| {
            chown(path, Some(65534), None).unwrap();
        }));
    }
    damages
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn clear(path: &Path) {
    if path.is_dir() {
        std::fs::remove_dir(path).unwrap();
    } else if path.symlink_metadata().is_ok() {
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test]
async fn b3_a_file_that_cannot_be_used_keeps_its_last_good_state() {
    let (app, steady, edited) = up().await;
    let path = app.path(".mcp.json");
    let mut good = 1000;
    for (said, damage) in damages() {
        let complaints = app.log().matches("cannot be used").count();
        damage(&path);
        let start = Instant::now();
        let error = loop {
            if let Some(error) = source_error(&app).await {
                break error;
            }
            assert!(start.elapsed() < PATIENCE, "never: {said}");
        };
        assert!(error.contains(said), "{said}: {error}");
        let edit = app.patch("edited", json!({"timeout": 7})).await;
        if said == "is gone" && !path.is_symlink() {
            // The one case in which it can be written, as it last was.
            edit.expect(200);
            good = 7;
        } else {
            let refusal = edit.expect(409);
            assert!(refusal.to_string().contains(".mcp.json"), "{refusal}");
        }
        let record = app.server("edited").await;
        assert_eq!(record["config"]["timeout"], good, "{said}");
        assert_eq!(
            (&record["pid"], &record["status"]),
            (&edited["pid"], &json!("connected")),
            "{said}"
        );
        let told = app.log().matches("cannot be used").count();
        assert_eq!(told, complaints + 1, "{said}: {}", app.log());

        good += 1;
        clear(&path);
        in_place(&path, &file(good));
        in_force(&app, good).await;
        assert_eq!(source_error(&app).await, None, "{said}");
    }
    assert_eq!(app.server("steady").await["pid"], steady["pid"]);
}

/// The rights of a file do not stop root, so the program is somebody else.
#[tokio::test]
async fn b3_a_file_that_may_not_be_read_keeps_its_last_good_state() {
    let off = |timeout: u32| {
        let server = json!({"command": fixture(), "enabled": false, "timeout": timeout});
        json!({"mcpServers": {"edited": server}})
    };
    let app = setup().mcp(off(1)).for_nobody().start().await;
    let path = app.path(".mcp.json");
    in_force(&app, 1).await;
    mode(&path, 0o000);
    let start = Instant::now();
    while source_error(&app).await.is_none() {
        assert!(start.elapsed() < PATIENCE);
    }
    let error = source_error(&app).await.unwrap();
    assert!(error.contains("ermission denied"), "{error}");
    assert_eq!(app.server("edited").await["config"]["timeout"], 1);
    in_place(&path, &off(2).to_string());
    mode(&path, 0o644);
    in_force(&app, 2).await;
    assert_eq!(source_error(&app).await, None);
}

#[tokio::test]
async fn b3_a_server_that_became_bad_is_shown_and_mended_and_others_do_not_notice() {
    let (app, steady, edited) = up().await;
    let path = app.path(".mcp.json");
    in_place(&path, &file(1000).replace("1000", "\"soon\""));
    let bad = app.until_status("edited", "error").await;
    assert_eq!(bad["problems"][0]["field"], "timeout");
    assert_eq!(bad["id"], edited["id"]);
    let old = pid(&edited);
    eventually("what ran is gone", || !alive(old)).await;
    in_place(&path, &file(1001));
    in_force(&app, 1001).await;
    app.until_status("edited", "connected").await;
    assert_eq!(app.server("steady").await["pid"], steady["pid"]);
}

#[tokio::test]
async fn b6_a_storm_of_saves_ends_in_the_last_state_with_a_handful_of_reloads() {
    let app = setup()
        .file(".mcp.json", file(1000))
        .env("RUST_LOG", "portway=debug")
        .start()
        .await;
    let steady = app.until_status("steady", "connected").await;
    let reloads = || app.log().matches("the files were read").count();
    let before = reloads();
    let path = app.path(".mcp.json");
    let texts: Vec<String> = (3000..4000).map(file).collect();
    let start = Instant::now();
    for (n, text) in texts.iter().enumerate() {
        match n % 2 {
            0 => renamed_over(&path, text),
            _ => in_place(&path, text),
        }
        // Ten at a time: a timer is not fine enough for one.
        if n % 10 == 9 {
            let due = Duration::from_millis(n as u64);
            tokio::time::sleep(due.saturating_sub(start.elapsed())).await;
        }
    }
    let storm = start.elapsed();
    in_force(&app, 3999).await;
    // The last look at what may have been saved twice in one second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let read = reloads() - before;
    println!("1000 saves in {storm:?}: {read} reloads");
    let most = 6 + 3 * storm.as_secs() as usize;
    assert!(read <= most, "{read} reloads in {storm:?}");
    assert_eq!(app.server("edited").await["config"]["timeout"], 3999);
    assert_eq!(app.server("steady").await["pid"], steady["pid"]);
}
