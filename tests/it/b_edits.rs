//! SPEC B7: edits through the API, in files that people edit too.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::app::{App, eventually, fixture, setup};
use crate::process::forest::rounds;

fn read(app: &App) -> String {
    std::fs::read_to_string(app.path(".mcp.json")).unwrap()
}

#[tokio::test]
async fn h9_a_definition_with_a_bad_name_is_renamed_and_keeps_the_rest() {
    let name = "my/server: 1";
    let env = json!({"TOKEN": "s3cret-value"});
    let servers = json!({name: {"command": "x", "enabled": false, "env": env, "note": "mine"}});
    let app = setup().mcp(json!({"mcpServers": servers})).start().await;
    let all = app.get("/api/mcp/servers").await.expect(200);
    let id = all[0]["id"].as_str().unwrap();
    assert_eq!(
        (&all[0]["name"], &all[0]["config"]),
        (&json!(name), &Value::Null)
    );
    assert_eq!(all[0]["problems"][0]["field"], "name");

    let unnamed = app.patch(id, json!({"timeout": 5000})).await.expect(422);
    assert_eq!(unnamed["error"]["details"][0]["field"], "name");
    let still_bad = app.patch(id, json!({"name": "a/b"})).await.expect(422);
    assert_eq!(still_bad["error"]["details"][0]["field"], "name");

    let renamed = app
        .patch(id, json!({"name": "my-server"}))
        .await
        .expect(200);
    assert_eq!(renamed["name"], "my-server");
    assert_eq!(renamed["config"]["env"]["TOKEN"], "***");
    let file: Value = serde_json::from_str(&read(&app)).unwrap();
    let kept = json!({"command": "x", "enabled": false, "env": env, "note": "mine"});
    assert_eq!(file["mcpServers"], json!({"my-server": kept}));
}

/// A file as a person keeps it: a byte order mark, tabs, Windows line ends,
/// comments everywhere, a trailing comma, fields of other tools.
fn kept_by_hand() -> String {
    let text = "\u{feff}// our servers\n\
        {\n\
        \t\"$schema\": \"./schema.json\",\n\
        \t/* the main part */\n\
        \t\"mcpServers\": {\n\
        \t\t// first\n\
        \t\t\"one\": { \"command\": \"x\", \"enabled\": false, \"note\": \"mine\" }, // keep\n\
        \n\
        \t\t\"two\": {\n\
        \t\t\t\"enabled\" : false,   // off for now\n\
        \t\t\t\"command\": \"y\",\n\
        \t\t\t\"args\": [\"-a\", /* why? */ \"-b\"],\n\
        \t\t},\n\
        \t},\n\
        \t\"inputs\": [ ],\n\
        }\n\
        // the end\n";
    text.replace('\n', "\r\n")
}

#[tokio::test]
async fn b7_an_edit_keeps_everything_else_as_it_is() {
    let app = setup();
    let real = app.path().join("dotfiles.json");
    std::fs::write(&real, kept_by_hand()).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles.json", app.path().join(".mcp.json")).unwrap();
    let app = app.start().await;
    let mut expected = kept_by_hand();
    let mut change = |old: &str, new: &str| {
        assert_eq!(expected.matches(old).count(), 1, "{old:?} in {expected}");
        expected = expected.replace(old, new);
        expected.clone()
    };

    let patch = json!({"timeout": 5000, "args": ["-a", "-c"]});
    app.patch("two", patch).await.expect(200);
    let old = "/* why? */ \"-b\"],\r\n";
    let new = "/* why? */ \"-c\"],\r\n\t\t\t\"timeout\": 5000,\r\n";
    assert_eq!(read(&app), change(old, new));

    let rename = json!({"name": "uno", "command": "z"});
    app.patch("one", rename).await.expect(200);
    let one = "\"one\": { \"command\": \"x\"";
    assert_eq!(read(&app), change(one, "\"uno\": { \"command\": \"z\""));

    let three = json!({"name": "three", "command": "w", "enabled": false});
    app.post("/api/mcp/servers", three).await.expect(201);
    let added = "\t\t},\r\n\t\t\"three\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\
                 \t\t\t\"transport\": \"stdio\",\r\n\t\t\t\"command\": \"w\",\r\n\
                 \t\t\t\"enabled\": false\r\n\t\t},\r\n\t},\r\n\t\"inputs\"";
    assert_eq!(read(&app), change("\t\t},\r\n\t},\r\n\t\"inputs\"", added));

    assert_eq!(app.delete("three").await.status, 204);
    assert_eq!(read(&app), change(added, "\t\t},\r\n\t},\r\n\t\"inputs\""));

    let mode = std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
    assert!(app.path(".mcp.json").is_symlink());
    let litter = std::fs::read_dir(app.path("")).unwrap();
    let names: Vec<_> = litter.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(
        names.len(),
        4,
        "data, its mark, the link and the file: {names:?}"
    );
    assert!(!app.log().contains("ERROR"), "{}", app.log());
}

#[tokio::test]
async fn b7_the_echo_of_our_own_write_changes_nothing() {
    let app = setup()
        .env("RUST_LOG", "portway=debug")
        .mcp(json!({"mcpServers": {
            "one": {"command": fixture(), "args": ["--instance-file", "starts"]},
            "other": {"command": fixture()},
        }}))
        .start()
        .await;
    let one = app.until_status("one", "connected").await;
    let other = app.until_status("other", "connected").await;
    let echoes = || app.log().matches("no server changed").count();
    // The follower reads each state of a file at once and once more when it
    // is old: first the one it began with, then the one we wrote.
    eventually("the file as it was", || echoes() == 2).await;
    app.patch("one", json!({"env": {"A": "b"}}))
        .await
        .expect(200);
    let fresh = |record: &Value| record["status"] == "connected" && record["pid"] != one["pid"];
    let changed = app.until("one", fresh).await;
    eventually("both echoes", || echoes() >= 4).await;
    let now = app.server("one").await;
    assert_eq!(
        (&now["pid"], &now["since"]),
        (&changed["pid"], &changed["since"])
    );
    assert_eq!(app.server("other").await["since"], other["since"]);
    let starts = std::fs::read_to_string(app.path("starts")).unwrap();
    assert_eq!(starts.lines().count(), 2, "{starts}");
    assert_eq!(app.log().matches("changed \"one\"").count(), 1);
}

/// Between a save and its reload, the API knows an older state than the file.
#[tokio::test]
async fn b7_what_was_just_saved_by_hand_is_not_undone() {
    let off = |args: &[&str]| json!({"command": "x", "args": args, "enabled": false});
    let app = setup()
        .mcp(json!({"mcpServers": {"one": off(&["old"])}}))
        .start()
        .await;
    let path = app.path(".mcp.json");
    let save = |servers: Value| {
        let text = serde_json::to_string_pretty(&json!({ "mcpServers": servers })).unwrap();
        std::fs::write(&path, text).unwrap();
    };
    let saved = || -> Value { serde_json::from_str(&read(&app)).unwrap() };

    // A part is changed on what is there now.
    save(json!({"one": off(&["mine"]), "new": off(&[])}));
    let record = app.patch("one", json!({"timeout": 9})).await.expect(200);
    assert_eq!(record["config"]["args"], json!(["mine"]));
    assert_eq!(record["config"]["timeout"], 9);
    assert_eq!(saved()["mcpServers"]["one"]["args"], json!(["mine"]));
    app.server("new").await;

    // A whole definition that was made from an older one is not written.
    let put = |args: &[&str]| app.send("PUT", "/api/mcp/servers/one", Some(off(args).to_string()));
    save(json!({"one": off(&["mine again"])}));
    let refusal = put(&["theirs"]).await.expect(409);
    assert!(
        refusal.to_string().contains("has just been changed"),
        "{refusal}"
    );
    assert_eq!(saved()["mcpServers"]["one"]["args"], json!(["mine again"]));
    // The refusal has shown them what there is; now they mean it.
    put(&["theirs"]).await.expect(200);
    assert_eq!(saved()["mcpServers"]["one"]["args"], json!(["theirs"]));

    // A name that has just come into the file is taken.
    save(json!({"one": off(&[]), "two": off(&["mine"])}));
    let mut two = off(&["theirs"]);
    two["name"] = json!("two");
    let refusal = app.post("/api/mcp/servers", two).await.expect(409);
    assert!(refusal.to_string().contains("two"), "{refusal}");
    assert_eq!(saved()["mcpServers"]["two"]["args"], json!(["mine"]));
    save(json!({"one": off(&[]), "three": off(&["mine"])}));
    app.patch("one", json!({"name": "three"})).await.expect(409);
    assert_eq!(saved()["mcpServers"]["three"]["args"], json!(["mine"]));

    // One that has just gone is not brought back.
    save(json!({"three": off(&["mine"])}));
    app.patch("one", json!({"timeout": 9})).await.expect(404);
    assert_eq!(saved()["mcpServers"], json!({"three": off(&["mine"])}));
}

fn in_place(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn renamed_over(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Opens without emptying, and thinks for a moment before it writes.
fn opened_long_before(path: &Path, text: &str) {
    use std::io::Write;
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    std::thread::sleep(Duration::from_millis(fastrand::u64(0..4)));
    file.write_all(text.as_bytes()).unwrap();
    file.set_len(text.len() as u64).unwrap();
}

/// A person who counts up in a comment, and looks each time whether the last
/// number is still there. For an instant it may not be: a save that comes
/// between our look and our write is put back at once.
fn person(path: &Path, stop: &AtomicBool, save: fn(&Path, &str)) -> u32 {
    let mut count = 0;
    let mark = |count: u32| format!("// save {count:06}\n");
    while !stop.load(Ordering::Relaxed) {
        let mut looks = 0..100;
        let rest = loop {
            let text = std::fs::read_to_string(path).unwrap();
            match text.strip_prefix(&mark(count)) {
                Some(rest) => break rest.to_owned(),
                None if looks.next().is_none() => panic!("save {count} is lost: {text:?}"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        count += 1;
        save(path, &(mark(count) + &rest));
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..6)));
    }
    count
}

#[tokio::test]
async fn b7_nothing_is_lost_when_a_person_and_the_api_save_at_the_same_moment() {
    for (way, save) in [
        ("renamed over", renamed_over as fn(&Path, &str)),
        ("written in place", in_place),
        ("opened long before", opened_long_before),
    ] {
        let servers = json!({"ours": {"command": "x", "enabled": false}});
        let text = json!({ "mcpServers": servers }).to_string();
        let app = setup().file(".mcp.json", format!("// save 000000\n{text}\n"));
        let app = app.start().await;
        let stop = Arc::new(AtomicBool::new(false));
        let editor = std::thread::spawn({
            let (path, stop) = (app.path(".mcp.json"), stop.clone());
            move || person(&path, &stop, save)
        });
        let (mut done, mut refused) = (0, 0);
        while done < rounds(100, 1000) && !editor.is_finished() {
            let answer = app.patch("ours", json!({"timeout": 1 + done})).await;
            match answer.status {
                200 => done += 1,
                409 => refused += 1,
                _ => panic!("{}", answer.text),
            }
        }
        stop.store(true, Ordering::Relaxed);
        let saves = editor.join().expect("no save is lost");
        println!("{way}: {done} edits, {refused} refused, {saves} saves of a person");
        let last = read(&app);
        assert!(last.starts_with(&format!("// save {saves:06}\n")), "{last}");
        assert!(saves > 20, "{saves}");
    }
}

/// A file large enough to be torn, in which one number tells the edit.
fn large(timeout: u32) -> String {
    let filler: String = (0..300)
        .map(|n| {
            format!(
                "    \"s{n}\": {{\"command\": \"{}\", \"enabled\": false}},\n",
                "x".repeat(600)
            )
        })
        .collect();
    let ours = format!("{{\"command\": \"x\", \"enabled\": false, \"timeout\": {timeout}}}");
    format!("{{\n  \"mcpServers\": {{\n{filler}    \"ours\": {ours}\n  }}\n}}\n")
}

/// The edit a whole file is of.
fn edit_in(text: &str) -> u32 {
    let (_, rest) = text.rsplit_once("\"timeout\": ").expect("it has its end");
    let edit = rest.split('}').next().unwrap().parse().unwrap();
    assert!(text == large(edit), "it is not the whole of {edit}");
    edit
}

#[tokio::test]
async fn b7_a_crash_in_the_middle_of_an_edit_leaves_the_old_file_or_the_new() {
    let mut app = setup().file(".mcp.json", large(1)).start().await;
    let (mut answered, mut between) = (2, 0);
    let start = Instant::now();
    app.patch("ours", json!({"timeout": 2})).await.expect(200);
    let usual = start.elapsed();
    for _ in 0..rounds(50, 500) {
        let patience = usual.mul_f64(3.0 * fastrand::f64());
        let edits = async {
            loop {
                let next = answered + 1;
                app.patch("ours", json!({"timeout": next}))
                    .await
                    .expect(200);
                answered = next;
            }
        };
        // Dropped in the middle of a request, as often as not.
        let _: Result<(), _> = tokio::time::timeout(patience, edits).await;
        app.signal(nix::sys::signal::Signal::SIGKILL);
        app.ended().await;
        let found = edit_in(&read(&app));
        assert!(
            found == answered || found == answered + 1,
            "{found}, {answered}"
        );
        between += u32::from(found > answered);
        answered = found;
        app = app.setup.start().await;
    }
    println!("{answered} edits; {between} were on disk before they were answered");
    app.until("ours", |record| record["config"]["timeout"] == answered)
        .await;
}
