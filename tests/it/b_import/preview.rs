//! An import is seen before it is done, and ends where servers are defined.

use serde_json::{Value, json};

use super::ImportHome;
use crate::app::{TOKEN, fixture, fixtures, setup};

#[test]
fn b8_nothing_is_written_before_it_was_seen() {
    let place = ImportHome::new();
    let file = place.write("home/.cursor/mcp.json", include_str!("samples/cursor.json"));
    let file = file.to_str().unwrap();
    let mine = "{\n  // mine\n  \"mcpServers\": {\n    \"old\": {\"command\": \"x\"},\n    \
                \"notes\": {\"url\": \"https://notes.example/mcp\", \"headers\": {\"X-Key\": \"${NOTES_KEY}\"}}\n  }\n}\n";
    place.write("project/.mcp.json", mine);
    let shown = place
        .run(&["import", file, "--dry-run", "--json"])
        .exits(1)
        .json();
    let status = |name: &str| {
        let servers = shown["servers"].as_array().unwrap();
        let one = servers.iter().find(|one| one["name"] == name).unwrap();
        one["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        [status("search"), status("notes"), status("old")],
        ["new", "same", "clash"]
    );
    assert_eq!(
        (&shown["client"], &shown["dryRun"]),
        (&json!("cursor"), &json!(true))
    );
    // Nobody is there to say yes.
    place.run(&["import", file]).exits(2).says("say --yes");
    assert_eq!(place.read("project/.mcp.json"), mine);

    place
        .run(&["import", file, "--yes", "--only", "search"])
        .ok()
        .says("1 server written");
    let now = place.read("project/.mcp.json");
    assert!(
        now.starts_with(mine.trim_end_matches("\n  }\n}\n")),
        "{now}"
    );
    assert!(
        now.contains("// mine") && now.contains("\"search\""),
        "{now}"
    );
    let again = place.run(&["import", file, "--yes", "--rename", "old=older"]);
    again.ok().says("+ older");
    place
        .run(&["import", file, "--yes", "--overwrite"])
        .ok()
        .says("~ old");
    let plain = place.read("project/.mcp.json").replace("// mine", "");
    let plain: Value = serde_json::from_str(&plain).unwrap();
    let servers = &plain["mcpServers"];
    assert_eq!(servers["old"]["url"], "https://old.example/sse");
    assert_eq!(servers["older"], servers["old"]);
}

#[test]
fn b8_a_wrong_word_is_named() {
    let place = ImportHome::new();
    let file = place.write("f.json", include_str!("samples/cursor.json"));
    let file = file.to_str().unwrap();
    for (args, code, said) in [
        (&["import"][..], 2, "<FILE|--from <CLIENT>>"),
        (
            &["import", "--from", "emacs"],
            2,
            "claude-desktop, claude-code, vscode",
        ),
        (
            &["import", file, "--from", "cursor"],
            2,
            "cannot be used with",
        ),
        (
            &["import", "--from", "cursor"],
            1,
            "there is no file of Cursor",
        ),
        (
            &["import", "/nowhere/x.json"],
            2,
            "/nowhere/x.json: No such file",
        ),
        (&["import", "/"], 2, "is not a file"),
        (
            &["import", file, "--only", "serch"],
            2,
            "there is no server \"serch\"; there are: search",
        ),
        (&["import", file, "--rename", "old"], 2, "is not OLD=NEW"),
        (
            &["import", file, "--rename", "old=a/b"],
            2,
            "a name is 1 to 64",
        ),
        (
            &["import", file, "--rename", "old=search", "--dry-run"],
            1,
            "another server of the list",
        ),
        (
            &["import", file, "--project", "/nowhere"],
            2,
            "--project: /nowhere",
        ),
    ] {
        place.run(args).exits(code).says(said);
    }
    let odd = place.write("odd.json", "{\"hello\": 1}");
    place
        .run(&["import", odd.to_str().unwrap()])
        .exits(2)
        .says("--as CLIENT");
    let broken = place.write(
        "broken.json",
        "{\"mcpServers\": {\n  \"a\": sample-secret-value\n",
    );
    let ran = place.run(&["import", broken.to_str().unwrap(), "--as", "cursor"]);
    ran.exits(1)
        .says("broken.json: not JSON")
        .says("line 2")
        .hides("sample-secret");
    // One broken file of a client does not hide the others.
    place.write("home/.cursor/mcp.json", "{");
    place.write(
        "project/.cursor/mcp.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
    );
    place
        .run(&["import", "--from", "cursor", "--dry-run"])
        .exits(1)
        .says("not JSON")
        .says("+ a");
    place.write("project/.mcp.json", "{ oops");
    let ran = place.run(&["import", file, "--yes"]).exits(1);
    ran.says(".mcp.json: not JSON");
    assert_eq!(place.read("project/.mcp.json"), "{ oops");
}

#[tokio::test(flavor = "multi_thread")]
async fn b8_a_running_portway_takes_imports_up() {
    let app = setup().mcp(fixtures(&[])).start().await;
    let place = ImportHome::new()
        .env("PORTWAY_URL", &app.url)
        .env("PORTWAY_ADMIN_TOKEN", TOKEN);
    let sample = json!({"mcpServers": {
        "one": {"command": fixture(), "args": []},
        "me": {"url": format!("{}/mcp", app.url)},
    }});
    let file = place.write("x.json", sample.to_string());
    let file = file.to_str().unwrap();
    let project = app.setup.path().display().to_string();
    let args = ["import", file, "--yes", "--project", &project];
    place
        .run(&args)
        .ok()
        .says("takes them up by itself")
        .says("- me");
    app.until_status("one", "connected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn b8_with_a_database_the_running_portway_gets_them() {
    let app = setup().mcp(fixtures(&[])).start().await;
    let place = ImportHome::new()
        .env("PORTWAY_URL", &app.url)
        .env("STORAGE_TYPE", "supabase")
        .env("SUPABASE_DB_URL", "postgres://u:p@127.0.0.1:1/db");
    let sample =
        json!({"mcpServers": {"two words": {"command": fixture(), "env": {"K": "secretvalue1"}}}});
    let file = place.write("x.json", sample.to_string());
    let file = file.to_str().unwrap();
    place
        .run(&["import", file, "--yes"])
        .exits(4)
        .says("PORTWAY_ADMIN_TOKEN");
    let place = place.env("PORTWAY_ADMIN_TOKEN", TOKEN);
    let ran = place.run(&["import", file, "--yes"]).ok();
    ran.says("written into the Portway at")
        .hides("secretvalue1");
    app.until_status("two%20words", "connected").await;
    assert!(!place.path("project/.mcp.json").exists());
    place.run(&["import", file, "--yes"]).ok().says("the same");
    place.write(
        "x.json",
        json!({"mcpServers": {"two words": {"command": fixture(), "timeout": 5}}}).to_string(),
    );
    place
        .run(&["import", file, "--yes"])
        .exits(1)
        .says("--overwrite");
    place.run(&["import", file, "--yes", "--overwrite"]).ok();
    let record = app.server("two%20words").await;
    assert_eq!(record["config"]["timeout"], 5);
    app.stop().await;
    place
        .run(&["import", file, "--yes"])
        .exits(3)
        .says("no Portway answers");
}

#[test]
fn b8_no_name_in_a_file_steers_the_terminal() {
    let place = ImportHome::new();
    let odd = "a\u{9b}31m\u{202e}b";
    let file = json!({"mcpServers": {odd: {"command": "x"}}});
    let file = place.write("cursor.json", file.to_string());
    let file = file.to_str().unwrap();
    for json in [&[][..], &["--json"]] {
        let import = ["import", file, "--as", "cursor", "--dry-run"];
        let ran = place.run(&[&import[..], json].concat());
        assert_eq!(ran.code, 1);
        assert!(!ran.out.contains(['\u{9b}', '\u{202e}']), "{}", ran.out);
        if !json.is_empty() {
            let said: Value = serde_json::from_str(&ran.out).unwrap();
            assert_eq!(said["servers"][0]["name"], odd);
        }
    }
}
