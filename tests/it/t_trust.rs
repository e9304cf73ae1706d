//! What came with a project is not believed, and servers do not get the keys.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::app::{App, TOKEN, fixture, setup};
use crate::k_cli::{command, ended};

fn private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test]
async fn t_links_in_a_shipped_data_directory_reach_nothing() {
    for name in ["lock", "clients"] {
        let start = setup();
        let data = start.path().join("data");
        fs::create_dir(&data).unwrap();
        let precious = start.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        symlink("../precious", data.join(name)).unwrap();
        let (code, text) = start.refused().await;
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(&format!("{name} is a link")), "{text}");
        assert!(text.contains("--data-dir"), "{text}");
        let connect = ended(command(start.path(), &["connect"])).await;
        assert_ne!(connect.code, Some(0), "{connect:?}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        // Named it is believed, and the link is still not followed.
        if name == "lock" {
            let named = start.arg("--data-dir").arg("data");
            let (code, text) = named.refused().await;
            assert_eq!(code, Some(1), "{text}");
            assert!(text.contains("is a symbolic link"), "{text}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        } else {
            let args = ["connect", "--data-dir", "data"];
            let connect = ended(command(start.path(), &args)).await;
            assert!(connect.err.contains("is a symbolic link"), "{connect:?}");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        }
    }
}

#[tokio::test]
async fn t_a_shipped_address_gets_no_token_and_no_key() {
    let house = setup();
    let data = house.path().join("data");
    fs::create_dir(&data).unwrap();
    let evil = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    evil.set_nonblocking(true).unwrap();
    let url = format!("http://{}\n", evil.local_addr().unwrap());
    private(&data.join("address"), &url);
    // Not the next number after ours: that may be one of our own threads.
    private(&data.join("lock"), "1\n");
    private(&data.join("admin_token"), &"x".repeat(43));
    let locked = fs::File::open(data.join("lock")).unwrap();
    locked.lock().unwrap();
    for args in [
        &["ls"][..],
        &["tools"],
        &["connect", "--no-start"],
        &["ls", "--data-dir", "data"],
        &["connect", "--no-start", "--data-dir", "data"],
    ] {
        let mut asked = command(house.path(), args);
        asked.env("PORTWAY_ENTRY_KEY", "pw_of-an-entry-0123456789");
        let said = ended(asked).await;
        assert_eq!(said.code, Some(3), "{args:?}: {said:?}");
        let came = evil.accept();
        assert!(came.is_err(), "{args:?}: somebody was asked");
    }
}

#[tokio::test]
async fn t_data_of_an_earlier_version_stays_in_use_with_new_secrets() {
    let app = setup().without("PORTWAY_ADMIN_TOKEN").start().await;
    let read = |app: &App, name: &str| fs::read_to_string(app.path(name)).unwrap();
    let token = read(&app, "data/admin_token");
    let secret = read(&app, "data/session_secret");
    // As a version without marks, or an archive, has left it.
    fs::remove_file(app.path("data/mark")).unwrap();
    fs::remove_dir_all(app.path(".local")).unwrap();
    let app = app.again().await;
    for words in ["new secrets replace admin_token and", "--data-dir"] {
        assert!(app.log().contains(words), "{}", app.log());
    }
    assert!(!app.log().contains(token.trim()) && !app.log().contains(secret.trim()));
    assert_ne!(read(&app, "data/admin_token"), token);
    assert_ne!(read(&app, "data/session_secret"), secret);
    assert_eq!(read(&app, "data/admin_token.unverified"), token);
    let ls = |token: Option<&str>| {
        let mut asked = command(app.setup.path(), &["ls"]);
        match token {
            Some(token) => asked.env("PORTWAY_ADMIN_TOKEN", token.trim()),
            None => asked.env_remove("PORTWAY_ADMIN_TOKEN"),
        };
        ended(asked)
    };
    ls(None).await.ok();
    let shipped = ls(Some(&token)).await;
    assert_ne!(shipped.code, Some(0), "{shipped:?}");
}

#[tokio::test]
async fn t_data_that_is_named_keeps_its_secrets() {
    let app = setup().without("PORTWAY_ADMIN_TOKEN").start().await;
    let token = fs::read_to_string(app.path("data/admin_token")).unwrap();
    fs::remove_file(app.path("data/mark")).unwrap();
    fs::remove_dir_all(app.path(".local")).unwrap();
    let mut app = app;
    app.setup = app.setup.arg("--data-dir").arg("data");
    let app = app.again().await;
    let now = fs::read_to_string(app.path("data/admin_token")).unwrap();
    assert_eq!(now, token);
}

#[tokio::test]
async fn t_a_server_cannot_read_the_data_directory() {
    let script = format!(
        "ls -A data >&2; cat data/session_secret data/mark >&2; exec '{}'",
        fixture()
    );
    let file = json!({"mcpServers": {
        "curious": {"command": "sh", "args": ["-c", script]},
        "inside": {"command": fixture(), "cwd": "data"},
        "asks": {"command": fixture(), "env": {"T": "${PORTWAY_ADMIN_TOKEN}"}},
    }});
    let app = setup().mcp(file).start().await;
    app.until_status("curious", "connected").await;
    let record = app.server("curious").await;
    let hidden = record["containment"] == "namespace";
    let gaps = record["containmentGaps"].to_string();
    assert_eq!(gaps.contains("data directory"), !hidden, "{record}");
    let secret = fs::read_to_string(app.path("data/session_secret")).unwrap();
    let log = app.lines("curious").await.join("\n");
    assert_eq!(log.contains(secret.trim()), !hidden, "{log}");
    assert_eq!(log.contains("instance_id"), !hidden, "{log}");
    app.until("asks", |record| {
        let error = record["error"].as_str().unwrap_or_default();
        error.contains("env.T") && error.contains("Portway's own") && !error.contains(TOKEN)
    })
    .await;
    if hidden {
        app.until("inside", |record| {
            let error = record["error"].as_str().unwrap_or_default();
            error.contains("cwd") && error.contains("servers cannot see")
        })
        .await;
    }
}

/// Whether a server finds the token in Portway's environment, and whether its
/// record says that it can.
async fn sees_the_token(app: &App, name: &str) -> (bool, bool) {
    app.until_status(name, "connected").await;
    let gaps = app.server(name).await["containmentGaps"].to_string();
    let log = app.lines(name).await.join("\n");
    assert!(log.contains("looked"), "{log}");
    (
        log.contains("seen"),
        gaps.contains("environment and memory"),
    )
}

#[tokio::test]
async fn t_who_can_read_our_environment_is_told() {
    // Its parent is the helper, whose parent is Portway.
    let script = format!(
        "read -r _ _ _ portway _ < /proc/$PPID/stat; \
         grep -qa PORTWAY_ADMIN_TOKEN /proc/$portway/environ && echo seen >&2; \
         echo looked >&2; exec '{}'",
        fixture()
    );
    let server = |containment: &str| {
        json!({
            "command": "sh", "args": ["-c", script], "containment": containment
        })
    };
    let file = json!({"mcpServers": {"weak": server("group"), "usual": server("auto")}});
    let app = setup().mcp(file.clone()).for_nobody().start().await;
    assert_eq!(sees_the_token(&app, "weak").await, (true, true));
    let (seen, told) = sees_the_token(&app, "usual").await;
    assert_eq!(seen, told);
    // Root has capabilities, which a server does not get.
    let app = setup().mcp(file).start().await;
    let (seen, told) = sees_the_token(&app, "weak").await;
    assert_eq!(seen, told);
}

#[tokio::test]
async fn t_git_sees_nothing_of_a_running_portway_beside_a_projects_own_files() {
    let start = setup().without("PORTWAY_ADMIN_TOKEN");
    fs::create_dir(start.path().join("data")).unwrap();
    fs::write(start.path().join("data/figures.csv"), "1,2").unwrap();
    let app = start.start().await;
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let git = git.args(args).current_dir(app.path(""));
        let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "data"]);
    assert_eq!(git(&["ls-files"]), "data/.gitignore\ndata/figures.csv\n");
    assert!(app.path("data/admin_token").exists());
}
