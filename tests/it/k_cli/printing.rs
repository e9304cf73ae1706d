//! Exit codes, closed pipes, and what is drawn from the definition itself.

use std::process::Stdio;

use super::{command, ended, run, running};
use crate::app::{TOKEN, setup};

/// Every command that asks a running Portway, as it may be typed.
const ASKING: &[&[&str]] = &[
    &["ls"],
    &["ls", "one"],
    &["add", "new", "--", "true"],
    &["rm", "one", "--yes"],
    &["start", "one"],
    &["stop", "one"],
    &["restart", "one"],
    &["logs", "one"],
    &["logs", "one", "-f"],
    &["tools"],
    &["call", "one:echo", "text=a"],
    &["call", "echo"],
    &["entries", "ls"],
    &["entries", "create", "x"],
    &["entries", "show", "1"],
    &["entries", "bind", "1", "one:echo"],
    &["entries", "unbind", "1", "one:echo"],
    &["entries", "enable", "1"],
    &["entries", "disable", "1"],
    &["entries", "rotate", "1"],
    &["entries", "rm", "1", "--yes"],
];

#[tokio::test]
async fn k7_without_a_portway_it_is_3_and_none_is_started() {
    let dir = tempfile::tempdir().unwrap();
    for args in ASKING {
        let mut command = command(dir.path(), args);
        command.env("PORTWAY_URL", "http://127.0.0.1:1");
        let said = ended(command).await;
        said.fails(3, "no Portway answers at http://127.0.0.1:1");
        assert!(said.err.contains("start one with `portway`"), "{said:?}");
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "something was started here");
}

#[tokio::test]
async fn k7_the_portway_of_another_project_is_left_alone() {
    let app = setup().start().await;
    let address = app.url.strip_prefix("http://").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for args in ASKING {
        let mut asking = command(elsewhere.path(), args);
        asking.env("PORTWAY_LISTEN", address);
        let said = ended(asking).await;
        said.fails(3, "no Portway runs for this project");
        for part in ["another one's", "portway --listen 127.0.0.1:0", "--url"] {
            assert!(said.err.contains(part), "{part}: {said:?}");
        }
    }
    let mut alone = command(elsewhere.path(), &["ls"]);
    alone.env("PORTWAY_LISTEN", "127.0.0.1:1");
    let said = ended(alone).await;
    said.fails(3, "start one with `portway`");
    assert!(!said.err.contains("another one's"), "{said:?}");
}

#[tokio::test]
async fn k7_a_port_that_is_taken_is_told_by_whom() {
    let app = setup().start().await;
    let address = app.url.strip_prefix("http://").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let args = ["--listen", address];
    let said = ended(command(elsewhere.path(), &args)).await;
    said.fails(1, "another project's Portway is there");
    assert!(said.err.contains("--listen 127.0.0.1:0"), "{said:?}");

    let twice = ended(command(app.setup.path(), &args)).await;
    let words = format!("is in use by another Portway (process {})", app.pid());
    twice.fails(1, &words);

    let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = somebody.local_addr().unwrap().to_string();
    let said = ended(command(elsewhere.path(), &["--listen", &address])).await;
    said.fails(1, "another program is there");
}

#[tokio::test]
async fn k7_a_wrong_token_is_4_and_so_is_none() {
    let app = setup().start().await;
    let elsewhere = tempfile::tempdir().unwrap();
    for args in ASKING {
        let mut wrong = command(elsewhere.path(), args);
        wrong
            .env("PORTWAY_URL", &app.url)
            .env("PORTWAY_ADMIN_TOKEN", "not-the-admin-token-at-all");
        let said = ended(wrong).await;
        said.fails(4, "does not take this token");
        assert!(!said.err.contains("not-the-admin-token"), "{said:?}");
    }
    let mut none = command(elsewhere.path(), &["ls", "--url", &app.url]);
    none.env_remove("PORTWAY_ADMIN_TOKEN");
    ended(none).await.fails(4, "asks for a token");
    let url = ["ls", "--url", "not a url"];
    ended(command(elsewhere.path(), &url))
        .await
        .fails(2, "--url");
    let unknown = ["ls", "--colour"];
    ended(command(elsewhere.path(), &unknown))
        .await
        .fails(2, "--colour");
    assert!(!app.log().contains(TOKEN));
}

#[tokio::test]
async fn k7_a_reader_who_leaves_early_is_no_error() {
    let app = running().await;
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "one"],
        &["tools"],
        &["logs", "one"],
        &["logs", "one", "-f"],
        &["call", "one:big", "bytes=300000"],
        &["call", "one:echo", "text=a", "--json"],
        &["entries", "ls", "--json"],
        &["entries", "create", "unread", "--tool", "one:echo"],
        &["stop", "one", "two"],
        &["completions", "bash"],
        &["man"],
        &["help"],
        &["--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(app.setup.path(), args);
        command.stdout(Stdio::from(writer));
        let said = ended(command).await;
        assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
        assert_eq!(said.err, "", "{args:?}");
    }
    // What was asked for has happened all the same.
    for name in ["one", "two"] {
        assert_eq!(app.server(name).await["status"], "disconnected");
    }
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = command(app.setup.path(), &["ls"]);
    command.stdout(Stdio::from(full));
    ended(command).await.fails(1, "stdout");
}

#[tokio::test]
async fn k7_completions_and_manual_know_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let cli = async |args: &[&str]| {
        let mut command = command(dir.path(), args);
        command.env_remove("PORTWAY_ADMIN_TOKEN");
        ended(command).await
    };
    let help = cli(&["help"]).await.ok();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 20, "{help}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = cli(&["completions", shell]).await.ok();
        for name in &commands {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    cli(&["completions", "tcsh"]).await.fails(2, "fish");

    let page = cli(&["man"]).await.ok();
    assert!(page.contains(".TH portway 1"), "{page}");
    cli(&["man", "--dir", "pages"]).await.ok();
    for name in &commands {
        let page = dir.path().join(format!("pages/portway-{name}.1"));
        assert!(page.exists(), "{name}");
    }
    cli(&["man", "--dir", "/proc/nowhere"])
        .await
        .fails(1, "/proc/nowhere");
    for code in ["0  ", "1  ", "2  ", "3  ", "4  "] {
        assert!(help.contains(&format!("\n  {code}")), "{help}");
    }
}

#[tokio::test]
async fn k7_the_project_is_found_from_its_directory_or_by_name() {
    let app = running().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let project = app.setup.path().to_str().unwrap();
    let by_project = ["ls", "one", "--json", "--project", project];
    let found = ended(command(elsewhere.path(), &by_project)).await.json();
    assert_eq!(found["name"], "one");
    assert_eq!(
        run(&app, &["ls", "one", "--json"]).await.json()["id"],
        found["id"]
    );
}
