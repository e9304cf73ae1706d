use serde_json::{Value, json};

use super::screen::Screen;
use super::{NOWHERE, run, running};
use crate::app::{fixture, setup};

#[tokio::test]
async fn k7_ls_tells_how_each_server_is() {
    let app = running().await;
    let table = run(&app, &["ls"]).await.ok();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let heads = "NAME STATUS ERA TRANSPORT TOOLS SINCE ERROR";
    assert_eq!(rows[0].join(" "), heads);
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap();
    assert_eq!(row("one")[1..4], ["connected", "modern", "stdio"]);
    assert_eq!(row("two")[1..4], ["connected", "legacy", "stdio"]);
    assert_eq!(row("broken")[1..3], ["error", "stdio"]);
    let broken = table.lines().find(|line| line.starts_with("broken"));
    assert!(broken.unwrap().contains(NOWHERE), "{table}");
    assert!(!table.contains('\u{1b}'), "{table}");

    let listed = run(&app, &["ls", "--json"]).await.json();
    let names: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert_eq!(names, ["broken", "one", "two"]);

    let details = run(&app, &["ls", "one"]).await.ok();
    for part in ["connected", "modern (2026-07-28)", "fixture", "\"command\""] {
        assert!(details.contains(part), "{part}: {details}");
    }
    let one = run(&app, &["ls", "one", "--json"]).await.json();
    assert_eq!(one["id"], app.server("one").await["id"]);
    run(&app, &["ls", "nobody"]).await.fails(1, "nobody");
    run(&app, &["ls", "one", "two"]).await.fails(2, "two");
}

#[tokio::test]
async fn k7_add_waits_until_it_is_connected_or_says_why_not() {
    let app = setup().start().await;
    let command = fixture();
    let none = run(&app, &["ls"]).await;
    assert!(none.err.contains("portway add"), "{none:?}");
    assert_eq!(none.ok(), "");
    assert_eq!(run(&app, &["ls", "--json"]).await.json(), json!([]));

    let added = run(
        &app,
        &[
            "add", "good", "--timeout", "2m", "--", &command, "--era", "modern",
        ],
    )
    .await;
    assert!(added.ok().contains("connected"));
    let good = app.server("good").await;
    assert_eq!(good["status"], "connected");
    assert_eq!(good["config"]["timeout"], 120_000);
    assert_eq!(good["config"]["args"], json!(["--era", "modern"]));

    let bad = [
        "add", "bad", "--", &command, "--exit", "3", "--stderr", "out of paper",
    ];
    run(&app, &bad).await.fails(1, "out of paper");
    let missing = run(&app, &["add", "gone", "--json", "--", NOWHERE]).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains(NOWHERE), "{missing:?}");
    assert_eq!(missing.json()["status"], "error");

    run(&app, &["add", "idle", "--no-start", "--", &command])
        .await
        .ok();
    assert_eq!(app.server("idle").await["status"], "disconnected");
    let soon = ["add", "soon", "--no-wait", "--", &command, "--hang-init"];
    run(&app, &soon).await.ok();
    let here = ["add", "here", "--no-start", "--cwd", "sub", "--", &command];
    run(&app, &here).await.ok();
    let cwd = app.server("here").await["config"]["cwd"].clone();
    let cwd = cwd.as_str().unwrap();
    assert!(cwd.starts_with('/') && cwd.ends_with("/sub"), "{cwd}");

    let remote = [
        "add",
        "far",
        "http://127.0.0.1:1/mcp",
        "--sse",
        "--header",
        "X-A=b",
        "--no-start",
    ];
    let record = run(&app, &[&remote[..], &["--json"]].concat()).await.json();
    assert_eq!(record["transport"], "sse");
    assert_eq!(record["config"]["headers"]["X-A"], "***");
}

#[tokio::test]
async fn k7_add_says_what_is_meant() {
    let app = setup().start().await;
    for (args, told) in [
        (&["add"][..], "NAME [--] COMMAND"),
        (&["add", "x"], "portway add x -- COMMAND"),
        (
            &["add", "x", "http://h/", "--", "npx"],
            "or `portway add x https://",
        ),
        (
            &["add", "x", "--env", "plain-secret", "--", "y"],
            "--env: must be NAME=VALUE",
        ),
        (&["add", "x", "--header", "A=b", "--", "y"], "are for a URL"),
        (
            &["add", "x", "--cwd", "d", "http://h/"],
            "are for a command",
        ),
        (&["add", "a:b", "--", "y"], "name: a name is"),
        (&["add", "x", "--timeout", "soon", "--", "y"], "soon"),
    ] {
        let said = run(&app, args).await;
        said.fails(2, told);
        assert!(!said.err.contains("plain-secret"), "{said:?}");
    }
    assert!(app.list().await.is_empty());
}

#[tokio::test]
async fn k7_add_takes_a_command_as_it_is_typed() {
    let app = setup().start().await;
    let program = fixture();
    let args = ["add", "x", program.as_str(), "--stderr", "hello"];
    run(&app, &args).await.ok();
    let record = app.get("/api/mcp/servers/x").await.expect(200);
    assert_eq!(record["config"]["args"], json!(["--stderr", "hello"]));
    let both = ["X-A=one", "X-B: two"].map(|header| ["--header", header]);
    let args = [
        &["add", "y", "http://127.0.0.1:9/mcp", "--no-start"],
        &both.concat()[..],
    ]
    .concat();
    run(&app, &args).await.ok();
    let headers = app.get("/api/mcp/servers/y").await.expect(200)["config"]["headers"].clone();
    assert_eq!(headers.as_object().unwrap().len(), 2, "{headers}");
}

#[tokio::test]
async fn k7_a_secret_given_to_add_is_never_shown() {
    let app = setup().start().await;
    let secret = "correct-horse-battery";
    let env = format!("API_TOKEN={secret}");
    let command = fixture();
    let add = ["add", "shy", "--env", &env, "--json", "--", &command];
    let mut shown = run(&app, &add).await.ok();
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "shy"],
        &["ls", "shy", "--json"],
    ] {
        shown += &run(&app, args).await.ok();
    }
    assert!(shown.contains("API_TOKEN"), "{shown}");
    assert!(!shown.contains(secret), "{shown}");
    // It is what the server has, all the same.
    let said = run(&app, &["call", "shy:env", "name=API_TOKEN"]).await;
    assert!(said.ok().contains(secret));
}

#[tokio::test]
async fn k7_start_stop_and_restart_take_several_and_one_failing_stops_none() {
    let app = running().await;
    let stopped = run(&app, &["stop", "one", "nobody", "two"]).await;
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert_eq!(stopped.out, "one: disconnected\ntwo: disconnected\n");
    assert!(stopped.err.contains("nobody"), "{stopped:?}");

    let started = run(&app, &["start", "broken", "one", "two"]).await;
    assert_eq!(started.code, Some(1), "{started:?}");
    assert!(started.out.contains("one: connected"), "{started:?}");
    assert!(started.out.contains("two: connected"), "{started:?}");
    assert!(started.err.contains(NOWHERE), "{started:?}");

    let before = app.server("one").await["pid"].clone();
    let again = run(&app, &["restart", "one", "nobody", "--json"]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    let answers = again.json();
    assert_eq!(answers[0]["status"], "connected");
    assert_ne!(answers[0]["pid"], before);
    assert_eq!(answers[1]["error"]["code"], "NOT_FOUND");
    run(&app, &["stop", "one"]).await.ok();
    run(&app, &["start"]).await.fails(2, "NAME");
}

#[tokio::test]
async fn k7_rm_asks_or_wants_yes() {
    let app = running().await;
    run(&app, &["rm", "one"]).await.fails(2, "--yes");
    assert_eq!(app.server("one").await["status"], "connected");

    let mut screen = Screen::open(app.setup.path(), &["rm", "one"], &[]);
    screen.shows("[y/N]").await;
    screen.types("\n");
    assert_eq!(screen.ended().await.0, Some(1));
    assert_eq!(app.server("one").await["status"], "connected");

    let mut screen = Screen::open(app.setup.path(), &["rm", "one"], &[]);
    screen.shows("[y/N]").await;
    screen.types("y\n");
    let (code, text) = screen.ended().await;
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(app.get("/api/mcp/servers/one").await.status, 404);

    let gone = run(&app, &["rm", "two", "nobody", "broken", "--yes"]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert_eq!(gone.out, "two: removed\nbroken: removed\n");
    assert!(app.list().await.is_empty());
}
